//! Decompression of buffers.
