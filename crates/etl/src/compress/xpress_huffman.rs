//! XPRESS with Huffman codes: the "LZ77+Huffman" of [MS-XCA] sections 2.1 and 2.2.
//!
//! The input has one part for each 64 KiB of output. A part starts with 256 bytes: the code lengths of 512 symbols,
//! half a byte each. Symbols below 256 are literal bytes. The other symbols are matches. In the low byte of a match
//! symbol, the upper four bits are the number of distance bits. The lower four bits are the length minus 3 (15 if the
//! length continues). Codes are in 16-bit words, highest bit first. If a length continues, its further bytes are
//! between these words. The decoder reads words ahead. So a further byte of a length is directly after the last word
//! that the decoder has read.

use super::{DecompressFault, Stopped, copy_match};
use crate::le;

const SYMBOLS: usize = 512;
const LENGTHS_SIZE: usize = SYMBOLS / 2;
const BLOCK_SIZE: usize = 1 << 16;

pub(super) fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), Stopped> {
    let mut at = 0;
    let mut written = 0;
    let mut code = Code::default();
    while written < output.len() {
        let stopped = |input, output, fault| Stopped {
            input,
            output,
            fault,
        };
        let Some(lengths) = input[at..].first_chunk() else {
            return Err(stopped(at, written, DecompressFault::InputEnds));
        };
        code.read(lengths)
            .map_err(|fault| stopped(at, written, fault))?;
        let mut bits = Bits::new(input, at + LENGTHS_SIZE);
        let end = output.len().min(written.saturating_add(BLOCK_SIZE));
        decode_block(&code, &mut bits, output, &mut written, end)
            .map_err(|fault| stopped(bits.at, written, fault))?;
        at = bits.at;
    }
    Ok(())
}

/// Decodes until `written` reaches `end`. The last match may continue after `end`, but not after the end of
/// `output`.
fn decode_block(
    code: &Code,
    bits: &mut Bits<'_>,
    output: &mut [u8],
    written: &mut usize,
    end: usize,
) -> Result<(), DecompressFault> {
    while *written < end {
        let symbol = code.next(bits)?;
        if let Ok(literal) = u8::try_from(symbol) {
            output[*written] = literal;
            *written += 1;
            continue;
        }
        let length = match symbol & 15 {
            15 => bits.long_length()?,
            short => usize::from(short) + 3,
        };
        let distance_bits = u32::from(symbol >> 4 & 15);
        let distance = 1 << distance_bits | bits.take(distance_bits)? as usize;
        *written = copy_match(output, *written, distance, length)?;
    }
    Ok(())
}

/// Lookup table of a canonical prefix code. The index in the table is the value of the next input bits.
#[derive(Default)]
struct Code {
    /// Table with one entry for each value of the next `index_bits` bits. An entry has the symbol in bits 4
    /// and above. It has the length of the symbol's code in bits 0 to 3.
    table: Vec<u16>,
    /// Length of the longest code in bits.
    index_bits: u32,
}

impl Code {
    fn read(&mut self, lengths: &[u8; LENGTHS_SIZE]) -> Result<(), DecompressFault> {
        let length_of = |symbol: usize| u32::from(lengths[symbol / 2] >> (symbol % 2 * 4) & 15);
        let longest = (0..SYMBOLS).map(length_of).max().unwrap_or(0);
        let size = 1 << longest;
        self.table.clear();
        // Codes are assigned in order of length. Codes of the same length are assigned in order of their
        // symbols. Each code fills all table entries that begin with the code.
        for length in 1..=longest {
            for symbol in (0..SYMBOLS).filter(|&symbol| length_of(symbol) == length) {
                let filled = self.table.len() + (1 << (longest - length));
                if filled > size {
                    return Err(DecompressFault::IncompleteCode);
                }
                self.table
                    .resize(filled, (symbol << 4) as u16 | length as u16);
            }
        }
        self.index_bits = longest;
        if self.table.len() == size {
            Ok(())
        } else {
            Err(DecompressFault::IncompleteCode)
        }
    }

    #[inline]
    fn next(&self, bits: &mut Bits<'_>) -> Result<u16, DecompressFault> {
        let entry = self.table[bits.peek(self.index_bits) as usize];
        bits.take(u32::from(entry & 15))?;
        Ok(entry >> 4)
    }
}

/// Bit stream of one block.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    /// Next bits of the input. The highest bit is the next bit. At least 16 bits are valid.
    next: u32,
    /// Number of valid bits in `next`, minus 16.
    beyond: i32,
    /// Number of bits in `next` that lie after the end of the input. These bits are zeros. Words are read
    /// ahead, so such bits are an error only if they are used.
    made_up: i32,
}

impl<'a> Bits<'a> {
    fn new(input: &'a [u8], at: usize) -> Bits<'a> {
        let mut bits = Bits {
            input,
            at,
            next: 0,
            beyond: -16,
            made_up: 0,
        };
        bits.next = u32::from(bits.word()) << 16;
        bits.next |= u32::from(bits.word());
        bits.beyond = 16;
        bits
    }

    /// Reads the next 16-bit word. Returns 0 after the input's end.
    fn word(&mut self) -> u16 {
        match le::u16(self.input, self.at) {
            Some(word) => {
                self.at += 2;
                word
            }
            None => {
                self.made_up = self.made_up.saturating_add(16);
                0
            }
        }
    }

    /// Returns the next `count` bits (at most 15) as a number. Does not consume the bits.
    #[inline]
    fn peek(&self, count: u32) -> u32 {
        // The shift has two steps, because for 0 bits a single shift by 32 would overflow.
        self.next >> 1 >> (31 - count)
    }

    /// Consumes the next `count` bits, at most 15.
    #[inline]
    fn take(&mut self, count: u32) -> Result<u32, DecompressFault> {
        let bits = self.peek(count);
        self.next <<= count;
        self.beyond -= count as i32;
        if self.beyond + 16 < self.made_up {
            return Err(DecompressFault::InputEnds);
        }
        if self.beyond < 0 {
            self.next |= u32::from(self.word()) << -self.beyond;
            self.beyond += 16;
        }
        Ok(bits)
    }

    /// Reads the continuation of a long length. In the symbol, all four bits of a long length are set. The bytes
    /// of the continuation follow the last 16-bit word that was read.
    fn long_length(&mut self) -> Result<usize, DecompressFault> {
        let byte = *self.input.get(self.at).ok_or(DecompressFault::InputEnds)?;
        self.at += 1;
        if byte < 255 {
            return Ok(usize::from(byte) + 15 + 3);
        }
        let stored = le::u16(self.input, self.at).ok_or(DecompressFault::InputEnds)?;
        self.at += 2;
        let stored = match stored {
            0 => {
                let stored = le::u32(self.input, self.at).ok_or(DecompressFault::InputEnds)?;
                self.at += 4;
                stored
            }
            stored => stored.into(),
        };
        const LEAST: u32 = 15;
        if stored < LEAST {
            return Err(DecompressFault::LengthTooSmall {
                stored,
                least: LEAST,
            });
        }
        Ok((stored as usize).saturating_add(3))
    }
}
