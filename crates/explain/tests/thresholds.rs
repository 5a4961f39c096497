//! Checks that the documentation contains the current table of thresholds.

const BEGIN: &str = "<!-- thresholds: generated -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_documentation_has_the_thresholds() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md");
    let docs = std::fs::read_to_string(path).expect("docs/explain.md is readable");
    let (before, rest) = docs.split_once(BEGIN).expect("the table's begin");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let expected = format!("{before}{BEGIN}{}{END}{after}", explain::thresholds());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &expected).expect("docs/explain.md is writable");
        return;
    }
    assert!(
        docs == expected,
        "docs/explain.md lacks the thresholds: UPDATE_EXPECT=1 cargo test -p explain"
    );
}
