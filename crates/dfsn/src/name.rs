//! Server names, either short (without domain) or full.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

/// Server name in a form that DNS or NetBIOS allows. Comparison ignores case.
#[derive(Clone, Debug, Serialize)]
pub struct ServerName(String);

/// Error for a text that is not a server name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid server name `{}`: give labels of 1 to 63 letters, digits, `-` or `_`, separated by dots; at most 253 characters in total",
    .0.escape_debug()
)]
pub struct NameError(String);

impl ServerName {
    /// Parses a name, with or without leading backslashes.
    ///
    /// # Errors
    /// Returns an error if the text is not a server name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let name = text.trim().trim_start_matches('\\').trim_end_matches('.');
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && (label.bytes()).all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        // Colons are not allowed, because paths cannot contain IPv6 addresses.
        if name.len() <= 253 && name.split('.').all(is_label) {
            Ok(ServerName(name.to_owned()))
        } else {
            Err(NameError(text.chars().take(80).collect()))
        }
    }

    /// Returns the name as written, without backslashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the name is an IP address.
    pub fn is_address(&self) -> bool {
        self.0.parse::<IpAddr>().is_ok()
    }

    /// Returns true if the name includes a domain.
    pub fn is_full(&self) -> bool {
        self.0.contains('.') && !self.is_address()
    }

    /// Returns the part before the first dot. Returns an IP address unchanged.
    pub fn short(&self) -> &str {
        if self.is_address() {
            &self.0
        } else {
            self.0.split('.').next().unwrap_or(&self.0)
        }
    }

    /// Returns true if both names can mean the same server: they are equal, or one is the short name of the
    /// other.
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
    fn short_and_full_names_are_recognised() {
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
