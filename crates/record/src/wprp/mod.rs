//! Reader and checker of profiles of Windows Performance Recorder (`.wprp`).
//!
//! The *classic* subset of the schema is the published schema, which every release of WPR reads. Names that
//! only newer releases know are reported as newer, not as errors. `schema` has the rules of the schema as
//! data. `rules` has the rules that a schema cannot express.

mod document;
mod rules;
mod schema;
mod selection;
mod vocabulary;

pub use document::{ProfileError, text};
pub use selection::{SelectError, SelectedProfile, select};

use std::fmt;

use document::Document;
use serde::Serialize;

/// A remark on a position in a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Severity of the problem.
    pub severity: Severity,
    /// Line, starting at 1.
    pub line: u32,
    /// Column in characters, starting at 1.
    pub column: u32,
    /// Description of the problem and its solution.
    pub message: String,
}

/// Severity of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// WPR refuses the profile, or does something unintended.
    Error,
    /// Newer releases of WPR accept the profile, but older releases refuse it.
    Newer,
    /// WPR accepts the profile, but there is a better way to write it.
    Advice,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Newer => "newer",
            Severity::Advice => "advice",
        };
        write!(
            f,
            "{}:{}: {severity}: {}",
            self.line, self.column, self.message
        )
    }
}

/// Maximum number of reported remarks. A file with more problems is not a profile.
pub const MAX_REMARKS: usize = 200;

/// Checks a profile. Returns at most [`MAX_REMARKS`] remarks, in the order of the file.
///
/// # Errors
/// Returns an error if the text is not XML or is too large.
pub fn check(text: &str) -> Result<Vec<Remark>, ProfileError> {
    let xml = document::parse(text)?;
    let mut remarks = document::Remarks::new(&xml);
    schema::check(&mut remarks, xml.root_element());
    rules::check(&mut remarks, &Document::new(&xml));
    Ok(remarks.finish())
}
