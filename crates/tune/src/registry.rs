//! Keys and values of the registry, as every format that carries them means them.

use std::fmt;

/// A value of the registry with its type.
///
/// Types: <https://learn.microsoft.com/windows/win32/sysinfo/registry-value-types>
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// REG_NONE.
    None,
    /// REG_SZ.
    Text(String),
    /// REG_EXPAND_SZ, not expanded.
    Expandable(String),
    /// REG_BINARY.
    Binary(Vec<u8>),
    /// REG_DWORD.
    Dword(u32),
    /// REG_MULTI_SZ.
    List(Vec<String>),
    /// REG_QWORD.
    Qword(u64),
    /// Any other type, or bytes that do not fit the type they carry: the type's number and the bytes.
    Other(u32, Vec<u8>),
}

impl Value {
    /// The name of the type, such as `REG_DWORD`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "REG_NONE",
            Self::Text(_) => "REG_SZ",
            Self::Expandable(_) => "REG_EXPAND_SZ",
            Self::Binary(_) => "REG_BINARY",
            Self::Dword(_) => "REG_DWORD",
            Self::List(_) => "REG_MULTI_SZ",
            Self::Qword(_) => "REG_QWORD",
            Self::Other(1 | 2 | 7, _) => "text that is no UTF-16",
            Self::Other(4, _) => "REG_DWORD of the wrong length",
            Self::Other(11, _) => "REG_QWORD of the wrong length",
            Self::Other(..) => "a type of its own",
        }
    }

    /// The value of `bytes` that are kept under the type of that number.
    ///
    /// Bytes that do not fit their type (a REG_DWORD that is not four bytes long, text that is no
    /// UTF-16) are kept as they are: [`Value::Other`].
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

    /// The number of the type, and the bytes as the registry keeps them.
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

    /// The number, if it is one.
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

/// The text of UTF-16 up to its NUL, if it is UTF-16.
fn text(bytes: &[u8]) -> Option<String> {
    let (units, odd) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    odd.is_empty().then(|| String::from_utf16(&units).ok())?
}

/// The texts of UTF-16, each with its NUL, up to the empty one.
fn list(bytes: &[u8]) -> Option<Vec<String>> {
    let (units, odd) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let lines = units.split(|unit| *unit == 0);
    let lines = lines.take_while(|line| !line.is_empty());
    odd.is_empty()
        .then(|| lines.map(|line| String::from_utf16(line).ok()).collect())?
}

/// A value of a key as formats that only carry such say it, `None` where it is not to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value's name; empty for the key's default value.
    pub name: String,
    /// The value.
    pub value: Option<Value>,
}

/// A key: a hive's short name and the names below it, as `HKLM\SYSTEM\CurrentControlSet\Control`.
///
/// However it was written (`HKEY_LOCAL_MACHINE`, `[MACHINE]`, `HKLM:\`, `Registry::`, a numbered control
/// set), it is kept in this one form, and names are equal whatever their case, as they are to Windows.
#[derive(Clone, Debug)]
pub struct Key(String);

/// The ways in which the hives are written, with the short name of each.
const HIVES: [(&str, &str); 11] = [
    ("HKEY_LOCAL_MACHINE", "HKLM"),
    ("HKEY_CURRENT_USER", "HKCU"),
    ("HKEY_USERS", "HKU"),
    ("HKEY_CLASSES_ROOT", "HKCR"),
    ("HKEY_CURRENT_CONFIG", "HKCC"),
    ("HKLM", "HKLM"),
    ("HKCU", "HKCU"),
    ("HKU", "HKU"),
    ("HKCR", "HKCR"),
    ("HKCC", "HKCC"),
    ("MACHINE", "HKLM"),
];

impl Key {
    /// The key that `text` names, absolutely.
    ///
    /// A numbered control set (`ControlSet001`) is named `CurrentControlSet`: whoever knows that it is
    /// not the current one leaves it out before.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('\\');
        let text = text.strip_prefix("Registry::").unwrap_or(text);
        let (hive, rest) = match text.split_once('\\') {
            Some((hive, rest)) => (hive, Some(rest)),
            None => (text, None),
        };
        let hive = hive.trim_end_matches(':');
        let (_, hive) = HIVES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(hive))?;
        let mut path = (*hive).to_owned();
        for (depth, name) in rest
            .into_iter()
            .flat_map(|rest| rest.split('\\'))
            .enumerate()
        {
            path.push('\\');
            path.push_str(if depth == 1 && is_control_set(name) {
                "CurrentControlSet"
            } else {
                name
            });
        }
        Some(Self(path))
    }

    /// The key below this one.
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}\\{name}", self.0))
    }

    /// The key's path with the hive's long name, such as `HKEY_LOCAL_MACHINE\SYSTEM`.
    pub fn long(&self) -> String {
        let (hive, rest) = self.0.split_at(self.0.find('\\').unwrap_or(self.0.len()));
        let long = HIVES.iter().find(|(_, short)| *short == hive);
        format!("{}{rest}", long.map_or(hive, |(long, _)| long))
    }

    /// The key's path, with the hive's short name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a name is that of a numbered control set.
fn is_control_set(name: &str) -> bool {
    let prefix = name
        .get(..10)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("ControlSet"));
    prefix && name.len() == 13 && name[10..].bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_key_however_it_is_written() {
        let key = Key::new(r"HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl").unwrap();
        for written in [
            r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\PriorityControl",
            r"MACHINE\System\CurrentControlSet\Control\PriorityControl",
            r"HKLM:\SYSTEM\ControlSet001\Control\PriorityControl\",
            r"Registry::HKEY_LOCAL_MACHINE\system\currentcontrolset\control\prioritycontrol",
        ] {
            assert_eq!(Key::new(written).as_ref(), Some(&key), "{written}");
        }
        assert_eq!(Key::new(r"C:\Windows"), None);
    }
}
