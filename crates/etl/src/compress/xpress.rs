//! XPRESS: the "plain LZ77" of [MS-XCA] sections 2.3 and 2.4.
//!
//! A block is a sequence of 32-bit flag words. After each flag word come 32 items. Each bit of the flag word belongs to
//! one item, beginning with the highest bit. Flag 0 means that the item is a literal byte. Flag 1 means that the item
//! is a match: a copy of earlier output. A match has 16 bits. The upper 13 bits are the distance minus 1. The lower 3
//! bits are the length minus 3. If all 3 bits are set, the length continues in half a byte (two matches share one
//! byte). Greater lengths continue in a byte, then in 16 bits, and then in 32 bits.

use super::{DecompressFault, Stopped, copy_match};
use crate::le;

/// Maximum number of literals for one flag word.
const MAX_RUN: usize = 32;

/// Bit that is set directly below the last flag of a flag word. The bit marks the end of the flags, so the
/// decoder needs no counter of the flags.
const SENTINEL: u64 = 1 << 31;

pub(super) fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), Stopped> {
    let mut decoder = Decoder {
        input,
        at: 0,
        half_byte: None,
    };
    let mut written = 0;
    decoder.run(output, &mut written).map_err(|fault| Stopped {
        input: decoder.at,
        output: written,
        fault,
    })
}

struct Decoder<'a> {
    input: &'a [u8],
    at: usize,
    /// Upper half of the last shared length byte. It is kept until a match uses it.
    half_byte: Option<u8>,
}

impl Decoder<'_> {
    #[inline(always)]
    fn run(&mut self, output: &mut [u8], written: &mut usize) -> Result<(), DecompressFault> {
        while *written < output.len() {
            let mut flags = u64::from(self.u32()?) << 32 | SENTINEL;
            loop {
                let run = flags.leading_zeros() as usize;
                self.literals(run, output, written)?;
                flags <<= run;
                if flags == 1 << 63 {
                    break;
                }
                if *written == output.len() {
                    return Ok(());
                }
                let (distance, length) = self.a_match()?;
                *written = copy_match(output, *written, distance, length)?;
                flags <<= 1;
            }
        }
        Ok(())
    }

    /// Copies `run` literals, at most 32.
    #[inline(always)]
    fn literals(
        &mut self,
        run: usize,
        output: &mut [u8],
        written: &mut usize,
    ) -> Result<(), DecompressFault> {
        // Most runs are short. One copy of 32 bytes, the maximum, is faster than a loop. The next item
        // overwrites the surplus bytes.
        let source = self
            .input
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<MAX_RUN>());
        let target = output
            .get_mut(*written..)
            .and_then(|rest| rest.first_chunk_mut::<MAX_RUN>());
        let run = if let (Some(source), Some(target)) = (source, target) {
            *target = *source;
            run
        } else {
            let wanted = run.min(output.len() - *written);
            let run = wanted.min(self.input.len() - self.at);
            output[*written..][..run].copy_from_slice(&self.input[self.at..][..run]);
            if run < wanted {
                self.at += run;
                *written += run;
                return Err(DecompressFault::InputEnds);
            }
            run
        };
        self.at += run;
        *written += run;
        Ok(())
    }

    /// Reads a match: its distance and length.
    #[inline(always)]
    fn a_match(&mut self) -> Result<(usize, usize), DecompressFault> {
        let word = self.u16()?;
        let distance = usize::from(word >> 3) + 1;
        let length = match word & 7 {
            7 => self.long_length()?,
            short => usize::from(short) + 3,
        };
        Ok((distance, length))
    }

    /// Reads the continuation of a long length. In the match, all three bits of a long length are set.
    #[inline(always)]
    fn long_length(&mut self) -> Result<usize, DecompressFault> {
        let half = match self.half_byte.take() {
            Some(upper) => upper,
            None => {
                let byte = self.u8()?;
                self.half_byte = Some(byte >> 4);
                byte & 15
            }
        };
        if half < 15 {
            return Ok(usize::from(half) + 7 + 3);
        }
        let byte = self.u8()?;
        if byte < 255 {
            return Ok(usize::from(byte) + 15 + 7 + 3);
        }
        let stored = match self.u16()? {
            0 => self.u32()?,
            stored => stored.into(),
        };
        const LEAST: u32 = 15 + 7;
        if stored < LEAST {
            return Err(DecompressFault::LengthTooSmall {
                stored,
                least: LEAST,
            });
        }
        Ok((stored as usize).saturating_add(3))
    }

    #[inline(always)]
    fn u8(&mut self) -> Result<u8, DecompressFault> {
        let byte = *self.input.get(self.at).ok_or(DecompressFault::InputEnds)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn u16(&mut self) -> Result<u16, DecompressFault> {
        let word = le::u16(self.input, self.at).ok_or(DecompressFault::InputEnds)?;
        self.at += 2;
        Ok(word)
    }

    #[inline(always)]
    fn u32(&mut self) -> Result<u32, DecompressFault> {
        let word = le::u32(self.input, self.at).ok_or(DecompressFault::InputEnds)?;
        self.at += 4;
        Ok(word)
    }
}

/// Maximum distance of a match in bytes. The field has 13 bits.
const MAX_DISTANCE: usize = 1 << 13;

/// Maximum length in bytes of a match that the encoder writes. Longer matches would need 32-bit lengths. Only
/// later revisions of the specification allow them, so some decoders may not accept them.
const MAX_LENGTH: usize = 0xFFFF + 3;

/// Appends `input` to `output` as one XPRESS block.
///
/// Compares the bytes at each position with the bytes at one earlier position: the latest position whose first
/// three bytes have the same hash. This is fast and compresses traces about as well as Windows' encoder.
/// [`decompress`](super::decompress) decodes the block if its output has `input.len()` bytes. The block can
/// be longer than the input, but at most by `input.len() / 8 + 8` bytes.
pub fn compress_xpress(input: &[u8], output: &mut Vec<u8>) {
    let mut block = Encoder::new(output);
    // Low 16 bits of the latest position of each hash value. An entry can be outdated. Different bytes can
    // also have the same hash. Both cases do no harm, because the bytes are compared.
    let mut places = [0_u16; 1 << HASH_BITS];
    let mut at = 0;
    while at < input.len() {
        let rest = &input[at..];
        let Some(head) = rest.first_chunk::<3>() else {
            block.literal(input[at]);
            at += 1;
            continue;
        };
        let place = &mut places[hash(*head)];
        let distance = usize::from((at as u16).wrapping_sub(*place));
        *place = at as u16;
        let length = match at.checked_sub(distance) {
            Some(from) if (1..=MAX_DISTANCE).contains(&distance) => {
                common_prefix(&input[from..], &rest[..rest.len().min(MAX_LENGTH)])
            }
            _ => 0,
        };
        if length < 3 {
            block.literal(input[at]);
            at += 1;
        } else {
            block.a_match(distance, length);
            at += length;
        }
    }
    block.finish();
}

const HASH_BITS: u32 = 13;

fn hash([a, b, c]: [u8; 3]) -> usize {
    let bytes = u32::from_le_bytes([a, b, c, 0]);
    // The factor is 2^32 divided by the golden ratio. With this factor, similar values have different hashes
    // (Knuth's multiplicative hash).
    (bytes.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize
}

/// Returns the length of the common prefix of `a` and `b` in bytes.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let same = a_words
        .iter()
        .zip(b_words)
        .take_while(|(a, b)| a == b)
        .count()
        * 8;
    same + a[same..]
        .iter()
        .zip(&b[same..])
        .take_while(|(a, b)| a == b)
        .count()
}

struct Encoder<'a> {
    output: &'a mut Vec<u8>,
    /// Offset in the output of the flag word that is being filled.
    flags_at: usize,
    /// Flags that the current flag word has so far. A bit 1 before the first flag marks the start of the
    /// flags.
    flags: u64,
    /// Offset of the last shared length byte in the output. `None` if both halves of that byte are used.
    half_byte_at: Option<usize>,
}

impl<'a> Encoder<'a> {
    fn new(output: &'a mut Vec<u8>) -> Encoder<'a> {
        let flags_at = output.len();
        output.extend([0; 4]);
        Encoder {
            output,
            flags_at,
            flags: 1,
            half_byte_at: None,
        }
    }

    fn literal(&mut self, byte: u8) {
        self.output.push(byte);
        self.flag(0);
    }

    fn a_match(&mut self, distance: usize, length: usize) {
        let length = length - 3;
        let word = ((distance - 1) << 3 | length.min(7)) as u16;
        self.output.extend(word.to_le_bytes());
        if let Some(more) = length.checked_sub(7) {
            let half = more.min(15) as u8;
            match self.half_byte_at.take() {
                Some(at) => self.output[at] |= half << 4,
                None => {
                    self.half_byte_at = Some(self.output.len());
                    self.output.push(half);
                }
            }
            if let Some(more) = more.checked_sub(15) {
                self.output.push(more.min(255) as u8);
                if more >= 255 {
                    self.output.extend((length as u16).to_le_bytes());
                }
            }
        }
        self.flag(1);
    }

    fn flag(&mut self, bit: u64) {
        self.flags = self.flags << 1 | bit;
        if self.flags >> 32 == 1 {
            self.write_flags(self.flags as u32);
            self.flags_at = self.output.len();
            self.output.extend([0; 4]);
            self.flags = 1;
        }
    }

    fn write_flags(&mut self, flags: u32) {
        self.output[self.flags_at..][..4].copy_from_slice(&flags.to_le_bytes());
    }

    /// Writes the last flag word. The specification requires that the unused bits of this word are set. If a decoder
    /// does not know the length of the data, the decoder reads an unused bit as a match. The decoder stops, because
    /// there is no input for this match.
    fn finish(mut self) {
        let unused = self.flags.leading_zeros() - 31;
        let flags = (self.flags << unused | ((1 << unused) - 1)) as u32;
        self.write_flags(flags);
    }
}
