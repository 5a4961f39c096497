//! Causes of late samples on systems without a recorder.

use std::path::Path;
use std::sync::Arc;

use measure::{LateSamples, Measurement};

use super::Bound;
use crate::cli::Failure;
use crate::measured::Causes;

/// Type without values, because there is no recorder on this system.
pub(in crate::cli::measure) enum Why {}

impl Why {
    pub(super) fn begin(
        _folder: Option<&Path>,
        _bound: impl FnOnce() -> Result<Bound, Failure>,
    ) -> Result<Why, Failure> {
        Err(Failure::Input(
            "cannot explain late samples: --why records on Linux only; on Windows, run `laglab record --for long-wait \
             --run --circular` next to the probe, and save the recording after a late sample"
                .to_owned(),
        ))
    }

    pub(in crate::cli::measure) fn late(&self) -> Arc<LateSamples> {
        match *self {}
    }

    pub(in crate::cli::measure) fn finish(
        self,
        _measurement: &Measurement,
    ) -> Result<Causes, Failure> {
        match self {}
    }
}
