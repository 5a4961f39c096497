//! Values that an input sets or deletes: the place of the setting, its value, and the line or offset in
//! the input.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use registry::{Key, Value, is_same_name};

/// A value that an input sets or deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedValue {
    /// Place of the setting.
    pub place: Place,
    /// New value. `None` if the input deletes the value (`"name"=-` in a `.reg` file).
    pub value: Option<Value>,
    /// Input that sets or deletes the value, and the position in this input.
    pub origin: Origin,
}

/// Location at which Windows stores a setting, such as a registry value.
///
/// Comparison ignores case, like Windows. Most places are registry values, and an export has a million of
/// them, so the texts of larger variants are boxed.
#[derive(Clone, Debug)]
pub enum Place {
    /// A registry value.
    Registry {
        /// Registry key.
        key: Key,
        /// Name of the value; empty for the key's default value.
        name: String,
    },
    /// An element of a boot entry.
    Boot {
        /// The entry, such as `{current}`.
        entry: String,
        /// Name of the element in the output of `bcdedit`, such as `useplatformclock`.
        element: String,
    },
    /// A setting of a power scheme.
    Power {
        /// GUID of the scheme.
        scheme: Box<str>,
        /// GUID of the subgroup of settings. It is the same in every scheme.
        subgroup: Box<str>,
        /// GUID of the setting.
        setting: Box<str>,
        /// True if the value applies while the machine runs on battery.
        on_battery: bool,
    },
    /// A property in the output of a command, such as `RequireSecuritySignature` of
    /// `Get-SmbServerConfiguration`, or `*RSS` of `Get-NetAdapterAdvancedProperty` for `Ethernet`.
    Answer {
        /// The command without arguments.
        command: Box<str>,
        /// Name of the object, such as a network adapter; empty if the command describes only one
        /// object.
        object: Box<str>,
        /// Name of the property.
        property: Box<str>,
    },
    /// A kernel variable, read by a debugger.
    Kernel {
        /// Name of the symbol without its module, such as `PsPrioritySeparation`.
        symbol: String,
    },
}

impl Place {
    /// Returns the names that distinguish the places of one kind.
    fn names(&self) -> [&str; 3] {
        match self {
            Self::Registry { key, name } => [key.as_str(), name, ""],
            Self::Boot { entry, element } => [entry, element, ""],
            Self::Power {
                scheme,
                setting,
                on_battery,
                ..
            } => [scheme, setting, supply(*on_battery)],
            Self::Answer {
                command,
                object,
                property,
            } => [command, object, property],
            Self::Kernel { symbol } => [symbol, "", ""],
        }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        let mut names = self.names().into_iter().zip(other.names());
        discriminant(self) == discriminant(other)
            && names.all(|(one, other)| is_same_name(one, other))
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        for name in self.names() {
            name.to_lowercase().hash(state);
        }
    }
}

/// Returns the name of a power supply.
fn supply(on_battery: bool) -> &'static str {
    if on_battery { "DC" } else { "AC" }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { key, name } if name.is_empty() => write!(f, "{key}\\(Default)"),
            Self::Registry { key, name } => write!(f, "{key}\\{name}"),
            Self::Boot { entry, element } => write!(f, "bcd {entry} {element}"),
            Self::Power {
                scheme,
                setting,
                on_battery,
                ..
            } => write!(f, "power {scheme} {setting} {}", supply(*on_battery)),
            Self::Answer {
                command,
                object,
                property,
            } if object.is_empty() => write!(f, "{command} {property}"),
            Self::Answer {
                command,
                object,
                property,
            } => write!(f, "{command} \"{object}\" {property}"),
            Self::Kernel { symbol } => write!(f, "nt!{symbol}"),
        }
    }
}

/// Input that contains a value, and the position in this input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the input: a file, a file in an archive, or the live registry.
    pub source: Arc<str>,
    /// Position of the value in the input.
    pub at: InputPosition,
}

/// A position in an input. Later positions in the same input are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputPosition {
    /// Line of text, counted from 1.
    Line(u32),
    /// Byte offset, counted from 0.
    Offset(u64),
    /// The whole input, without a position.
    Whole,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            InputPosition::Line(line) => write!(f, "{}:{line}", self.source),
            InputPosition::Offset(offset) => write!(f, "{} at {offset:#x}", self.source),
            InputPosition::Whole => f.write_str(&self.source),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn case_does_not_distinguish_places() {
        let place = |key: &str, name: &str| Place::Registry {
            key: Key::new(key).unwrap(),
            name: name.to_owned(),
        };
        let places = HashSet::from([place(r"HKLM\SOFTWARE\Gerät", "Name")]);
        assert!(places.contains(&place(r"hklm:\software\GERÄT", "NAME")));
        assert!(!places.contains(&place(r"HKLM\SOFTWARE", r"Gerät\Name")));
        let answer = Place::Answer {
            command: r"HKLM\SOFTWARE\Gerät".into(),
            object: "Name".into(),
            property: "".into(),
        };
        assert!(!places.contains(&answer));
    }

    /// Checks the memory. An audit of an export with a million values needs at most 300 bytes for each value:
    /// this struct, the texts of the name and the value, the index entry, and the text of the file.
    #[test]
    fn values_are_small() {
        assert!(
            size_of::<PlacedValue>() <= 120,
            "{}",
            size_of::<PlacedValue>()
        );
        let key = Key::new(r"HKLM\SOFTWARE").unwrap();
        let shared = key.clone();
        assert!(std::ptr::eq(key.as_str(), shared.as_str()));
    }
}
