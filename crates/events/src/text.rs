//! Text in payloads.

use std::borrow::Cow;
use std::fmt;

/// Bytes of UTF-16 text in a payload, without the final NUL. They are decoded only when the text is
/// formatted.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Utf16<'a>(pub &'a [u8]);

/// Bytes of text without the final NUL. The text is in the code page of the machine that logged it. The text
/// is formatted as UTF-8 if it is valid UTF-8, otherwise as Latin-1.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ansi<'a>(pub &'a [u8]);

impl<'a> Ansi<'a> {
    /// Returns the text. If the text is UTF-8, it is borrowed.
    pub fn to_str(self) -> Cow<'a, str> {
        ansi(self.0)
    }
}

impl fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&utf16(self.0))
    }
}

impl fmt::Display for Ansi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ansi(self.0))
    }
}

impl fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&utf16(self.0), f)
    }
}

impl fmt::Debug for Ansi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&ansi(self.0), f)
    }
}

/// Decodes UTF-16 text up to its first NUL. Unpaired surrogates become U+FFFD; an odd last byte is
/// ignored.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|b| u16::from_le_bytes(*b));
    char::decode_utf16(units.take_while(|unit| *unit != 0))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Decodes text up to its first NUL. If the text is valid UTF-8, decodes it as UTF-8. Otherwise, decodes it
/// as Latin-1, because a trace does not name the ANSI code page of its machine.
pub(crate) fn ansi(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = &bytes[..bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len())];
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()),
    }
}

/// Splits a UTF-16 text from the front of `bytes`. Returns the text without its NUL, and the bytes after the
/// NUL. If the text has no NUL, it ends at the end of `bytes`.
pub(crate) fn split_utf16(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (units, odd) = bytes.as_chunks::<2>();
    match units.iter().position(|unit| *unit == [0, 0]) {
        Some(nul) => (&bytes[..nul * 2], &bytes[nul * 2 + 2..]),
        None => (units.as_flattened(), odd),
    }
}

/// Splits a text of 8-bit characters from the front of `bytes`, like [`split_utf16`].
pub(crate) fn split_ansi(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|b| *b == 0) {
        Some(nul) => (&bytes[..nul], &bytes[nul + 1..]),
        None => (bytes, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_a_nul_or_at_the_end() {
        assert_eq!(utf16(b"a\0b\0\0\0c\0"), "ab");
        assert_eq!(utf16(b"\x3d\xd8\x00\xde\x00\xd8"), "\u{1f600}\u{fffd}");
        assert_eq!(ansi(b"ab\0c"), "ab");
        assert_eq!(ansi("é".as_bytes()), "é");
        assert_eq!(ansi(b"\xe9"), "é");
        assert_eq!(split_utf16(b"a\0\0\0b"), (&b"a\0"[..], &b"b"[..]));
        assert_eq!(split_utf16(b"a\0b"), (&b"a\0"[..], &b"b"[..]));
        assert_eq!(split_ansi(b"a\0b"), (&b"a"[..], &b"b"[..]));
        assert_eq!(split_ansi(b"ab"), (&b"ab"[..], &b""[..]));
    }
}
