//! Error of parsing a name.

use std::fmt;

/// Error for a name that is unknown, or that is known on other systems only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    /// Systems that know the name.
    elsewhere: Option<&'static str>,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// Returns the error for a name that is not among `known`.
    pub(crate) fn new(
        kind: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> UnknownName {
        UnknownName {
            kind,
            name: name.to_owned(),
            elsewhere: None,
            known: known.into_iter().collect(),
        }
    }

    /// Adds the systems that know the name.
    pub(crate) fn elsewhere(self, systems: Option<&'static str>) -> UnknownName {
        UnknownName {
            elsewhere: systems,
            ..self
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.kind, &self.name);
        match self.elsewhere {
            Some(systems) => write!(f, "{kind} `{name}` exists on {systems} only")?,
            None => write!(f, "unknown {kind} `{name}`")?,
        }
        write!(f, "; use one of {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}
