//! What was found of a machine's settings, and where.

use std::fmt;

use crate::registry::{Key, Value};

/// A setting's place and value, as an input says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is set.
    pub place: Place,
    /// What it is set to; `None` where the input says that it is not set (as `"name"=-` in a `.reg`).
    pub value: Option<Value>,
    /// Who says so.
    pub origin: Origin,
}

/// Where a setting is kept.
///
/// Names are equal whatever their case; compare places by [`Place::is`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A value of the registry.
    Registry {
        /// The key.
        key: Key,
        /// The value's name; empty for the key's default value.
        name: String,
    },
    /// An element of an entry of the boot configuration.
    Boot {
        /// The entry, such as `{current}`.
        entry: String,
        /// The element as `bcdedit` names it, such as `useplatformclock`.
        element: String,
    },
    /// A setting of a power scheme.
    Power {
        /// The scheme's GUID.
        scheme: String,
        /// The GUID of the group that the setting is in, which is the same in every scheme.
        subgroup: String,
        /// The setting's GUID.
        setting: String,
        /// Whether this is its value while on battery.
        on_battery: bool,
    },
    /// What a command answers: a property of an object, such as `RequireSecuritySignature` of
    /// `Get-SmbServerConfiguration`, or `*RSS` of `Get-NetAdapterAdvancedProperty` for `Ethernet`.
    Answer {
        /// The command without its arguments.
        command: String,
        /// What it tells of, if of several: an adapter's name, for instance.
        object: String,
        /// The property.
        property: String,
    },
    /// A variable of the kernel, read by a debugger.
    Kernel {
        /// Its symbol without module, such as `PsPrioritySeparation`.
        symbol: String,
    },
}

impl Place {
    /// Whether both are one place to Windows, which does not tell cases apart.
    pub fn is(&self, other: &Self) -> bool {
        self.to_string().to_lowercase() == other.to_string().to_lowercase()
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
                write!(
                    f,
                    "power {scheme} {setting} {}",
                    if *on_battery { "DC" } else { "AC" }
                )
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

/// Where an input says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The input's name: a file, a file within an archive, or the live machine.
    pub source: String,
    /// Where in it.
    pub at: At,
}

/// A place in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A line of text, counted from 1.
    Line(u32),
    /// A byte, counted from 0.
    Offset(u64),
    /// The whole of it.
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
