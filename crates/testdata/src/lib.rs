//! Where the tests find real traces and their independent ground truth. Development only.

use std::path::PathBuf;

use serde_json::Value;

/// The path of a file below `../shared/data`, beside the repository.
///
/// # Panics
/// If the file is missing: tests must not pass for want of data.
pub fn path(relative: &str) -> PathBuf {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    assert!(
        data.is_dir(),
        "../shared/data is missing: it must lie beside the repository"
    );
    let path = data.join(relative);
    assert!(path.exists(), "../shared/data/{relative} is missing");
    path
}

/// The bytes of a file below `../shared/data`.
pub fn bytes(relative: &str) -> Vec<u8> {
    std::fs::read(path(relative)).expect("test data is readable")
}

/// A JSON file below `../shared/data`.
pub fn json(relative: &str) -> Value {
    serde_json::from_slice(&bytes(relative)).expect("test data is valid JSON")
}

/// A JSON file of the fact sheets below `../shared/reference`, beside the repository.
///
/// # Panics
/// If it is missing: tests must not pass for want of data.
pub fn reference_json(name: &str) -> Value {
    let sheets = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/reference"
    ));
    let bytes = std::fs::read(sheets.join(name));
    let bytes = bytes.unwrap_or_else(|error| panic!("../shared/reference/{name}: {error}"));
    serde_json::from_slice(&bytes).expect("a fact sheet is valid JSON")
}

/// The ground truth of every real trace: its file below `../shared/data` and its `truth` object.
pub fn traces() -> Vec<(String, Value)> {
    let Value::Array(files) = json("etl/truth.json") else {
        panic!("truth.json is not a list")
    };
    assert!(!files.is_empty(), "truth.json is empty");
    files
        .into_iter()
        .map(|mut file| {
            let name = file["file"].as_str().expect("a file name").to_owned();
            (format!("etl/{name}"), file["truth"].take())
        })
        .collect()
}

/// A small fixed-seed generator (splitmix64) for tests that try many cases.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }
}
