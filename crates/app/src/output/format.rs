//! Formats of output with one line per row.

use clap::ValueEnum;

/// Format of output with one line per row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines of text
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header line
    Csv,
}
