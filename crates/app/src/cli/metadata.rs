//! Options for files that describe the content of events.

use std::path::PathBuf;

use events::Decoder;
use raw_events::MetadataFiles;

use super::Failure;

/// Options of all commands that decode events.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct MetadataArgs {
    /// Instrumentation manifest (.man) of a provider, for events that the trace does not describe, or
    /// a directory of manifests (repeatable)
    #[arg(long, value_name = "FILE|DIR", help_heading = "Event descriptions")]
    manifest: Vec<PathBuf>,
    /// Message descriptions of WPP events: a .tmf file or a directory of .tmf files (repeatable)
    #[arg(long, value_name = "FILE|DIR", help_heading = "Event descriptions")]
    tmf: Vec<PathBuf>,
}

impl MetadataArgs {
    /// Returns a decoder that uses the event descriptions in these files.
    pub(super) fn decoder(&self) -> Result<Decoder, Failure> {
        let files = MetadataFiles {
            manifests: self.manifest.clone(),
            tmf: self.tmf.clone(),
        };
        Ok(files.decoder()?)
    }
}
