//! Checks that the committed documentation of the tables matches the declarations of the tables.

#[test]
fn docs_are_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");
    let expected = tables::reference();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &expected).expect("docs/tables.md is writable");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == expected,
        "docs/tables.md is not what the declarations say: UPDATE_EXPECT=1 cargo test -p tables"
    );
}

#[test]
fn every_column_is_documented_once() {
    for table in tables::Table::ALL {
        let schema = table.schema();
        assert_eq!(schema.name, table.name());
        assert_eq!(schema.name.parse(), Ok(*table));
        let mut names: Vec<&str> = schema.columns.iter().map(|c| c.name).collect();
        assert!(names.contains(&schema.sorted_by), "{table}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), schema.columns.len(), "{table}");
        for column in &schema.columns {
            assert!(!column.meaning.is_empty(), "{table}.{}", column.name);
            assert!(!column.source.is_empty(), "{table}.{}", column.name);
        }
    }
}
