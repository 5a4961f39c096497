//! What is wrong with a scenario, and where.

use std::ops::Range;

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
    /// What is set over a scenario is no setting.
    #[error("`{setting}`: {message}")]
    Setting {
        /// The setting.
        setting: String,
        /// What is wrong.
        message: String,
    },
    /// The scenario that another one extends is not there.
    #[error("{file}: there is no scenario `{extends}` to extend")]
    NoBase {
        /// The file that extends it.
        file: String,
        /// Name of the one that is missing.
        extends: String,
    },
}

/// Something wrong at a place of the text.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault {
            span,
            message: message.into(),
        }
    }

    /// The fault with its line and column in `text`.
    pub(crate) fn located(self, file: &str, text: &str) -> ScenarioError {
        let before = &text[..floor_boundary(text, self.span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ScenarioError::At {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}
