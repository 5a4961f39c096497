//! Decoding of text files in the encodings of Windows.

/// Decoded text of a file.
pub(super) struct Text {
    /// The text, without its byte order mark.
    pub(super) text: String,
    /// True if the bytes are neither UTF-8 nor UTF-16, so that characters other than ASCII may be wrong.
    pub(super) guessed: bool,
}

/// Decodes UTF-16 (either byte order) and UTF-8, with or without byte order mark. Other bytes are
/// decoded as Latin-1. This is correct for ASCII, and the keywords of all formats are ASCII.
///
/// Takes the bytes, so that a large export is not in memory twice.
pub(super) fn decode(bytes: impl Into<Vec<u8>>) -> Text {
    let bytes = bytes.into();
    let certain = |text| Text {
        text,
        guessed: false,
    };
    match &bytes[..] {
        [0xFF, 0xFE, rest @ ..] => certain(utf16(rest, u16::from_le_bytes)),
        [0xFE, 0xFF, rest @ ..] => certain(utf16(rest, u16::from_be_bytes)),
        [0xEF, 0xBB, 0xBF, rest @ ..] => certain(String::from_utf8_lossy(rest).into_owned()),
        _ => match zeros(&bytes) {
            Zeros::Second => certain(utf16(&bytes, u16::from_le_bytes)),
            Zeros::First => certain(utf16(&bytes, u16::from_be_bytes)),
            Zeros::Elsewhere => match String::from_utf8(bytes) {
                Ok(text) => certain(text),
                Err(error) => Text {
                    text: error.as_bytes().iter().copied().map(char::from).collect(),
                    guessed: true,
                },
            },
        },
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    char::decode_utf16(units.iter().map(|bytes| unit(*bytes)))
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Position of zero bytes in pairs of bytes.
enum Zeros {
    First,
    Second,
    Elsewhere,
}

/// Finds zero bytes in the first pairs of bytes. In UTF-16, ASCII text has one zero byte in each pair. One
/// pair in eight may lack a zero byte.
fn zeros(bytes: &[u8]) -> Zeros {
    let (pairs, _) = bytes.as_chunks::<2>();
    let pairs = &pairs[..pairs.len().min(64)];
    let most = |zero: usize| {
        let ascii = pairs
            .iter()
            .filter(|pair| pair[zero] == 0 && pair[1 - zero] != 0);
        !pairs.is_empty() && ascii.count() * 8 >= pairs.len() * 7
    };
    if most(1) {
        Zeros::Second
    } else if most(0) {
        Zeros::First
    } else {
        Zeros::Elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_in_all_encodings() {
        let text = "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\Gerät]\r\n";
        let units = || text.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let with = |mark: &[u8], bytes: &[u8]| [mark, bytes].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            with(b"\xEF\xBB\xBF", text.as_bytes()),
            with(b"\xFF\xFE", &little),
            with(b"\xFE\xFF", &big),
            little,
            big,
        ] {
            let read = decode(bytes);
            assert_eq!(read.text, text);
            assert!(!read.guessed);
        }
        let latin = decode(b"Ger\xE4t");
        assert_eq!((latin.text.as_str(), latin.guessed), ("Gerät", true));
    }
}
