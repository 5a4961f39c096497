//! Decompression of trace buffers: the three formats of [MS-XCA].
//!
//! Every compressed buffer of a trace is one block of the format that the file's first buffer
//! names ([`Compression::from_format`]). A block does not say how long its data is; the buffer
//! header does, so the caller brings an output of exactly that length. A shorter output decodes a
//! prefix, which is how the first event of a buffer is seen without paying for the rest.
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
    /// XPRESS, "plain LZ77" (sections 2.3 and 2.4): what Windows writes when it compresses traces.
    Xpress,
    /// XPRESS with Huffman codes (sections 2.1 and 2.2).
    XpressHuffman,
}

impl Compression {
    /// The format numbered `format`, as `RtlCompressBuffer` counts (`COMPRESSION_FORMAT_*`).
    ///
    /// A trace keeps this number in the low 16 bits of its first buffer's `State`. `None` for 0 and
    /// 1 (not compressed) and for numbers of formats that traces do not use.
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

/// A block that could not be decoded: where decoding stopped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} block, at input byte {input} and output byte {output}: {fault}")]
pub struct DecompressError {
    /// The format the block was decoded as.
    pub format: Compression,
    /// Bytes of the input that were used before the fault.
    pub input: usize,
    /// Bytes of the output that hold decoded data; those after are unspecified.
    pub output: usize,
    /// What is wrong there.
    pub fault: DecompressFault,
}

/// What is wrong with a compressed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecompressFault {
    /// The input is used up and the output is not full.
    #[error("the input ends before the output is full")]
    InputEnds,
    /// A match reaches back past the first byte it may copy.
    #[error("a match reaches {distance} bytes back, past the start of the data")]
    DistanceTooFar {
        /// How far back the match reaches, in bytes.
        distance: usize,
    },
    /// A long match length is below what its short form would hold.
    #[error("a match length is stored in its long form as {stored}, expected at least {least}")]
    LengthTooSmall {
        /// The length as stored.
        stored: u32,
        /// The smallest length that needs this form.
        least: u32,
    },
    /// The code lengths of a Huffman block do not form a complete prefix code.
    #[error("the Huffman code lengths do not form a complete code")]
    IncompleteCode,
    /// An LZNT1 chunk header lacks the signature 3 in its bits 12 to 14.
    #[error("{0:#06x} is not a chunk header: bits 12 to 14 must hold 3")]
    NotAChunk(u16),
    /// An LZNT1 chunk that is not the last holds fewer or more than 4096 bytes.
    #[error("a chunk before the last holds {0} bytes, expected 4096")]
    ChunkSize(usize),
}

/// Decodes the block at the start of `input` until `output` is full.
///
/// Input past that point is not looked at: Windows' encoder leaves an unused flag word there, and a
/// caller that wants only the first bytes may pass a short output, with as much of the block as
/// should be enough.
///
/// # Errors
///
/// The input ends, or is malformed, before the output is full. The output up to
/// [`DecompressError::output`] is then decoded data.
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

/// Where and why a decoder stopped.
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

/// Copies `length` bytes of `output` from `distance` bytes before `at` to `at`, and returns where
/// the copy ends: at the end of `output` when that comes first.
///
/// The copy may overlap itself, and then repeats its first `distance` bytes. Up to 15 bytes after
/// its end may be overwritten: whoever decodes next writes them anyway.
///
/// # Errors
///
/// `distance` reaches past the start of `output`.
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

    // Whole chunks, as long as the last one still fits and no chunk reads what it writes.
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
        // A short period, such as a run of zeros: spread it over eight bytes, after which the copy
        // can go on from a multiple of the period that is at least eight bytes back.
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

/// Bytes that [`copy_match`] copies at once, and may write past the end of a match.
const CHUNK: usize = 16;

/// For a match distance below eight: the mask of its bytes, the factor that repeats them through a
/// word, and its smallest multiple of at least eight.
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

/// Copies `length` bytes from the start of `window` to `distance`, in chunks of `N`.
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

/// Fills `window` after its first `distance` bytes by repeating them.
#[cold]
fn repeat_bytes(window: &mut [u8], distance: usize) {
    for at in distance..window.len() {
        window[at] = window[at - distance];
    }
}

#[cfg(test)]
mod tests;
