//! Which Windows a setting is judged for.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// What is known of the machine that settings are of. What is not known is `None`, and whatever
/// hangs on it stays open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name, as an input gives it.
    pub name: Option<String>,
    /// The build of Windows, such as 22631.
    pub build: Option<u32>,
    /// What kind of Windows it is.
    pub edition: Option<Edition>,
}

/// Kinds of Windows that differ in what they set by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edition {
    /// Home of a client.
    Home,
    /// Pro of a client.
    Pro,
    /// Enterprise or Education of a client.
    Enterprise,
    /// A server that is no domain controller.
    Server,
    /// A server that is a domain controller.
    DomainController,
}

impl Edition {
    /// All of them.
    pub const ALL: [Edition; 5] = [
        Edition::Home,
        Edition::Pro,
        Edition::Enterprise,
        Edition::Server,
        Edition::DomainController,
    ];

    /// Whether it is a server's.
    pub fn is_server(self) -> bool {
        matches!(self, Edition::Server | Edition::DomainController)
    }

    /// Its word, as [`str::parse`] reads it.
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

/// A word that names no edition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no edition: give home, pro (or client), enterprise (or education), server, or \
     domain-controller (or dc)"
)]
pub struct NoEdition(String);

impl FromStr for Edition {
    type Err = NoEdition;

    fn from_str(text: &str) -> Result<Edition, NoEdition> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "home" => Edition::Home,
            "pro" | "client" => Edition::Pro,
            "enterprise" | "education" => Edition::Enterprise,
            "server" => Edition::Server,
            "domain-controller" | "dc" => Edition::DomainController,
            _ => return Err(NoEdition(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edition_is_read_by_its_word() {
        for edition in Edition::ALL {
            assert_eq!(edition.word().parse(), Ok(edition));
        }
        assert_eq!("Client".parse(), Ok(Edition::Pro));
        assert!("ultimate".parse::<Edition>().is_err());
    }
}
