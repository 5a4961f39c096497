//! Values that an input sets or deletes: the place of the setting, its value, and the line or offset in
//! the input.

use std::fmt;
use std::sync::Arc;

use registry::{Key, Value};

/// A value that an input sets or deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Place of the setting.
    pub place: Place,
    /// New value; `None` if the input deletes the value (`"name"=-` in a `.reg` file).
    pub value: Option<Value>,
    /// Input that sets or deletes the value, and the position in it.
    pub origin: Origin,
}

/// Location at which Windows stores a setting, such as a registry value.
///
/// Windows ignores the case of names. Compare two places by their [`id`](Place::id).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A registry value.
    Registry {
        /// The key.
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
        scheme: String,
        /// GUID of the subgroup of settings. It is the same in every scheme.
        subgroup: String,
        /// GUID of the setting.
        setting: String,
        /// True if the value applies while the machine runs on battery.
        on_battery: bool,
    },
    /// A property in the output of a command, such as `RequireSecuritySignature` of
    /// `Get-SmbServerConfiguration`, or `*RSS` of `Get-NetAdapterAdvancedProperty` for `Ethernet`.
    Answer {
        /// The command without arguments.
        command: String,
        /// Name of the object, such as a network adapter; empty if the command describes only one
        /// object.
        object: String,
        /// The property.
        property: String,
    },
    /// A kernel variable, read by a debugger.
    Kernel {
        /// Name of the symbol without its module, such as `PsPrioritySeparation`.
        symbol: String,
    },
}

impl Place {
    /// Returns the place as lower-case text. Equal places have equal texts.
    pub fn id(&self) -> String {
        self.to_string().to_lowercase()
    }
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
            } => {
                let supply = if *on_battery { "DC" } else { "AC" };
                write!(f, "power {scheme} {setting} {supply}")
            }
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

/// Input that has a value, and the position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the input: a file, a file in an archive, or the live registry.
    pub source: Arc<str>,
    /// Position in the input.
    pub at: At,
}

/// A position in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
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
            At::Line(line) => write!(f, "{}:{line}", self.source),
            At::Offset(offset) => write!(f, "{} at {offset:#x}", self.source),
            At::Whole => f.write_str(&self.source),
        }
    }
}
