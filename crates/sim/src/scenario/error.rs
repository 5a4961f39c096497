//! What is wrong with a scenario, and where.

use std::ops::Range;

use super::place::{self, Key};

/// Why a scenario cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A place in the scenario's file is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    At {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The scenario is right by itself, but not with what is set over it.
    #[error("{file}, with what is set over it: {message}")]
    Over {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// What is set over a scenario is no setting, or what it sets is wrong.
    #[error("`{setting}`: {message}")]
    Setting {
        /// The setting.
        setting: String,
        /// What is wrong.
        message: String,
    },
}

/// Something wrong in a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    place: Place,
    pub(crate) message: String,
}

#[derive(Clone, Debug)]
enum Place {
    /// A part of the text.
    Span(Range<usize>),
    /// The way from the document to a value, backwards.
    Way(Vec<Key>),
}

impl Fault {
    /// Something wrong at a place of the text.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault {
            place: Place::Span(span),
            message: message.into(),
        }
    }

    /// Something wrong in a field of the table that is looked at; whoever looks at it says which
    /// that is with [`Fault::inside`] and [`Fault::member`].
    pub(crate) fn of(field: &str, message: impl Into<String>) -> Fault {
        Fault {
            place: Place::Way(vec![Key::Field(field.to_owned())]),
            message: message.into(),
        }
    }

    /// The fault of a table as one of the field that holds the table.
    pub(crate) fn inside(mut self, field: &str) -> Fault {
        if let Place::Way(way) = &mut self.place {
            way.push(Key::Field(field.to_owned()));
        }
        self
    }

    /// The fault of a list's member as one of the field that holds the list.
    pub(crate) fn member(mut self, list: &str, number: usize) -> Fault {
        if let Place::Way(way) = &mut self.place {
            way.push(Key::Member(number, None));
        }
        self.inside(list)
    }

    /// Where it is in the text of the scenario, or the innermost table there is on the way.
    pub(super) fn span(&self, text: &str) -> Range<usize> {
        match &self.place {
            Place::Span(span) => span.clone(),
            Place::Way(way) => {
                let way: Vec<Key> = way.iter().rev().cloned().collect();
                place::find(text, &way).unwrap_or_else(|end| end)
            }
        }
    }

    /// The fault with its line and column in `text`.
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
