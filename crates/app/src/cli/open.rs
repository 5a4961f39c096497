//! Opening the traces that a command is given.

use std::path::{Path, PathBuf};

use etl::Trace;

use super::Failure;

/// The traces a command reads.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TraceFiles {
    /// Files of one trace: .etl, .etl.zip, .diagsession or netsh's .cab
    #[arg(value_name = "TRACE", required = true)]
    paths: Vec<PathBuf>,
}

impl TraceFiles {
    /// Opens them as one trace.
    pub(crate) fn open(&self) -> Result<Trace, Failure> {
        etl::open(&self.paths).map_err(|error| Failure::Input(error.to_string()))
    }

    /// Whether one of them is the file at `path`.
    pub(crate) fn are_at(&self, path: &Path) -> bool {
        self.paths.iter().any(|file| is_same_file(file, path))
    }
}

/// Whether both paths lead to one file that is there.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
