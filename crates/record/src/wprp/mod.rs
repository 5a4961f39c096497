//! Profiles of Windows Performance Recorder (`.wprp`): what one records, and what is wrong with it.
//!
//! The *classic* subset of their language is that of the published schema, which every release of WPR
//! reads; names of newer releases are told apart from wrong ones. The schema's text is not here: its
//! rules are, as data (`schema`), and those that a schema cannot state as code (`rules`).

mod document;
mod rules;
mod schema;
mod selection;
mod vocabulary;

pub use document::{Unreadable, text};
pub use selection::{NoSuchProfile, Selected, select};

use std::fmt;

use document::Document;
use serde::Serialize;

/// Something to be said about a place of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// How grave it is.
    pub gravity: Gravity,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// What it is, and what to do.
    pub what: String,
}

/// How grave a remark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gravity {
    /// WPR refuses it, or does something else than what is meant.
    Wrong,
    /// Newer releases of WPR know it, older ones refuse the profile.
    Newer,
    /// It can be done better.
    Advice,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gravity = match self.gravity {
            Gravity::Wrong => "wrong",
            Gravity::Newer => "newer",
            Gravity::Advice => "advice",
        };
        write!(f, "{}:{}: {gravity}: {}", self.line, self.column, self.what)
    }
}

/// No more remarks than these are made: whoever has so many has no profile.
pub const MOST_REMARKS: usize = 200;

/// Checks a profile. Remarks are in the order of the file; there are at most [`MOST_REMARKS`].
///
/// # Errors
/// If the text is no XML, or unreasonably large.
pub fn check(text: &str) -> Result<Vec<Remark>, Unreadable> {
    let xml = document::parse(text)?;
    let mut remarks = document::Remarks::new(&xml);
    schema::check(&mut remarks, xml.root_element());
    rules::check(&mut remarks, &Document::new(&xml));
    Ok(remarks.finish())
}
