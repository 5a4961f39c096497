//! LZNT1: the format of [MS-XCA] section 2.5.
//!
//! Data is split into chunks of 4096 bytes that are decoded independently. A chunk starts with a 16-bit
//! header. Bit 15 is set if the chunk is compressed, bits 12 to 14 are always 3, and bits 0 to 11 are the
//! chunk's size minus 3. After the header, an uncompressed chunk has plain bytes, and a compressed chunk has
//! groups. A group is a flag byte and eight items. Each bit of the flag byte belongs to one item, beginning
//! with the lowest bit. Flag 0 means that the item is a literal byte. Flag 1 means that the item is a match:
//! a copy of earlier output. A match has 16 bits for distance and length. The number of distance bits grows
//! with the position in the chunk.

use super::{DecompressFault, Stopped, copy_match};
use crate::le;

const CHUNK_SIZE: usize = 4096;

pub(super) fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), Stopped> {
    let mut at = 0;
    let mut start = 0;
    while start < output.len() {
        let mut written = 0;
        decode_chunk(input, &mut at, &mut output[start..], &mut written).map_err(|fault| {
            Stopped {
                input: at,
                output: start + written,
                fault,
            }
        })?;
        start += written;
    }
    Ok(())
}

/// Decodes the chunk at `at` into the start of `output`, and moves `at` to the next chunk.
fn decode_chunk(
    input: &[u8],
    at: &mut usize,
    output: &mut [u8],
    written: &mut usize,
) -> Result<(), DecompressFault> {
    let header = match le::u16(input, *at) {
        // The data ends with a header of 0 or without a header. In both cases the data ends too early,
        // because the output is not full yet.
        None | Some(0) => return Err(DecompressFault::InputEnds),
        Some(header) if header >> 12 & 7 != 3 => return Err(DecompressFault::NotAChunk(header)),
        Some(header) => header,
    };
    *at += 2;
    let next = *at + usize::from(header & 0xFFF) + 1;
    let data = &input[..next.min(input.len())];

    if header & 0x8000 != 0 {
        decode_groups(data, at, output, written)?;
    } else {
        let plain = &data[*at..];
        *written = plain.len().min(output.len());
        output[..*written].copy_from_slice(&plain[..*written]);
        *at += *written;
    }

    if *written == output.len() || *written == CHUNK_SIZE && next <= input.len() {
        *at = next;
        Ok(())
    } else if next >= input.len() {
        Err(DecompressFault::InputEnds)
    } else {
        Err(DecompressFault::ChunkSize(*written))
    }
}

/// Decodes the groups of a compressed chunk until its data ends or `output` is full.
fn decode_groups(
    data: &[u8],
    at: &mut usize,
    output: &mut [u8],
    written: &mut usize,
) -> Result<(), DecompressFault> {
    while let Some(&flags) = data.get(*at) {
        *at += 1;
        for item in 0..8 {
            if *written == output.len() {
                return Ok(());
            }
            if flags >> item & 1 == 0 {
                let Some(&literal) = data.get(*at) else {
                    return Ok(());
                };
                output[*written] = literal;
                *at += 1;
                *written += 1;
            } else {
                let Some(word) = le::u16(data, *at) else {
                    return Ok(());
                };
                let length_bits = length_bits(*written);
                let distance = usize::from(word >> length_bits) + 1;
                let length = usize::from(word & ((1 << length_bits) - 1)) + 3;
                *written = copy_match(output, *written, distance, length)?;
                *at += 2;
            }
        }
    }
    Ok(())
}

/// Returns the number of length bits in a match at offset `position` of the chunk. The other bits of the
/// match are the distance. The distance has as many bits as the largest possible distance needs, but at least
/// 4.
fn length_bits(position: usize) -> u32 {
    let farthest = position.saturating_sub(1);
    16 - (usize::BITS - farthest.leading_zeros()).clamp(4, 12)
}
