//! What a theory is.

use tables::{StoreError, Table};

use crate::{Case, Evidence, Finding, Source};

/// A question that can be asked of any trace.
pub trait Theory: Sync {
    /// What it asks, and what it needs for that.
    fn about(&self) -> &'static About;

    /// The answer.
    ///
    /// # Errors
    /// If a table cannot be read, or the user stopped it.
    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError>;
}

/// What a theory asks, and what it needs for that. What must have been recorded is in the table that
/// kits are made from, too: [`record::needs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its id: lower case, words joined by hyphens.
    pub id: &'static str,
    /// The question.
    pub question: &'static str,
    /// The tables it reads, beside those of processes, threads and images.
    pub tables: &'static [Table],
    /// Where the facts are from that it rests on.
    pub sources: &'static [Source],
}

/// What a trace says of a theory.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It holds, here and there, whether or not that cost anything.
    For(Vec<Finding>),
    /// It does not hold: why, and what is good to know all the same.
    Noted(String, Vec<Finding>),
    /// It does not hold: why, and the numbers.
    Against(String, Vec<Evidence>),
    /// The trace does not hold what would tell: what is missing.
    NotRecorded(String),
    /// Neither does it here, but what it holds is a hint: what is missing, and what is there.
    Hint(String, Vec<Evidence>),
}
