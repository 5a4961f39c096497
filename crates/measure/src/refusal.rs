//! Reasons why the system refuses a request.

use std::io;

/// Reason why the system refused a request.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The request is supported only on other systems. The text also gives advice.
    #[error("{0}")]
    Unsupported(&'static str),
    /// A value in the request is invalid. The text gives the reason.
    #[error("{0}")]
    Invalid(String),
    /// A system call failed. `advice` may be empty.
    #[error("{source}{}{advice}", if advice.is_empty() { "" } else { "; " })]
    System {
        /// Error of the system.
        source: io::Error,
        /// Advice for the user.
        advice: &'static str,
    },
}

impl Refusal {
    /// Adds advice to an error of the system.
    pub(crate) fn system(source: impl Into<io::Error>, advice: &'static str) -> Refusal {
        let source = source.into();
        Refusal::System { source, advice }
    }
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Refusal {
        Refusal::system(source, "")
    }
}
