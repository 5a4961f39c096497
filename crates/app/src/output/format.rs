//! How rows are written.

use clap::ValueEnum;

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a heading
    Csv,
}
