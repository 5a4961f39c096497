//! Tests of the text output of `laglab stats`. The crate `facts` tests the counts.

use crate::program;

#[test]
fn text_matches_the_snapshot() {
    insta::assert_snapshot!(program::text(&["stats", "filtrace__etw.etl"]));
    let stats = program::json(&["stats", "--json", "filtrace__etw.etl"]);
    assert_eq!(stats["damage"]["faults"], serde_json::json!([]));
}
