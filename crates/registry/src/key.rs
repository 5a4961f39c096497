//! Paths of registry keys.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Value;

/// A value of a key in a file that lists registry values (such as a `.reg` file).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path of the key.
    pub key: Key,
    /// Name of the value. The name of the key's default value is empty.
    pub name: String,
    /// Type and data of the value; `None` if the entry deletes the value.
    pub value: Option<Value>,
}

/// Path of a key. It consists of the short name of the root key and the names of the keys below, such as
/// `HKLM\SYSTEM\CurrentControlSet\Control`.
///
/// All spellings (`HKEY_LOCAL_MACHINE`, `[MACHINE]`, `HKLM:\`, `Registry::`, a numbered control set) are
/// converted to this form. Comparisons ignore case, as Windows does. Clones of a `Key` share the text,
/// because an export has many values with the same key.
#[derive(Clone, Debug)]
pub struct Key(Arc<str>);

/// Spellings of the root keys. Each spelling has the short name of its root key.
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
    /// Parses an absolute path. Returns `None` if `text` does not start with a root key.
    ///
    /// Replaces a numbered control set (`ControlSet001`) by `CurrentControlSet`. The caller must skip paths of control
    /// sets that are not current.
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
        Some(Self(path.into()))
    }

    /// Returns the path of the subkey called `name`.
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}\\{name}", self.0).into())
    }

    /// Returns the path with the long name of the root key, such as `HKEY_LOCAL_MACHINE\SYSTEM`.
    pub fn long(&self) -> String {
        let (hive, rest) = self.0.split_at(self.0.find('\\').unwrap_or(self.0.len()));
        let long = HIVES.iter().find(|(_, short)| *short == hive);
        format!("{}{rest}", long.map_or(hive, |(long, _)| long))
    }

    /// Returns the path with the short name of the root key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true if a name is `ControlSet` and three digits.
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
        is_same_name(&self.0, &other.0)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_lowercase().hash(state);
    }
}

/// Returns true if two names are equal. Ignores case, as Windows does.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let is_ascii = one.is_ascii() && other.is_ascii();
    one.eq_ignore_ascii_case(other) || !is_ascii && one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_key_are_equal() {
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
