//! LZNT1: [MS-XCA] section 2.5.
//!
//! Data is cut into chunks of 4096 bytes that decode on their own. A chunk has a 16-bit header (bit
//! 15 compressed, bits 12 to 14 hold 3, bits 0 to 11 its size - 3) and either plain bytes or groups
//! of a flag byte and eight items, lowest bit first: a literal byte for 0, a match for 1. A match
//! is 16 bits; how many of them are the distance grows with the position in the chunk.

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

/// Decodes the chunk at `at` to the start of `output`, and moves `at` to the next one.
fn decode_chunk(
    input: &[u8],
    at: &mut usize,
    output: &mut [u8],
    written: &mut usize,
) -> Result<(), DecompressFault> {
    let header = match le::u16(input, *at) {
        // A header of 0 marks the end of the data; it may also just end without.
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

/// How many of a match's 16 bits hold its length, `position` bytes into the chunk: the distance has
/// as many bits as the farthest one needs, at least 4.
fn length_bits(position: usize) -> u32 {
    let farthest = position.saturating_sub(1);
    16 - (usize::BITS - farthest.leading_zeros()).clamp(4, 12)
}
