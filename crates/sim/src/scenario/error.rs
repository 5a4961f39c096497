//! Errors in a scenario, with their positions in its text.

use std::ops::Range;

use super::place::{self, Key};

/// Error in a scenario.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Error at a position in the scenario's file.
    #[error("{file}:{line}:{column}: {message}")]
    At {
        /// File name.
        file: String,
        /// Line number, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// Description of the error.
        message: String,
    },
    /// Error that the scenario has only after the overrides are applied.
    #[error("{file}, after applying the overrides: {message}")]
    Over {
        /// File name.
        file: String,
        /// Description of the error.
        message: String,
    },
    /// Error in an override: its syntax or its value is not valid.
    #[error("`{setting}`: {message}")]
    Setting {
        /// Override as the user wrote it.
        setting: String,
        /// Description of the error.
        message: String,
    },
}

/// Error in a scenario whose line and column are not yet computed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    place: Place,
    pub(crate) message: String,
}

#[derive(Clone, Debug)]
enum Place {
    /// Byte range in the text.
    Span(Range<usize>),
    /// Path of keys to a value, in reverse order: the key at the top level of the document comes last.
    Way(Vec<Key>),
}

impl Fault {
    /// Creates an error at a byte range of the text.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault {
            place: Place::Span(span),
            message: message.into(),
        }
    }

    /// Creates an error in a field of the current table. Callers that know the path of the table
    /// add it with [`Fault::inside`] and [`Fault::member`].
    pub(crate) fn of(field: &str, message: impl Into<String>) -> Fault {
        Fault {
            place: Place::Way(vec![Key::Field(field.to_owned())]),
            message: message.into(),
        }
    }

    /// Extends the path at its beginning: `field` is the field that contains the table.
    pub(crate) fn inside(mut self, field: &str) -> Fault {
        if let Place::Way(way) = &mut self.place {
            way.push(Key::Field(field.to_owned()));
        }
        self
    }

    /// Extends the path at its beginning: `list` is the list, and `number` is the index of the member that
    /// contains the error.
    pub(crate) fn member(mut self, list: &str, number: usize) -> Fault {
        if let Place::Way(way) = &mut self.place {
            way.push(Key::Member(number, None));
        }
        self.inside(list)
    }

    /// Returns the byte range of the error in the text. If the error's path does not exist in the text,
    /// returns the range of the innermost table on the path that exists.
    pub(crate) fn span(&self, text: &str) -> Range<usize> {
        match &self.place {
            Place::Span(span) => span.clone(),
            Place::Way(way) => {
                let way: Vec<Key> = way.iter().rev().cloned().collect();
                place::find(text, &way).unwrap_or_else(|end| end)
            }
        }
    }

    /// Returns the error with its line and column in `text`.
    pub(crate) fn located(self, file: &str, text: &str) -> ScenarioError {
        let start = self.span(text).start;
        let before = &text[..text.floor_char_boundary(start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ScenarioError::At {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}
