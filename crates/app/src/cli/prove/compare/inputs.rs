//! Files that are compared.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use facts::Info;
use prove::columns::{self, Columns};
use prove::{Design, Error, Group, Pairing, Run, Sides, TraceMetric, measured, sides, traces};
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
            Some(query) if query.trim().is_empty() => Err(
                "a query is missing after `sql:`; give one with one number as its result"
                    .to_owned(),
            ),
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

    /// Reads this metric from traces. Returns a group with one run for each trace.
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

    /// Reads this metric from the traces before and after the change. The inner error says why the traces lack the
    /// metric.
    fn sides(
        &self,
        before: &[(PathBuf, TraceTables)],
        after: &[(PathBuf, TraceTables)],
        is_paired: bool,
    ) -> Result<Result<Vec<Sides>, Failure>, Failure> {
        let both = self
            .group(before)
            .and_then(|first| Ok([first, self.group(after)?]));
        let both = match both {
            Err(missing @ Failure::NotRecorded(_)) => return Ok(Err(missing)),
            both => both?,
        };
        let mut runs = both.iter().flat_map(|group| &group.runs);
        if runs.all(|run| !run.has_values()) {
            return Ok(Err(self.without_samples(before)?));
        }
        let [before, after] = both.map(|group| vec![group]);
        Ok(Ok(sides::between(before, after, is_paired)?))
    }

    /// Returns the error for a metric of which no trace has samples. If the first trace has a metric with a similar
    /// name, the error names it.
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

/// Returns a file that is given more than once.
fn repeated(files: &[PathBuf]) -> Option<&Path> {
    let paths = files.iter().map(|file| file.canonicalize().ok());
    let mut known = HashSet::new();
    let again = paths.map(|path| path.is_some_and(|path| !known.insert(path)));
    let mut files = files.iter().zip(again);
    files.find_map(|(file, again)| again.then_some(file.as_path()))
}

/// Reads the files, and matches the measurements before the change with those after it. Adds doubts about the files
/// to `doubts`.
pub(super) fn read(
    args: &Args,
    [files_before, files_after]: [&[PathBuf]; 2],
    doubts: &mut Vec<String>,
) -> Result<Vec<Sides>, Failure> {
    if args.before.is_some() && !files_after.is_empty() {
        return Err(Failure::Input(
            "--before and --after name the sides within one file; give one file, or leave them out"
                .to_owned(),
        ));
    }
    let files = [files_before, files_after].concat();
    doubts.extend(repeated(&files).map(|file| {
        format!(
            "{} is given more than once: its copy is no second measurement.",
            file.display()
        )
    }));
    if !args.metric.is_empty() {
        return of_traces(args, [files_before, files_after], doubts);
    }
    let columns = args.value.as_ref().map(|value| Columns {
        value: value.clone(),
        run: args.run.clone(),
        by: args.by.clone(),
    });
    let all = |files: &[PathBuf]| -> Result<Vec<Vec<Group>>, Failure> {
        let groups = files.iter().map(|file| {
            let trace = "; if it is a trace, choose what to compare with --metric";
            groups(file, columns.as_ref(), trace)
        });
        groups.collect()
    };
    let before = all(files_before)?;
    if !files_after.is_empty() {
        let after = all(files_after)?;
        let [before, after] = [before, after].map(sides::joined);
        return Ok(sides::between(before, after, args.paired)?);
    }
    let [file]: [Vec<Group>; 1] = before.try_into().map_err(|several: Vec<_>| {
        Failure::Input(format!(
            "cannot determine which of {} were measured after the change; give these after --",
            counted(several.len() as u64, "file", "files")
        ))
    })?;
    let pairing = match (args.paired, args.unpaired) {
        (true, _) => Pairing::ByName,
        (_, true) => Pairing::Unpaired,
        _ => Pairing::Found,
    };
    let both = sides::within(file, args.before.as_deref(), args.after.as_deref(), pairing);
    let mut both = both.map_err(|error| match error {
        Error::Sides(what) if args.before.is_none() => Failure::Input(format!(
            "{what}, or give the measurement after the change as a second file after --"
        )),
        error => error.into(),
    })?;
    both.has_looks = columns.is_none()
        && both.design == Design::Paired
        && measured::has_looks(&files_before[0])?;
    Ok(vec![both])
}

/// Reads the runs of a file. `columns` are the names of the columns. A file of `laglab measure` needs no
/// `columns`. `advice` completes the error for other files.
pub(in crate::cli::prove) fn groups(
    file: &Path,
    columns: Option<&Columns>,
    advice: &str,
) -> Result<Vec<Group>, Failure> {
    files::open_file(file).map_err(|error| Failure::reading(file, &error))?;
    if let Some(columns) = columns {
        return Ok(columns::read(file, columns)?);
    }
    if imports::is_parquet(file) {
        Ok(measured::read(file)?)
    } else {
        Err(Failure::input(
            file,
            format!(
                "this file was not written by `laglab measure … -o FILE.parquet`; if it is a CSV file, name its \
                 columns with \
                 --value and --run{advice}"
            ),
        ))
    }
}

/// Reads the metrics of traces. Each trace is a run.
fn of_traces(
    args: &Args,
    [files_before, files_after]: [&[PathBuf]; 2],
    doubts: &mut Vec<String>,
) -> Result<Vec<Sides>, Failure> {
    let open = |files: &[PathBuf]| -> Result<Vec<(PathBuf, TraceTables)>, Failure> {
        let opened = files.iter().map(|file| {
            let tables = TabledTrace::new(std::slice::from_ref(file), args.no_cache).open()?;
            Ok((file.clone(), tables))
        });
        opened.collect()
    };
    if files_after.is_empty() {
        return Err(Failure::Input(
            "no traces after the change: give them after --, as in `laglab prove compare --metric dpc old*.etl -- \
             new*.etl`"
                .to_owned(),
        ));
    }
    let (before, after) = (open(files_before)?, open(files_after)?);
    for (file, tables) in before.iter().chain(&after) {
        let info = tables.watched(|options| Info::read(tables.store(), options))?;
        if info.damage.has_gaps() {
            doubts.push(format!(
                "{} is damaged or cut (laglab info says where): samples are missing.",
                file.display()
            ));
        }
    }
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for metric in &args.metric {
        match metric.sides(&before, &after, args.paired)? {
            Ok(both) => all.extend(both),
            Err(reason) => missing.push(reason),
        }
    }
    // A metric that the traces lack does not hide the results of the other metrics.
    if all.is_empty() && !missing.is_empty() {
        return Err(missing.swap_remove(0));
    }
    doubts.extend(missing.iter().filter_map(|reason| match reason {
        Failure::Input(text) | Failure::NotRecorded(text) => {
            Some(format!("{}.", wording::capitalized(text)))
        }
        _ => None,
    }));
    Ok(all)
}

fn run(metric: &TraceMetric, file: &Path, tables: &TraceTables) -> Result<Run, Failure> {
    let name = file.display().to_string();
    let found = tables.watched(|options| traces::read(tables.store(), name, metric, options))?;
    found.map_err(|table| {
        Failure::NotRecorded(format!(
            "cannot compare {metric}: {}: {}",
            file.display(),
            missing_rows(table, false)
        ))
    })
}
