//! Where a setting may be kept, on any machine.

use std::fmt;

use serde::Deserialize;

use crate::found::Place;
use crate::registry::Key;

/// A place with parts that machines differ in, written `<adapter>` or `<interface>`: such a part
/// stands for one name of a key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum PlacePattern {
    /// A value of the registry.
    Registry {
        /// The key, with the hive's short name.
        key: String,
        /// The value's name.
        name: String,
    },
    /// An element of the boot configuration, as `bcdedit` names it.
    Boot {
        /// The element's name.
        boot: String,
    },
    /// A setting of every power scheme.
    Power {
        /// The setting's GUID, without braces.
        power: String,
    },
    /// What a command answers.
    Answer {
        /// The command as it is typed, without what chooses objects.
        command: String,
        /// The property.
        property: String,
    },
    /// A variable of the kernel.
    Kernel {
        /// Its symbol without module.
        kernel: String,
    },
}

impl PlacePattern {
    /// Whether it is where something was found.
    pub fn is(&self, place: &Place) -> bool {
        match (self, place) {
            (PlacePattern::Registry { name, .. }, Place::Registry { key, name: found }) => {
                same(name, found) && self.is_in(key)
            }
            (PlacePattern::Boot { boot }, Place::Boot { element, .. }) => same(boot, element),
            (PlacePattern::Power { power }, Place::Power { setting, .. }) => {
                same(power, setting.trim_matches(['{', '}']))
            }
            (
                PlacePattern::Answer { command, property },
                Place::Answer {
                    command: asked,
                    property: found,
                    ..
                },
            ) => same(command, asked) && same(property, found),
            (PlacePattern::Kernel { kernel }, Place::Kernel { symbol }) => same(kernel, symbol),
            _ => false,
        }
    }

    /// Whether it is a value of the registry in this key, whatever its name.
    pub fn is_in(&self, found: &Key) -> bool {
        let PlacePattern::Registry { key, .. } = self else {
            return false;
        };
        let mut asked = key.split('\\');
        let mut found = found.as_str().split('\\');
        loop {
            match (asked.next(), found.next()) {
                (None, None) => return true,
                (Some(asked), Some(found)) if is_open(asked) || same(asked, found) => {}
                _ => return false,
            }
        }
    }

    /// What the open parts of its key stand for in the key of a place that it [is](Self::is).
    pub fn open_parts<'k>(&self, found: &'k Key) -> Vec<&'k str> {
        let PlacePattern::Registry { key, .. } = self else {
            return Vec::new();
        };
        let parts = key.split('\\').zip(found.as_str().split('\\'));
        (parts.filter(|(asked, _)| is_open(asked)))
            .map(|(_, found)| found)
            .collect()
    }

    /// The last part of the place: the name of a value, an element, a setting, a property or a symbol.
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

/// Whether two names are one to Windows.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

/// Whether a part of a key stands for any name.
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
    fn an_open_part_stands_for_one_name() {
        let acks = PlacePattern::Registry {
            key: r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\<interface>"
                .to_owned(),
            name: "TcpAckFrequency".to_owned(),
        };
        let base = r"HKLM\System\ControlSet001\Services\Tcpip\Parameters\Interfaces";
        assert!(acks.is(&place(&format!(r"{base}\{{1234}}"), "tcpackfrequency")));
        let key = Key::new(&format!(r"{base}\{{1234}}")).unwrap();
        assert_eq!(acks.open_parts(&key), ["{1234}"]);
        assert!(!acks.is(&place(base, "TcpAckFrequency")));
        assert!(!acks.is(&place(&format!(r"{base}\a\b"), "TcpAckFrequency")));
        assert!(!acks.is(&place(&format!(r"{base}\a"), "TcpNoDelay")));
    }

    #[test]
    fn the_power_setting_is_found_in_every_scheme() {
        let parking = PlacePattern::Power {
            power: "0cc5b647-c1df-4637-891a-dec35c318583".to_owned(),
        };
        assert!(parking.is(&Place::Power {
            scheme: "381b4222-f694-41f0-9685-ff5bb260df2e".to_owned(),
            subgroup: "54533251-82be-4824-96c1-47b60b740d00".to_owned(),
            setting: "{0CC5B647-C1DF-4637-891A-DEC35C318583}".to_owned(),
            on_battery: true,
        }));
    }
}
