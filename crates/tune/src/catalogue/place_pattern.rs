//! Patterns of places, which match the places of a setting on any machine.

use std::fmt;

use registry::{Key, is_same_name};
use serde::Deserialize;

use crate::placed_value::Place;

/// A place in which parts of a registry key may be placeholders, such as `<adapter>` or `<interface>`. A
/// placeholder matches the name of any one key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum PlacePattern {
    /// A registry value.
    Registry {
        /// Registry key, with the abbreviation of its root, such as `HKLM`. Parts may be placeholders.
        key: String,
        /// Name of the registry value.
        name: String,
    },
    /// An element of a boot entry.
    Boot {
        /// Name of the element in the output of `bcdedit`.
        boot: String,
    },
    /// A setting of any power scheme.
    Power {
        /// GUID of the setting without braces.
        power: String,
    },
    /// A property in the output of a command.
    Answer {
        /// The command, without the arguments that select an object.
        command: String,
        /// Name of the property.
        property: String,
    },
    /// A kernel variable.
    Kernel {
        /// Name of the symbol, without its module.
        kernel: String,
    },
}

impl PlacePattern {
    /// Returns true if the pattern matches a place.
    pub fn matches(&self, place: &Place) -> bool {
        match (self, place) {
            (PlacePattern::Registry { name, .. }, Place::Registry { key, name: found }) => {
                is_same_name(name, found) && self.is_in(key)
            }
            (PlacePattern::Boot { boot }, Place::Boot { element, .. }) => {
                is_same_name(boot, element)
            }
            (PlacePattern::Power { power }, Place::Power { setting, .. }) => {
                is_same_name(power, setting.trim_matches(['{', '}']))
            }
            (
                PlacePattern::Answer { command, property },
                Place::Answer {
                    command: asked,
                    property: found,
                    ..
                },
            ) => is_same_name(command, asked) && is_same_name(property, found),
            (PlacePattern::Kernel { kernel }, Place::Kernel { symbol }) => {
                is_same_name(kernel, symbol)
            }
            _ => false,
        }
    }

    /// Returns true if `own` is the registry key of the pattern.
    pub fn is_in(&self, own: &Key) -> bool {
        let PlacePattern::Registry { key, .. } = self else {
            return false;
        };
        let mut parts = key.split('\\');
        let mut own = own.as_str().split('\\');
        loop {
            match (parts.next(), own.next()) {
                (None, None) => return true,
                (Some(part), Some(own)) if is_open(part) || is_same_name(part, own) => {}
                _ => return false,
            }
        }
    }

    /// Returns the parts of the registry key that match the placeholders of the pattern.
    pub fn open_parts<'k>(&self, own: &'k Key) -> Vec<&'k str> {
        let PlacePattern::Registry { key, .. } = self else {
            return Vec::new();
        };
        let parts = key.split('\\').zip(own.as_str().split('\\'));
        (parts.filter(|(asked, _)| is_open(asked)))
            .map(|(_, found)| found)
            .collect()
    }

    /// Returns the last part of the place: the name of a registry value, boot element, property or
    /// symbol, or the GUID of a power setting.
    pub fn name(&self) -> &str {
        match self {
            PlacePattern::Registry { name, .. } => name,
            PlacePattern::Boot { boot } => boot,
            PlacePattern::Power { power } => power,
            PlacePattern::Answer { property, .. } => property,
            PlacePattern::Kernel { kernel } => kernel,
        }
    }
}

/// Returns true if a part of a registry key is a placeholder, such as `<adapter>`.
pub(crate) fn is_open(part: &str) -> bool {
    part.starts_with('<') && part.ends_with('>')
}

impl fmt::Display for PlacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacePattern::Registry { key, name } => write!(f, "{key}\\{name}"),
            PlacePattern::Boot { boot } => write!(f, "bcdedit {boot}"),
            PlacePattern::Power { power } => write!(f, "powercfg {power}"),
            PlacePattern::Answer { command, property } => write!(f, "{command}: {property}"),
            PlacePattern::Kernel { kernel } => write!(f, "nt!{kernel}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &str, name: &str) -> Place {
        Place::Registry {
            key: Key::new(key).unwrap(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn an_open_part_matches_one_name() {
        let acks = PlacePattern::Registry {
            key: r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\<interface>"
                .to_owned(),
            name: "TcpAckFrequency".to_owned(),
        };
        let base = r"HKLM\System\ControlSet001\Services\Tcpip\Parameters\Interfaces";
        assert!(acks.matches(&place(&format!(r"{base}\{{1234}}"), "tcpackfrequency")));
        let key = Key::new(&format!(r"{base}\{{1234}}")).unwrap();
        assert_eq!(acks.open_parts(&key), ["{1234}"]);
        assert!(!acks.matches(&place(base, "TcpAckFrequency")));
        assert!(!acks.matches(&place(&format!(r"{base}\a\b"), "TcpAckFrequency")));
        assert!(!acks.matches(&place(&format!(r"{base}\a"), "TcpNoDelay")));
    }

    #[test]
    fn a_power_setting_matches_in_every_scheme() {
        let parking = PlacePattern::Power {
            power: "0cc5b647-c1df-4637-891a-dec35c318583".to_owned(),
        };
        assert!(parking.matches(&Place::Power {
            scheme: "381b4222-f694-41f0-9685-ff5bb260df2e".into(),
            subgroup: "54533251-82be-4824-96c1-47b60b740d00".into(),
            setting: "{0CC5B647-C1DF-4637-891A-DEC35C318583}".into(),
            on_battery: true,
        }));
    }
}
