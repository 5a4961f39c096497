//! Parses any bytes as a registry hive, and as its transaction log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use registry::{Hive, HiveError, HiveKey, HiveLog, replay};

fn walk(key: &HiveKey<'_>, depth: usize) -> Result<(), HiveError> {
    let _ = key.values()?;
    if depth > 0 {
        for child in key.children()? {
            walk(&child, depth - 1)?;
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let mut hive = [b"regf", bytes].concat();
    let name = String::new();
    let bytes = hive.clone();
    replay(&mut hive, || vec![HiveLog { name, bytes }]);
    if let Ok(hive) = Hive::open(&hive) {
        let _ = hive.root().and_then(|root| walk(&root, 4));
    }
    let _ = tune::inputs::read("hive", &hive);
});
