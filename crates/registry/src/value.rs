//! Registry values and their types.

use std::fmt;

/// A registry value with its type.
///
/// Types: <https://learn.microsoft.com/windows/win32/sysinfo/registry-value-types>
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// REG_NONE.
    None,
    /// REG_SZ.
    Text(String),
    /// REG_EXPAND_SZ; environment variables are not expanded.
    Expandable(String),
    /// REG_BINARY.
    Binary(Vec<u8>),
    /// REG_DWORD.
    Dword(u32),
    /// REG_MULTI_SZ.
    List(Vec<String>),
    /// REG_QWORD.
    Qword(u64),
    /// Value whose type has no variant here, or whose bytes do not match its type. Contains the type number
    /// and the bytes.
    Other(u32, Vec<u8>),
}

impl Value {
    /// Returns the name of the type, such as `REG_DWORD`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "REG_NONE",
            Self::Text(_) => "REG_SZ",
            Self::Expandable(_) => "REG_EXPAND_SZ",
            Self::Binary(_) => "REG_BINARY",
            Self::Dword(_) => "REG_DWORD",
            Self::List(_) => "REG_MULTI_SZ",
            Self::Qword(_) => "REG_QWORD",
            Self::Other(1 | 2 | 7, _) => "text that is not UTF-16",
            Self::Other(4, _) => "REG_DWORD of the wrong length",
            Self::Other(11, _) => "REG_QWORD of the wrong length",
            Self::Other(..) => "an unknown type",
        }
    }

    /// Decodes the data of a value with the type number `kind`.
    ///
    /// Returns [`Value::Other`] if the bytes do not match the type. Examples are a REG_DWORD that does not
    /// have 4 bytes, and a text that is not UTF-16.
    pub fn from_bytes(kind: u32, bytes: &[u8]) -> Self {
        let other = || Self::Other(kind, bytes.to_vec());
        match kind {
            0 if bytes.is_empty() => Self::None,
            1 => text(bytes).map_or_else(other, Self::Text),
            2 => text(bytes).map_or_else(other, Self::Expandable),
            3 => Self::Binary(bytes.to_vec()),
            4 => bytes
                .try_into()
                .map_or_else(|_| other(), |bytes| Self::Dword(u32::from_le_bytes(bytes))),
            7 => list(bytes).map_or_else(other, Self::List),
            11 => bytes
                .try_into()
                .map_or_else(|_| other(), |bytes| Self::Qword(u64::from_le_bytes(bytes))),
            _ => other(),
        }
    }

    /// Returns the type number and the bytes as the registry stores them.
    pub fn to_bytes(&self) -> (u32, Vec<u8>) {
        let utf16 = |text: &str| -> Vec<u8> {
            text.encode_utf16()
                .chain([0])
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        match self {
            Self::None => (0, Vec::new()),
            Self::Text(text) => (1, utf16(text)),
            Self::Expandable(text) => (2, utf16(text)),
            Self::Binary(bytes) => (3, bytes.clone()),
            Self::Dword(number) => (4, number.to_le_bytes().to_vec()),
            Self::List(lines) => {
                let mut bytes: Vec<u8> = lines.iter().flat_map(|line| utf16(line)).collect();
                bytes.extend([0, 0]);
                (7, bytes)
            }
            Self::Qword(number) => (11, number.to_le_bytes().to_vec()),
            Self::Other(kind, bytes) => (*kind, bytes.clone()),
        }
    }

    /// Returns the number of a REG_DWORD or REG_QWORD. Returns `None` for other types.
    pub fn number(&self) -> Option<u64> {
        match *self {
            Self::Dword(number) => Some(number.into()),
            Self::Qword(number) => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing"),
            Self::Text(text) | Self::Expandable(text) => write!(f, "\"{}\"", text.escape_debug()),
            Self::Dword(number) => write!(f, "{number:#x}"),
            Self::Qword(number) => write!(f, "{number:#x}"),
            Self::List(lines) => write!(f, "{lines:?}"),
            Self::Binary(bytes) | Self::Other(_, bytes) => {
                for (place, byte) in bytes.iter().enumerate() {
                    let separator = if place == 0 { "" } else { "," };
                    write!(f, "{separator}{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// Decodes UTF-16 text up to its NUL. Returns `None` if the text is not valid UTF-16.
fn text(bytes: &[u8]) -> Option<String> {
    let (units, odd) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    odd.is_empty().then(|| String::from_utf16(&units).ok())?
}

/// Decodes NUL-terminated UTF-16 texts up to the first empty text. Returns `None` if a text is not valid
/// UTF-16.
fn list(bytes: &[u8]) -> Option<Vec<String>> {
    let (units, odd) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let lines = units.split(|unit| *unit == 0);
    let lines = lines.take_while(|line| !line.is_empty());
    odd.is_empty()
        .then(|| lines.map(|line| String::from_utf16(line).ok()).collect())?
}
