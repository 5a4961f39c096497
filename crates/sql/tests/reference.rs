//! Checks that the committed documentation of views and functions matches their declarations.

#[test]
fn docs_are_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/views.md");
    let expected = sql::reference().expect("every view is valid");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &expected).expect("docs/views.md is writable");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == expected,
        "docs/views.md is stale: run UPDATE_EXPECT=1 cargo test -p sql"
    );
}
