//! The real kernel payloads of Google libtrace's unit tests, with what they are expected to hold.

use events::kernel::Class;
use serde_json::Value as Json;

/// Tests that say 32-bit in the collected file, while their source says 64-bit and their bytes
/// are.
const WIDE_DESPITE_LABEL: &[&str] = &["ImageDCEndV2", "ImageDCEndV3"];

/// One payload.
pub(crate) struct Vector {
    /// Name of its test.
    pub(crate) test: String,
    pub(crate) class: &'static Class,
    pub(crate) opcode: u8,
    pub(crate) version: u8,
    pub(crate) pointer_size: usize,
    pub(crate) payload: Vec<u8>,
    /// Everything that the collected file says of it; not all tests ask.
    #[allow(dead_code)]
    pub(crate) json: Json,
}

/// All of them.
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
