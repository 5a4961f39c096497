//! GUIDs in their on-disk (mixed-endian) form.

use std::fmt;
use std::str::FromStr;

/// A GUID as its 16 bytes on disk. The first three groups of digits are little-endian. The other bytes are in
/// the order of the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// GUID of zeros.
    pub const ZERO: Guid = Guid([0; 16]);

    /// Builds a GUID from the groups of its text. An example is `Guid::new(0x68fdd900, 0x4a3e, 0x11d1,
    /// [..8])`.
    pub const fn new(a: u32, b: u16, c: u16, d: [u8; 8]) -> Guid {
        let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
        Guid([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5],
            d[6], d[7],
        ])
    }

    /// Builds a GUID from its digits in the order of its text. An example is
    /// `Guid::from_u128(0x68fdd900_4a3e_11d1_84f4_0000f80464e3)`.
    pub const fn from_u128(digits: u128) -> Guid {
        let mut b = digits.to_be_bytes();
        (b[0], b[1], b[2], b[3]) = (b[3], b[2], b[1], b[0]);
        (b[4], b[5]) = (b[5], b[4]);
        (b[6], b[7]) = (b[7], b[6]);
        Guid(b)
    }

    /// Reads a GUID from the first 16 bytes of `bytes`. Returns `None` if `bytes` has fewer than 16 bytes.
    pub fn read(bytes: &[u8]) -> Option<Guid> {
        bytes.first_chunk::<16>().map(|b| Guid(*b))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = &self.0;
        write!(
            f,
            "{:02x}{:02x}{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-",
            b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9]
        )?;
        b[10..].iter().try_for_each(|x| write!(f, "{x:02x}"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error for a text that is not a GUID. A GUID has 32 hexadecimal digits, with or without dashes
/// and braces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a GUID (expected 8-4-4-4-12 hexadecimal digits)")]
pub struct ParseGuidError(String);

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Guid, ParseGuidError> {
        let error = || ParseGuidError(text.chars().take(64).collect());
        let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
        let digits: Vec<u8> = inner
            .bytes()
            .filter(|b| *b != b'-')
            .map(|b| (b as char).to_digit(16).map(|d| d as u8).ok_or_else(error))
            .collect::<Result<_, _>>()?;
        if digits.len() != 32 {
            return Err(error());
        }
        let mut b = [0u8; 16];
        for (byte, pair) in b.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        b[0..4].reverse();
        b[4..6].reverse();
        b[6..8].reverse();
        Ok(Guid(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c";
        let guid: Guid = text.parse().unwrap();
        assert_eq!(guid.0[..4], [0xd1, 0xa8, 0x6f, 0x3d]);
        assert_eq!(guid.to_string(), text);
        let built = Guid::new(
            0x3d6fa8d1,
            0xfe05,
            0x11d0,
            [0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba, 0x7c],
        );
        assert_eq!(guid, built);
        assert_eq!(
            guid,
            Guid::from_u128(0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c)
        );
        assert_eq!("{3D6FA8D1-FE05-11D0-9DDA-00C04FD7BA7C}".parse(), Ok(guid));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "3d6fa8d1",
            "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7g",
            "äöü",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text}");
        }
    }
}
