//! Answers of tools, within their limits.

use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, Kind};

/// Default and maximum number of tokens of an answer.
pub(crate) const TOKENS: u32 = 2_000;
pub(crate) const MAX_TOKENS: u32 = 8_000;
/// Minimum limit that a caller can set.
pub(crate) const MIN_TOKENS: u32 = 1_000;

/// Answer of a tool, as text and as a JSON value. Both have the same content.
#[derive(Debug)]
pub(crate) struct Answer {
    /// JSON text, with the most important field first.
    pub(crate) text: String,
    pub(crate) value: Value,
}

/// Rows that an answer leaves out, and the argument with which the next call returns them.
#[derive(Debug, Serialize)]
pub(crate) struct More {
    /// Value of the argument `after` with which a call returns these rows.
    pub(crate) after: u64,
    /// Number of the rows; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<u64>,
}

/// Call that an answer proposes as the next step.
#[derive(Debug, Serialize)]
pub(crate) struct Next {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) why: &'static str,
}

/// Free space in an answer, in bytes of JSON.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Answer {
    /// Creates an answer with this content. Returns an error if the answer has more than `MAX_TOKENS` tokens.
    pub(crate) fn new(content: &impl Serialize) -> Result<Answer, Failure> {
        let text = serde_json::to_string(content).map_err(|_| Failure::defect())?;
        let value = serde_json::to_value(content).map_err(|_| Failure::defect())?;
        if text.len() > MAX_TOKENS as usize * report::BYTES_PER_TOKEN {
            Err(Failure::new(
                Kind::TooLarge,
                "the answer is too large; ask for less with `first` or a narrower question",
            ))
        } else {
            Ok(Answer { text, value })
        }
    }
}

impl Room {
    /// Returns the space of an answer with a limit of `tokens` tokens. A token counts as 3 bytes.
    pub(crate) fn new(tokens: Option<u32>) -> Room {
        Room(tokens.unwrap_or(TOKENS) as usize * report::BYTES_PER_TOKEN)
    }

    /// Returns the space for rows in an answer with a limit of `tokens` tokens. A token counts as 2.5 bytes here,
    /// because rows have many numbers, and tokens of numbers are shorter.
    pub(crate) fn of_rows(tokens: Option<u32>) -> Room {
        Room(tokens.unwrap_or(TOKENS) as usize * 5 / 2)
    }

    /// Takes the space that a value needs. Returns false if the value does not fit.
    pub(crate) fn take(&mut self, value: &impl Serialize) -> bool {
        // Each value is followed by a comma, which needs one byte.
        let bytes = report::json_bytes(value).saturating_add(1);
        let fits = bytes <= self.0;
        if fits {
            self.0 -= bytes;
        }
        fits
    }

    /// Returns true if there is no free space.
    #[cfg(feature = "sql")]
    pub(crate) fn is_full(&self) -> bool {
        self.0 == 0
    }

    /// Takes items from the front, as many as fit.
    pub(crate) fn fit<T: Serialize>(&mut self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut items = items.into_iter();
        std::iter::from_fn(|| items.next().filter(|item| self.take(item))).collect()
    }

    /// Reserves `bytes` bytes for other parts of the answer.
    #[must_use]
    pub(crate) fn without(mut self, bytes: usize) -> Room {
        self.0 = self.0.saturating_sub(bytes);
        self
    }
}
