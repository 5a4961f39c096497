//! Decodes any bytes as one XPRESS Huffman block into outputs of several sizes.
#![no_main]

use etl::compress::{Compression, decompress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut output = vec![0; 1 << 16];
    for size in [1, 48, 4096, 1 << 16] {
        if let Err(error) = decompress(Compression::XpressHuffman, data, &mut output[..size]) {
            assert!(error.output <= size && error.input <= data.len());
        }
    }
});
