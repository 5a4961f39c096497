//! Files that are compared.

use std::path::{Path, PathBuf};

use prove::columns::{self, Columns};
use prove::{Group, Run, Sides, TraceMetric, measured, sides, traces};
use session::{TraceTables, missing_rows};

use super::Args;
use crate::cli::Failure;
use crate::cli::open::TabledTrace;
use crate::output::counted;

/// Metric of a trace.
#[derive(Clone, Debug)]
pub(super) enum Metric {
    /// Metric that is read from tables.
    Tables(TraceMetric),
    /// SQL query with one value per trace.
    #[cfg(feature = "sql")]
    Sql(String),
}

impl Metric {
    /// Parses the argument of `--metric`.
    pub(super) fn parse(text: &str) -> Result<Metric, String> {
        match text.strip_prefix("sql:") {
            #[cfg(feature = "sql")]
            Some(query) => Ok(Metric::Sql(query.trim().to_owned())),
            #[cfg(not(feature = "sql"))]
            Some(_) => Err("this laglab was built without SQL".to_owned()),
            None => match text.parse() {
                Ok(metric) => Ok(Metric::Tables(metric)),
                Err(error) => Err(format!("{error}, sql:QUERY")),
            },
        }
    }

    /// Returns the runs of traces.
    fn group(&self, traces: &[(PathBuf, TraceTables)]) -> Result<Group, Failure> {
        match self {
            Metric::Tables(metric) => {
                let runs = traces
                    .iter()
                    .map(|(file, tables)| run(metric, file, tables));
                Ok(traces::group(metric, runs.collect::<Result<_, _>>()?))
            }
            #[cfg(feature = "sql")]
            Metric::Sql(query) => super::sql_metric::group(query, traces),
        }
    }

    /// Returns the error for a metric that no trace has. The error names the metrics that the first trace
    /// has.
    fn without_samples(&self, opened: &[(PathBuf, TraceTables)]) -> Result<Failure, Failure> {
        let similar = |tables: &TraceTables| match self {
            Metric::Tables(metric) => {
                tables.watched(|options| traces::similar_name(tables.store(), metric, options))
            }
            #[cfg(feature = "sql")]
            Metric::Sql(_) => Ok(None),
        };
        let name = match self {
            Metric::Tables(metric) => metric.to_string(),
            #[cfg(feature = "sql")]
            Metric::Sql(query) => query.clone(),
        };
        let similar = match opened.first() {
            None => None,
            Some((_, tables)) => similar(tables)?,
        };
        let advice = similar.map(|name| format!("; the traces have `{name}`"));
        Ok(Failure::Input(format!(
            "cannot compare {name}: no trace has samples of it{}",
            advice.unwrap_or_default()
        )))
    }
}

/// Reads the files and matches both sides.
pub(super) fn read(args: &Args) -> Result<Vec<Sides>, Failure> {
    if !args.metric.is_empty() {
        return of_traces(args);
    }
    let columns = args.value.as_ref().map(|value| Columns {
        value: value.clone(),
        run: args.run.clone(),
        by: args.by.clone(),
    });
    let all = |files: &[PathBuf]| -> Result<Vec<Vec<Group>>, Failure> {
        let groups = files.iter().map(|file| groups(file, columns.as_ref()));
        groups.collect()
    };
    let before = all(&args.files)?;
    if !args.files_after.is_empty() {
        let after = all(&args.files_after)?;
        let [before, after] = [before, after].map(sides::joined);
        return Ok(sides::between(before, after, args.paired)?);
    }
    let [file]: [Vec<Group>; 1] = before.try_into().map_err(|several: Vec<_>| {
        Failure::Input(format!(
            "cannot determine which of {} were measured after the change; give these after --",
            counted(several.len() as u64, "file", "files")
        ))
    })?;
    let both = sides::within(file, args.before.as_deref(), args.after.as_deref())?;
    Ok(vec![both])
}

/// Reads the runs of a file. `columns` are the names of the columns. A file of `laglab measure` needs no
/// `columns`.
pub(in crate::cli::prove) fn groups(
    file: &Path,
    columns: Option<&Columns>,
) -> Result<Vec<Group>, Failure> {
    if let Err(error) = std::fs::File::open(file) {
        return Err(Failure::reading(file, &error));
    }
    if let Some(columns) = columns {
        return Ok(columns::read(file, columns)?);
    }
    match tables::is_parquet(file) {
        true => Ok(measured::read(file)?),
        false => Err(Failure::input(
            file,
            "was not written by `laglab measure … -o FILE.parquet`; if it is a CSV file, name its columns with \
             --value and --run; if it is a trace, choose what to compare with --metric",
        )),
    }
}

/// Reads the metrics of traces. Each trace is a run.
fn of_traces(args: &Args) -> Result<Vec<Sides>, Failure> {
    let open = |files: &[PathBuf]| -> Result<Vec<(PathBuf, TraceTables)>, Failure> {
        let opened = files.iter().map(|file| {
            let tables = TabledTrace::new(std::slice::from_ref(file), args.no_cache).open()?;
            Ok((file.clone(), tables))
        });
        opened.collect()
    };
    let (before, after) = (open(&args.files)?, open(&args.files_after)?);
    let mut all = Vec::new();
    for metric in &args.metric {
        let groups = [metric.group(&before)?, metric.group(&after)?];
        let mut runs = groups.iter().flat_map(|group| &group.runs);
        if runs.all(|run| run.samples() == 0) {
            return Err(metric.without_samples(&before)?);
        }
        let [before, after] = groups.map(|group| vec![group]);
        all.extend(sides::between(before, after, args.paired)?);
    }
    Ok(all)
}

fn run(metric: &TraceMetric, file: &Path, tables: &TraceTables) -> Result<Run, Failure> {
    let name = file.display().to_string();
    let found = tables.watched(|options| traces::read(tables.store(), name, metric, options))?;
    found.map_err(|table| {
        Failure::NotRecorded(format!(
            "cannot compare {metric}: {}: {}",
            file.display(),
            missing_rows(table)
        ))
    })
}
