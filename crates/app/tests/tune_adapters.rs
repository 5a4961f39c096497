//! Tests of `laglab tune adapters`.

use crate::program;

#[test]
fn loopback_is_listed_as_text_and_json() {
    let adapters = program::json(&["--json", "tune", "adapters"]);
    let adapters = adapters.as_array().unwrap();
    let loopback = adapters
        .iter()
        .find(|one| one["kind"] == "loopback")
        .unwrap();
    let addresses = loopback["addresses"].as_array().unwrap();
    let address = addresses
        .iter()
        .find(|one| one["address"] == "127.0.0.1")
        .unwrap();
    assert_eq!(address["prefix"]["length"], 8);
    assert_eq!(address["scope"], "host");
    // On Windows, the output has the result of each interface that lists addresses.
    assert_eq!(
        cfg!(windows),
        !address["told"].as_array().unwrap().is_empty()
    );
    let text = program::text(&["tune", "adapters"]);
    assert!(text.contains("127.0.0.1/8"), "{text}");
}
