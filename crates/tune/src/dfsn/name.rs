//! Names of servers, short or full.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

/// A server's name, as DNS or NetBIOS allow it. Names are equal whatever their case.
#[derive(Clone, Debug, Serialize)]
pub struct ServerName(String);

/// This is no server's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no server's name: it takes labels of 1 to 63 letters, digits, `-` or `_`, separated by dots, 253 in all", .0.escape_debug())]
pub struct NameError(String);

impl ServerName {
    /// The name that a text is, with or without backslashes before it.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let name = text.trim().trim_start_matches('\\').trim_end_matches('.');
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && (label.bytes()).all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        // Addresses of IPv6 have no place in a path, so colons are no part of it.
        match name.len() <= 253 && name.split('.').all(is_label) {
            true => Ok(ServerName(name.to_owned())),
            false => Err(NameError(text.chars().take(80).collect())),
        }
    }

    /// As it was written, without backslashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is an address instead of a name.
    pub fn is_address(&self) -> bool {
        self.0.parse::<IpAddr>().is_ok()
    }

    /// Whether it says in which domain the server is.
    pub fn is_full(&self) -> bool {
        self.0.contains('.') && !self.is_address()
    }

    /// Its first label.
    pub fn short(&self) -> &str {
        match self.is_address() {
            true => &self.0,
            false => self.0.split('.').next().unwrap_or(&self.0),
        }
    }

    /// Whether both may be the same server: equal, or one is the short name of the other.
    pub fn may_be(&self, other: &Self) -> bool {
        self == other
            || (self.is_full() != other.is_full()
                && self.short().eq_ignore_ascii_case(other.short()))
    }
}

impl PartialEq for ServerName {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for ServerName {}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_full_names_are_told_apart() {
        let name = |text| ServerName::new(text).unwrap();
        assert!(name(r"\\FILE1").may_be(&name("file1.child.corp.contoso.com")));
        assert!(!name("file1.a.example").may_be(&name("file1.b.example")));
        assert!(!name("FILE1").may_be(&name("FILE2")));
        assert!(name("file1.a.example.").is_full());
        assert!(name("10.0.0.7").is_address() && !name("10.0.0.7").is_full());
        assert!(!name("10").may_be(&name("10.0.0.7")));
        let long = "a.".repeat(127) + "ab";
        for odd in [
            "",
            "a b",
            "a/b",
            "a..b",
            "é",
            "a\"b",
            &"x".repeat(64),
            &long,
        ] {
            assert!(ServerName::new(odd).is_err(), "{odd}");
        }
    }
}
