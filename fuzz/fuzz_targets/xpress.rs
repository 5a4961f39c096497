//! Decodes any bytes as one XPRESS block into outputs of several sizes. Also compresses the bytes and decodes
//! the result.
#![no_main]

use etl::compress::{Compression, compress_xpress, decompress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut output = vec![0; 1 << 16];
    for size in [1, 48, 4096, 1 << 16] {
        if let Err(error) = decompress(Compression::Xpress, data, &mut output[..size]) {
            assert!(error.output <= size && error.input <= data.len());
        }
    }
    let mut packed = Vec::new();
    compress_xpress(data, &mut packed);
    let mut back = vec![0; data.len()];
    decompress(Compression::Xpress, &packed, &mut back).expect("own blocks are valid");
    assert_eq!(back, data);
});
