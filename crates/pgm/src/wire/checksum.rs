//! Checksum of a packet.

/// Returns the one's complement of the one's-complement sum of all 16-bit words. If the number of bytes is
/// odd, the last byte is padded with a zero byte. The result is never 0x0000, because this value means "no
/// checksum" in a packet.
///
/// The sum covers the packet with its checksum field set to zero. There is no pseudo header.
pub fn checksum(bytes: &[u8]) -> u16 {
    checksum_of_parts(bytes, b"")
}

/// Returns the checksum of two parts, one after the other. The first part must have an even length.
pub(super) fn checksum_of_parts(first: &[u8], second: &[u8]) -> u16 {
    complement(folded(sum(first) + sum(second)).to_be())
}

/// Returns the sum of all words. The words of this sum have 32 bits in native byte order, so that the
/// processor sums several 16-bit words at once. The sum is still correct if the result is swapped and folded
/// accordingly (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let last = match *rest {
        [a, b, c] => [a, b, c, 0],
        [a, b] => [a, b, 0, 0],
        [a] => [a, 0, 0, 0],
        _ => [0; 4],
    };
    let wide = |word: &[u8; 4]| u64::from(u32::from_ne_bytes(*word));
    words.iter().map(wide).sum::<u64>() + wide(&last)
}

/// Returns the checksum after a change of one 16-bit word at an even offset (RFC 1624).
pub(super) fn changed(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = [!checksum, !old, new].map(u64::from).iter().sum();
    complement(folded(sum))
}

/// Folds the carries of a sum into 16 bits. The number of steps is fixed, because a check after each step
/// would be slower. The steps suffice for the largest sum.
fn folded(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
}

/// Returns the complement of a sum. The reserved value 0 is replaced by 0xffff.
fn complement(sum: u16) -> u16 {
    if sum == 0xffff { 0xffff } else { !sum }
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::{changed, checksum, checksum_of_parts};

    /// Computes the checksum by its definition, word by word.
    fn by_definition(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for word in bytes.chunks(2) {
            sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        if sum == 0xffff { 0xffff } else { !(sum as u16) }
    }

    /// Checks the example of RFC 1071, section 3: the sum of the words 0001 f203 f4f5 f6f7 is ddf2.
    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&bytes), !0xddf2);
    }

    #[test]
    fn every_length_and_a_change_of_any_word() {
        let mut rng = Rng(1);
        for length in 0..200 {
            let mut bytes: Vec<u8> = (0..length).map(|_| rng.bits() as u8).collect();
            let before = checksum(&bytes);
            assert_eq!(before, by_definition(&bytes), "of {length} bytes");
            let (first, second) = bytes.split_at(rng.below(length / 2 + 1) * 2);
            assert_eq!(before, checksum_of_parts(first, second));
            if length >= 2 {
                let at = rng.below(length / 2) * 2;
                let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                let new = rng.bits() as u16;
                bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
                assert_eq!(changed(before, old, new), by_definition(&bytes));
            }
        }
    }

    #[test]
    fn the_checksum_is_never_zero() {
        assert_eq!(checksum(&[0xff, 0xff]), 0xffff);
    }
}
