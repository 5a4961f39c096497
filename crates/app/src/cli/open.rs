//! Opens the traces that the arguments of a command name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etl::{OpenError, Trace};
use session::TraceTables;
use tables::{Cache, Recording};

use super::simulate::scenario_like;
use super::{Failure, cache};
use crate::watch::Terminal;

/// Error if a command does not read recordings of Linux.
const LINUX: &str = "it is a recording of Linux, which this command cannot read yet; use `laglab info`, `laglab \
                     explain`, `laglab open`, `laglab events`, `laglab sql`, `laglab export` or a report such as \
                     `laglab cswitch`";

/// Files of the trace that a command reads.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TraceFiles {
    /// Files of one trace: .etl, .etl.zip, .diagsession or netsh's .cab. Commands that build tables
    /// (explain, report, sql) also read packets (.pcapng, .pcap) and samples of `laglab measure`
    /// (.parquet). Every command except prove, record and tune reads recordings of Linux (perf.data,
    /// trace.dat, the text of `perf script`, `trace-cmd report` or ftrace)
    #[arg(value_name = "TRACE", required = true)]
    paths: Vec<PathBuf>,
}

impl TraceFiles {
    /// Opens all files as one trace.
    pub(crate) fn open(&self) -> Result<Trace, Failure> {
        self.are_no_scenarios()?;
        let trace = etl::open(&self.paths).map_err(|error| {
            let other = matches!(error, OpenError::NotATrace { .. }).then(|| self.other_format());
            (other.flatten()).unwrap_or_else(|| Failure::Input(error.to_string()))
        })?;
        import_windows::check_one_recording(&trace)
            .map_err(|error| Failure::Input(error.to_string()))?;
        Ok(trace)
    }

    /// Opens all files as one recording with events.
    pub(crate) fn recording(&self) -> Result<Box<dyn Recording>, Failure> {
        self.are_no_scenarios()?;
        let has_samples = self.paths.iter().any(|path| imports::is_parquet(path));
        let mut paths = self.paths.iter();
        if has_samples || paths.all(|path| import_windows::is_capture(path)) {
            self.other_format().map_or(Ok(()), Err)?;
        }
        Ok(imports::open(&self.paths)?)
    }

    /// Returns the error for a command that reads events of Windows, if one of the files has another format.
    fn other_format(&self) -> Option<Failure> {
        let first = |is: fn(&Path) -> bool| self.paths.iter().find(|path| is(path));
        let message = "this is a packet capture and contains no events; read it with `laglab explain` or \
                       `laglab sql`";
        let capture = first(import_windows::is_capture).map(|file| (file, message));
        let linux = || Some((first(import_linux::is_recording)?, LINUX));
        let message = "this is a Parquet file and contains no events; read samples of `laglab measure` with \
                       `laglab open` or `laglab sql`";
        let samples = || Some((first(imports::is_parquet)?, message));
        let (file, message) = capture.or_else(linux).or_else(samples)?;
        Some(Failure::input(file, message))
    }

    /// Returns the trace if one of its files is a recording of Linux. Its tables are not cached.
    pub(crate) fn of_linux(&self) -> Option<TabledTrace> {
        self.linux_file()
            .map(|_| TabledTrace::new(&self.paths, true))
    }

    /// Opens the tables of the trace. They are not cached.
    pub(crate) fn tables(&self) -> Result<TraceTables, Failure> {
        TabledTrace::new(&self.paths, true).open_any()
    }

    /// Returns the first file that is a recording of Linux.
    pub(crate) fn linux_file(&self) -> Option<&PathBuf> {
        let mut paths = self.paths.iter();
        paths.find(|path| import_linux::is_recording(path))
    }

    /// Returns an error with advice if the user probably means a built-in scenario: a file does not exist,
    /// and its name is similar to the name of the scenario.
    fn are_no_scenarios(&self) -> Result<(), Failure> {
        let is_missing = |path: &&PathBuf| path.extension().is_none() && !path.exists();
        let missing = self.paths.iter().find(is_missing);
        let meant = missing.and_then(|path| Some((path, scenario_like(path.to_str()?)?)));
        match meant {
            None => Ok(()),
            Some((path, name)) => Err(Failure::Input(format!(
                "cannot open {}: no such file; for a trace of the scenario `{name}`, first run `laglab simulate \
                 {name}`, then give {name}.etl",
                path.display()
            ))),
        }
    }

    /// Returns true if one of the files is the file at `path`.
    pub(crate) fn are_at(&self, path: &Path) -> bool {
        self.paths
            .iter()
            .any(|file| files::is_same_file(file, path))
    }
}

/// Trace of a command that needs its tables.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TabledTrace {
    #[command(flatten)]
    files: TraceFiles,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
}

impl TabledTrace {
    /// Creates the trace that consists of `files`.
    pub(crate) fn new(files: &[PathBuf], no_cache: bool) -> TabledTrace {
        TabledTrace {
            files: TraceFiles {
                paths: files.to_vec(),
            },
            no_cache,
        }
    }

    /// Opens the tables of the trace of Windows.
    pub(crate) fn open(&self) -> Result<TraceTables, Failure> {
        let tables = self.open_any()?;
        if tables.store().info().is_linux() {
            Err(Failure::input(&self.files.paths[0], LINUX))
        } else {
            Ok(tables)
        }
    }

    /// Opens the tables of the trace of Windows, or of the recording of Linux.
    pub(crate) fn open_any(&self) -> Result<TraceTables, Failure> {
        self.files.are_no_scenarios()?;
        let cache = if self.no_cache {
            Cache::Off
        } else {
            cache::chosen()?
        };
        Ok(TraceTables::open(
            &self.files.paths,
            cache,
            Arc::new(Terminal),
        )?)
    }

    /// Returns true if one of the trace's files is the file at `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.files.are_at(path)
    }

    /// Returns the name of the trace's first file, without folder and extension.
    #[cfg(feature = "export")]
    pub(crate) fn name(&self) -> String {
        let first = self.files.paths.first().and_then(|path| path.file_stem());
        first.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Returns a name for each trace: the name of its first file. If two names are equal, they include the path.
#[cfg(any(feature = "open", feature = "sql"))]
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

#[cfg(all(test, any(feature = "open", feature = "sql")))]
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
