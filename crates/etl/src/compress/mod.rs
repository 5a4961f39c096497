//! Decompression of trace buffers in the three formats of [MS-XCA], and compression in one.
//!
//! Every compressed buffer of a trace is one block. The file's first buffer states the format
//! ([`Compression::from_format`]). A block does not contain its expanded length, but the buffer header does.
//! So the caller passes an output that has this length. If the caller passes a shorter output, only the start
//! of the block is decoded. A short output is a fast way to get the first event of a buffer.
//!
//! [MS-XCA]: https://learn.microsoft.com/openspecs/windows_protocols/ms-xca

mod lznt1;
mod xpress;
mod xpress_huffman;

use std::fmt;

pub use xpress::compress_xpress;

/// A compression format of [MS-XCA](https://learn.microsoft.com/openspecs/windows_protocols/ms-xca).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// LZNT1 (section 2.5): independent chunks of 4096 bytes.
    Lznt1,
    /// XPRESS, "plain LZ77" (sections 2.3 and 2.4), in which Windows compresses traces.
    Xpress,
    /// XPRESS with Huffman codes (sections 2.1 and 2.2).
    XpressHuffman,
}

impl Compression {
    /// Returns the format for a format number of `RtlCompressBuffer` (`COMPRESSION_FORMAT_*`).
    ///
    /// A trace has this number in the low 16 bits of its first buffer's `State`. Returns `None` for
    /// 0 and 1 (not compressed) and for formats that traces do not use.
    pub const fn from_format(format: u16) -> Option<Compression> {
        match format {
            2 => Some(Compression::Lznt1),
            3 => Some(Compression::Xpress),
            4 => Some(Compression::XpressHuffman),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Lznt1 => "LZNT1",
            Compression::Xpress => "XPRESS",
            Compression::XpressHuffman => "XPRESS Huffman",
        })
    }
}

/// Error in a compressed block, with its position and cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} block, at input byte {input} and output byte {output}: {fault}")]
pub struct DecompressError {
    /// Format of the block.
    pub format: Compression,
    /// Number of input bytes that the decoder used before the fault.
    pub input: usize,
    /// Number of output bytes that were decoded correctly. All later bytes of the output have undefined
    /// values.
    pub output: usize,
    /// Kind of the fault.
    pub fault: DecompressFault,
}

/// Fault in a compressed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecompressFault {
    /// The input ends before the output is full.
    #[error("the input ends before the output is full")]
    InputEnds,
    /// The distance of a match is so large that the match would copy bytes before the start of the data.
    #[error("a match copies from {distance} bytes back, before the start of the data")]
    DistanceTooFar {
        /// Distance of the match in bytes.
        distance: usize,
    },
    /// A match length is stored in the long form, although it fits into the short form.
    #[error("a match length is stored in its long form as {stored}, expected at least {least}")]
    LengthTooSmall {
        /// Length that the long form contains.
        stored: u32,
        /// Minimum length for which the long form is used.
        least: u32,
    },
    /// The code lengths of a Huffman block do not form a complete prefix code.
    #[error("the Huffman code lengths do not form a complete code")]
    IncompleteCode,
    /// An LZNT1 chunk header does not have the signature 3 in its bits 12 to 14.
    #[error("{0:#06x} is not a chunk header: bits 12 to 14 must be 3")]
    NotAChunk(u16),
    /// An LZNT1 chunk before the last chunk has another size than 4096 bytes.
    #[error("a chunk before the last one has {0} bytes, expected 4096")]
    ChunkSize(usize),
}

/// Decodes the block at the start of `input` until `output` is full.
///
/// Ignores the input bytes that are not needed for this output, for two reasons. Windows' encoder leaves an
/// unused flag word at the end. A caller that needs only the first bytes can pass a short output and a part
/// of the block.
///
/// # Errors
///
/// Returns an error if the input ends or is malformed before the output is full. The first
/// [`DecompressError::output`] bytes of the output are then correct.
pub fn decompress(
    format: Compression,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), DecompressError> {
    match format {
        Compression::Lznt1 => lznt1::decompress(input, output),
        Compression::Xpress => xpress::decompress(input, output),
        Compression::XpressHuffman => xpress_huffman::decompress(input, output),
    }
    .map_err(|stopped| stopped.in_format(format))
}

/// Position and cause of an error in a decoder.
struct Stopped {
    input: usize,
    output: usize,
    fault: DecompressFault,
}

impl Stopped {
    fn in_format(self, format: Compression) -> DecompressError {
        let Stopped {
            input,
            output,
            fault,
        } = self;
        DecompressError {
            format,
            input,
            output,
            fault,
        }
    }
}

/// Copies `length` bytes inside `output` to `at`, from the position `distance` bytes before `at`. Returns the
/// offset of the end of the copy. If `output` ends earlier, returns the end of `output`.
///
/// If `length` exceeds `distance`, the copy repeats its first `distance` bytes. The function may overwrite up
/// to 15 bytes after the end of the copy. This does no harm, because later items write these bytes.
///
/// # Errors
///
/// Returns an error if `distance` exceeds `at`.
#[inline(always)]
fn copy_match(
    output: &mut [u8],
    at: usize,
    distance: usize,
    length: usize,
) -> Result<usize, DecompressFault> {
    let from = at
        .checked_sub(distance)
        .ok_or(DecompressFault::DistanceTooFar { distance })?;
    let end = output.len().min(at.saturating_add(length));

    // The match is copied in whole chunks. This is possible if the output has room for the last chunk and no
    // chunk overlaps its source.
    let Some(window) = output.get_mut(from..end.saturating_add(CHUNK)) else {
        repeat_bytes(&mut output[from..end], distance);
        return Ok(end);
    };
    let length = end - at;
    if distance >= CHUNK {
        copy_chunks::<CHUNK>(window, distance, length);
    } else if distance >= 8 {
        copy_chunks::<8>(window, distance, length);
    } else if let Some(first) = window.first_chunk::<8>() {
        // The match repeats fewer than eight bytes, such as a run of zeros. First, these bytes are repeated
        // to fill eight bytes. Then the copy continues in steps of eight bytes. The distance of each step is
        // at least eight and a multiple of the match's distance.
        let (kept, spread, stride) = PERIODS[distance];
        let pattern = (u64::from_le_bytes(*first) & kept).wrapping_mul(spread);
        if let Some(to) = window[distance..].first_chunk_mut::<8>() {
            *to = pattern.to_le_bytes();
        }
        if length > 8 {
            let back = distance + 8 - stride;
            copy_chunks::<8>(&mut window[back..], stride, length - 8);
        }
    }
    Ok(end)
}

/// Number of bytes that [`copy_match`] copies at once. The function may write up to `CHUNK - 1` bytes after
/// the end of a match.
const CHUNK: usize = 16;

/// Three values for each match distance below eight: a mask that selects `distance` bytes of a 64-bit word; a
/// factor that repeats these bytes in the whole word; and the smallest multiple of the distance that is at
/// least eight.
const PERIODS: [(u64, u64, usize); 8] = {
    let mut periods = [(0, 0, 8); 8];
    let mut distance = 1;
    while distance < 8 {
        let mut spread = 0;
        let mut bit = 0;
        while bit < 64 {
            spread |= 1 << bit;
            bit += 8 * distance;
        }
        periods[distance] = (
            (1 << (8 * distance)) - 1,
            spread,
            distance * 8_usize.div_ceil(distance),
        );
        distance += 1;
    }
    periods
};

/// Copies `length` bytes from the start of `window` to the offset `distance`, in chunks of `N`
/// bytes.
#[inline(always)]
fn copy_chunks<const N: usize>(window: &mut [u8], distance: usize, length: usize) {
    let mut done = 0;
    while done < length {
        let (source, target) = window[done..].split_at_mut(distance);
        let (Some(source), Some(target)) = (source.first_chunk::<N>(), target.first_chunk_mut())
        else {
            return;
        };
        *target = *source;
        done += N;
    }
}

/// Fills `window` with repetitions of its first `distance` bytes.
#[cold]
fn repeat_bytes(window: &mut [u8], distance: usize) {
    for at in distance..window.len() {
        window[at] = window[at - distance];
    }
}

#[cfg(test)]
mod tests;
