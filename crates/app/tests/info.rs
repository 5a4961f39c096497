//! Tests of the text output of `laglab info`. The crate `facts` tests the facts themselves.

use crate::program;

#[test]
fn damage_is_printed_with_its_place() {
    let mut bytes = testdata::bytes("etl/perfview__net.4.5.2.x64.etl");
    bytes.truncate(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.etl");
    std::fs::write(&path, &bytes).unwrap();
    let path = path.to_str().unwrap();
    let info = program::json(&["info", "--json", path]);
    let offset = info["damage"]["faults"][0]["buffer_offset"].as_u64();
    let offset = offset.expect("the fault has a place");
    let text = program::text(&["info", path]);
    assert!(text.contains(&format!("{offset:#x}")), "{text}");
}

#[test]
fn text_matches_the_snapshot() {
    insta::assert_snapshot!(program::text(&["info", "filtrace__etw.etl", "--cpus"]));
}
