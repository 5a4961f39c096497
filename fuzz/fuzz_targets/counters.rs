//! Reads any bytes as disk counters of `laglab tune replica`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let head = b"\"(PDH-CSV 4.0)\",\"\\\\M\\LogicalDisk(D:)\\Disk Writes/sec\",\"\\\\M\\LogicalDisk(D:)\\Disk Write Bytes/sec\"\n";
    for bytes in [bytes.to_vec(), [head, bytes].concat()] {
        let _ = replica::read_counters(&bytes, "D:");
    }
});
