//! Name, build and edition of a machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A machine. A decision that depends on an unknown field remains undecided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Computer name that an input states.
    pub name: Option<String>,
    /// Build of Windows, such as 22631.
    pub build: Option<u32>,
    /// Edition of Windows.
    pub edition: Option<Edition>,
}

/// Editions of Windows that differ in their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edition {
    /// Home edition of a client.
    Home,
    /// Pro edition of a client.
    Pro,
    /// Enterprise or Education edition of a client.
    Enterprise,
    /// Server that is not a domain controller.
    Server,
    /// Domain controller.
    DomainController,
}

impl Edition {
    /// All editions.
    pub const ALL: [Edition; 5] = [
        Edition::Home,
        Edition::Pro,
        Edition::Enterprise,
        Edition::Server,
        Edition::DomainController,
    ];

    /// Returns true if this is a server edition.
    pub fn is_server(self) -> bool {
        matches!(self, Edition::Server | Edition::DomainController)
    }

    /// Returns the name of the edition. [`str::parse`] accepts this name.
    pub fn word(self) -> &'static str {
        match self {
            Edition::Home => "home",
            Edition::Pro => "pro",
            Edition::Enterprise => "enterprise",
            Edition::Server => "server",
            Edition::DomainController => "domain-controller",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Edition::Home => "Home",
            Edition::Pro => "Pro",
            Edition::Enterprise => "Enterprise",
            Edition::Server => "Server",
            Edition::DomainController => "domain controller",
        })
    }
}

/// Error of parsing an edition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown edition \"{0}\": give home, pro (or client), enterprise (or education), server, or \
     domain-controller (or dc)"
)]
pub struct UnknownEdition(String);

impl FromStr for Edition {
    type Err = UnknownEdition;

    fn from_str(text: &str) -> Result<Edition, UnknownEdition> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "home" => Edition::Home,
            "pro" | "client" => Edition::Pro,
            "enterprise" | "education" => Edition::Enterprise,
            "server" => Edition::Server,
            "domain-controller" | "dc" => Edition::DomainController,
            _ => return Err(UnknownEdition(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edition_is_parsed() {
        for edition in Edition::ALL {
            assert_eq!(edition.word().parse(), Ok(edition));
        }
        assert_eq!("Client".parse(), Ok(Edition::Pro));
        assert!("ultimate".parse::<Edition>().is_err());
    }
}
