//! Real kernel payloads from the unit tests of Google's libtrace, with their expected content.

use events::kernel::Class;
use serde_json::Value as Json;

/// Names of tests with wrong labels. `kernel-payload-vectors.json` marks their payloads as 32-bit, although
/// the source and the bytes are 64-bit.
const WIDE_DESPITE_LABEL: &[&str] = &["ImageDCEndV2", "ImageDCEndV3"];

/// A payload and its expected content.
pub(crate) struct Vector {
    /// Name of the libtrace test.
    pub(crate) test: String,
    pub(crate) class: &'static Class,
    pub(crate) opcode: u8,
    pub(crate) version: u8,
    pub(crate) pointer_size: usize,
    pub(crate) payload: Vec<u8>,
    /// All entries that the JSON file has for the payload. Some entries are not used by the tests here.
    #[allow(dead_code)]
    pub(crate) json: Json,
}

/// Returns all payloads of the JSON file.
pub(crate) fn vectors() -> Vec<Vector> {
    let json = testdata::json("vectors/kernel-payload-vectors.json");
    json["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(vector)
        .collect()
}

fn vector(json: &Json) -> Vector {
    let number = |key: &str| json[key].as_u64().unwrap() as u8;
    let test = json["test"].as_str().unwrap().to_owned();
    let hex = json["payload"].as_str().unwrap_or_default();
    let payload = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap())
        .collect();
    let is_wide = json["is64"].as_bool().unwrap() || WIDE_DESPITE_LABEL.contains(&&*test);
    Vector {
        class: Class::of_guid(json["guid"].as_str().unwrap().parse().unwrap()).unwrap(),
        opcode: number("opcode"),
        version: number("version"),
        pointer_size: if is_wide { 8 } else { 4 },
        payload,
        json: json.clone(),
        test,
    }
}
