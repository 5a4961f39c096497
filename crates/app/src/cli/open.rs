//! Opening the traces that a command is given.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use etl::{OpenError, Trace};
use tables::{Cache, Identities, Options, Store, StoreError, StoredTable, Table};

use super::{Failure, cache, say};
use crate::watch::{Progress, Watch};

/// The traces a command reads.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TraceFiles {
    /// Files of one trace: .etl, .etl.zip, .diagsession or netsh's .cab; beside or instead of them,
    /// where tables are made (explain, report, sql), packets as .pcapng or .pcap; or what
    /// `laglab measure` wrote, as .parquet
    #[arg(value_name = "TRACE", required = true)]
    paths: Vec<PathBuf>,
}

impl TraceFiles {
    /// Opens them as one trace.
    pub(crate) fn open(&self) -> Result<Trace, Failure> {
        etl::open(&self.paths).map_err(|error| {
            let first = |is: fn(&Path) -> bool| self.paths.iter().find(|path| is(path));
            let without_events = first(tables::is_capture).map(|capture| {
                let message = "is a capture of packets and holds no events; `laglab explain` and \
                               `laglab sql` read its packets";
                (capture, message)
            });
            let without_events = without_events.or_else(|| {
                let message = "is a Parquet file and holds no events; `laglab open` and `laglab sql` \
                               read what `laglab measure` wrote";
                Some((first(tables::is_parquet)?, message))
            });
            match (&error, without_events) {
                (OpenError::NotATrace { .. }, Some((file, message))) => {
                    Failure::input(file, message)
                }
                _ => Failure::Input(error.to_string()),
            }
        })
    }

    /// Whether one of them is the file at `path`.
    pub(crate) fn are_at(&self, path: &Path) -> bool {
        self.paths.iter().any(|file| is_same_file(file, path))
    }
}

/// The trace of a command that works on tables.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TabledTrace {
    #[command(flatten)]
    files: TraceFiles,
    /// Make the tables anew, and keep none for the next question
    #[arg(long)]
    no_cache: bool,
}

impl TabledTrace {
    /// The trace that the files make together.
    pub(crate) fn new(files: &[PathBuf], no_cache: bool) -> TabledTrace {
        TabledTrace {
            files: TraceFiles {
                paths: files.to_vec(),
            },
            no_cache,
        }
    }

    /// Opens the trace's tables.
    pub(crate) fn open(&self) -> Result<TraceTables, Failure> {
        let cache = match self.no_cache {
            true => Cache::Off,
            false => cache::chosen()?,
        };
        Ok(TraceTables {
            store: Arc::new(Store::open(&self.files.paths, cache)?),
            warned: Once::new(),
            progress: None,
        })
    }

    /// Whether one of its files is the file at `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.files.are_at(path)
    }

    /// What its first file is called, without its folder and extension.
    pub(crate) fn name(&self) -> String {
        let first = self.files.paths.first().and_then(|path| path.file_stem());
        first.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// The tables of a trace, made with progress on stderr and until Ctrl-C.
pub(crate) struct TraceTables {
    pub(crate) store: Arc<Store>,
    warned: Once,
    /// Who is told of progress instead of stderr.
    progress: Option<Arc<Progress>>,
}

impl TraceTables {
    /// The same, whose progress is for others than those who read stderr.
    pub(crate) fn with_progress(self, progress: Arc<Progress>) -> TraceTables {
        TraceTables {
            progress: Some(progress),
            ..self
        }
    }

    /// Makes the tables that are not there yet, together.
    pub(crate) fn make(&self, wanted: &[Table]) -> Result<(), Failure> {
        self.watched(|options| self.store.make(wanted, options))
    }

    /// As [`TraceTables::make`], one turn after the other.
    pub(crate) fn make_in_turn(&self, turns: &[&[Table]]) -> Result<(), Failure> {
        self.watched(|options| self.store.make_in_turn(turns, options))
    }

    /// A table.
    pub(crate) fn table(&self, table: Table) -> Result<StoredTable, Failure> {
        self.watched(|options| self.store.table(table, options))
    }

    /// Who and what the rows of its tables speak of.
    pub(crate) fn identities(&self) -> Result<Identities, Failure> {
        self.watched(|options| Identities::read(&self.store, options))
    }

    /// Does something that makes tables, with progress and until Ctrl-C.
    pub(crate) fn watched<T>(
        &self,
        make: impl FnOnce(Options<'_>) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        let watch = Watch::new("building tables", self.store.trace().size_bytes());
        let watch = match &self.progress {
            Some(progress) => watch.told_to(Arc::clone(progress)),
            None => watch,
        };
        let progress = |done: u64| watch.reach(done).is_ok();
        let options = Options {
            progress: &progress,
        };
        let made = make(options)?;
        drop(watch);
        if let Some(warning) = self.store.warning() {
            self.warned.call_once(|| say(warning));
        }
        Ok(made)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Cancelled(_) => Failure::Interrupted,
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<tables::WrongType> for Failure {
    fn from(error: tables::WrongType) -> Failure {
        Failure::from(StoreError::from(error))
    }
}

/// Whether both paths lead to one file that is there.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// A name for each trace: that of its first file, with its folders where files have the same.
pub(super) fn names(traces: &[&[PathBuf]]) -> Vec<String> {
    let files: Vec<&Path> = traces.iter().map(|files| files[0].as_path()).collect();
    let short = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let is_unique = |name: &str| files.iter().filter(|file| short(file) == name).count() == 1;
    files
        .iter()
        .map(|file| Some(short(file)).filter(|name| is_unique(name)))
        .zip(&files)
        .map(|(name, file)| name.unwrap_or_else(|| file.to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_named_by_their_files() {
        let paths: Vec<PathBuf> = ["x/a.etl", "y/a.etl", "y/b.etl"].map(PathBuf::from).into();
        let groups: Vec<&[PathBuf]> = paths.chunks(1).collect();
        assert_eq!(names(&groups), ["x/a.etl", "y/a.etl", "b.etl"]);
        assert_eq!(names(&[&paths]), ["a.etl"]);
    }
}
