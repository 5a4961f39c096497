//! Conditions on machines and power schemes.

use std::fmt;

use serde::Deserialize;

use crate::machine::{Edition, Machine};
use crate::placed_value::Place;

/// A condition of a catalogue entry. Each field that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// First build of Windows, inclusive.
    pub from: Option<u32>,
    /// Last build of Windows, inclusive.
    pub until: Option<u32>,
    /// Editions, by kind; empty for all editions.
    #[serde(default)]
    pub on: Vec<Kind>,
    /// Power scheme to which the condition is limited.
    pub scheme: Option<Scheme>,
    /// True to match only values on battery. False to match only values on mains. `None` to match both.
    pub on_battery: Option<bool>,
}

/// Group of editions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Home, Pro, Enterprise and Education.
    Client,
    /// Home.
    Home,
    /// Enterprise and Education.
    Enterprise,
    /// Pro, Enterprise and Education.
    Business,
    /// Servers, including domain controllers.
    Server,
    /// Domain controllers.
    DomainController,
}

impl Kind {
    fn has(self, edition: Edition) -> bool {
        match self {
            Kind::Client => !edition.is_server(),
            Kind::Home => edition == Edition::Home,
            Kind::Enterprise => edition == Edition::Enterprise,
            Kind::Business => matches!(edition, Edition::Pro | Edition::Enterprise),
            Kind::Server => edition.is_server(),
            Kind::DomainController => edition == Edition::DomainController,
        }
    }
}

/// Power scheme that is part of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Balanced.
    Balanced,
    /// High performance.
    HighPerformance,
}

impl Scheme {
    /// Returns the GUID of the scheme.
    ///
    /// Source: <https://learn.microsoft.com/windows/win32/power/power-policy-settings>
    pub fn guid(self) -> &'static str {
        match self {
            Scheme::Balanced => "381b4222-f694-41f0-9685-ff5bb260df2e",
            Scheme::HighPerformance => "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c",
        }
    }
}

impl Condition {
    /// Returns true if the condition is true for the setting at `place` on a machine. Returns `None` if too
    /// little is known about the machine.
    pub fn holds(&self, machine: &Machine, place: Option<&Place>) -> Option<bool> {
        let (scheme, on_battery) = match place {
            Some(Place::Power {
                scheme, on_battery, ..
            }) => (Some(scheme), Some(*on_battery)),
            _ => (None, None),
        };
        let build = |asked: Option<u32>, fits: fn(u32, u32) -> bool| match asked {
            None => Some(true),
            Some(asked) => machine.build.map(|build| fits(build, asked)),
        };
        let parts = [
            build(self.from, |build, from| build >= from),
            build(self.until, |build, until| build <= until),
            if self.on.is_empty() {
                Some(true)
            } else {
                (machine.edition).map(|edition| self.on.iter().any(|on| on.has(edition)))
            },
            match self.scheme {
                None => Some(true),
                Some(asked) => scheme.map(|scheme| {
                    let scheme = scheme.trim_matches(['{', '}']);
                    scheme.eq_ignore_ascii_case(asked.guid())
                }),
            },
            match self.on_battery {
                None => Some(true),
                Some(asked) => on_battery.map(|found| found == asked),
            },
        ];
        match parts {
            parts if parts.contains(&Some(false)) => Some(false),
            parts if parts.contains(&None) => None,
            _ => Some(true),
        }
    }
}

impl fmt::Display for Condition {
    /// Formats the condition, for example `clients except Home, builds 26100 and later`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.on.is_empty() {
            let kinds: Vec<&str> = (self.on.iter())
                .map(|kind| match kind {
                    Kind::Client => "clients",
                    Kind::Home => "Home",
                    Kind::Enterprise => "Enterprise and Education",
                    Kind::Business => "clients except Home",
                    Kind::Server => "servers",
                    Kind::DomainController => "domain controllers",
                })
                .collect();
            parts.push(kinds.join(" and "));
        }
        match (self.from, self.until) {
            (None, None) => {}
            (Some(from), None) => parts.push(format!("builds {from} and later")),
            (None, Some(until)) => parts.push(format!("builds up to {until}")),
            (Some(from), Some(until)) if from == until => parts.push(format!("build {from}")),
            (Some(from), Some(until)) => parts.push(format!("builds {from} to {until}")),
        }
        if let Some(scheme) = self.scheme {
            let scheme = match scheme {
                Scheme::Balanced => "Balanced",
                Scheme::HighPerformance => "High performance",
            };
            parts.push(scheme.to_owned());
        }
        if let Some(on_battery) = self.on_battery {
            let source = if on_battery {
                "on battery"
            } else {
                "plugged in"
            };
            parts.push(source.to_owned());
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parts_stay_open() {
        let new_pro = Condition {
            from: Some(26100),
            on: vec![Kind::Business],
            ..Condition::default()
        };
        let machine = |build, edition| Machine {
            name: None,
            build,
            edition,
        };
        let holds = |machine: Machine| new_pro.holds(&machine, None);
        assert_eq!(holds(machine(Some(26200), Some(Edition::Pro))), Some(true));
        assert_eq!(
            holds(machine(Some(26200), Some(Edition::Home))),
            Some(false)
        );
        assert_eq!(holds(machine(Some(26200), None)), None);
        assert_eq!(holds(machine(Some(19045), None)), Some(false));
        assert_eq!(
            Condition::default().holds(&Machine::default(), None),
            Some(true)
        );
        assert_eq!(
            new_pro.to_string(),
            "clients except Home, builds 26100 and later"
        );
    }
}
