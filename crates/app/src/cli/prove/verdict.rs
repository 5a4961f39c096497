//! `laglab prove verdict`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use diff::{ReadOptions, Recording};
use prove::change_plan::{self, Answer, Evidence, MeasurePlan, PlaceCheck, Side, Verdict, verdict};
use prove::measured::MeasuredFile;
use tune::inputs::Input;

use crate::cli::Failure;
use crate::cli::open::TabledTrace;
use crate::output;
use crate::output::say;

/// Gives the verdict about the changes of a plan: helped, harmed, no difference that matters, or unknown. If
/// the verdict is unknown, it says what would settle the question. It checks that the measurements and
/// traces are as planned.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune plan GlobalTimerResolutionRequests=1 --from SYSTEM -o plan\n  \
    laglab prove verdict plan                            what is missing, then the verdict\n  \
    laglab prove verdict plan --before old/*.parquet --after new/*.parquet\n\n\
    The folder of the plan has measure.toml, which lists what to measure. Its commands write into the folders \
    before/ and after/. Exports of registry keys (.reg) in these folders show that the settings were changed.\n\n\
    Exit codes: 0 helped; 1 harmed, no difference that matters, or unknown; 2 wrong usage or unreadable input.")]
pub(super) struct Args {
    /// Folder of the plan, or the file measure.toml of the plan
    plan: PathBuf,
    /// Measurements, traces and exports (.reg) before the change [default: all in the folder before]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    before: Vec<PathBuf>,
    /// Measurements, traces and exports (.reg) after the change [default: all in the folder after]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    after: Vec<PathBuf>,
    /// Rebuild the tables of traces, and do not cache them
    #[arg(long)]
    no_cache: bool,
}

/// Maximum size of a plan in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Maximum number of files in a folder with the files before or after the change.
const MOST_FILES: usize = 1_000;

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (folder, file) = if args.plan.is_dir() {
        (args.plan.as_path(), args.plan.join(change_plan::FILE))
    } else {
        let folder = args.plan.parent().unwrap_or(Path::new("."));
        (folder, args.plan.clone())
    };
    let plan = read_plan(&file)?;
    let evidence = Evidence {
        before: side(args, &args.before, folder, "before", tune::plan::UNDO)?,
        after: side(args, &args.after, folder, "after", tune::plan::APPLY)?,
    };
    let verdict = verdict(&plan, &evidence)?;
    if json {
        output::json(&verdict)?;
    } else {
        let mut out = output::for_people();
        write(&mut out, &verdict)?;
        out.flush()?;
    }
    match verdict.answer {
        Answer::Helped => Ok(()),
        Answer::Harmed => Err(negative("the changes did harm")),
        Answer::NoDifference => Err(negative("the changes make no difference that matters")),
        Answer::Unknown => Err(negative("it is unknown whether the changes helped")),
    }
}

fn negative(text: &str) -> Failure {
    Failure::Negative(text.to_owned())
}

fn read_plan(file: &Path) -> Result<MeasurePlan, Failure> {
    let advice = "give the folder of a plan that `laglab tune plan` wrote";
    let text = String::from_utf8(Failure::read(file, MOST_BYTES)?);
    let text = text.map_err(|_| Failure::input(file, format!("it is not UTF-8 text; {advice}")))?;
    MeasurePlan::parse(&text).map_err(|error| Failure::input(file, format!("{error}; {advice}")))
}

/// Reads the files before the change, or the files after it. If `given` is empty, reads the files in the plan's
/// folder `name`. `planned` is the file of the plan with the settings that the machine should have on this side of
/// the change.
fn side(
    args: &Args,
    given: &[PathBuf],
    folder: &Path,
    name: &str,
    planned: &str,
) -> Result<Side, Failure> {
    let files = if given.is_empty() {
        files_in(&folder.join(name))?
    } else {
        given.to_vec()
    };
    let mut side = Side::default();
    let mut exports = Vec::new();
    for file in files {
        let has_extension = |known: &[&str]| {
            let extension = file.extension().and_then(|it| it.to_str());
            extension.is_some_and(|it| known.iter().any(|known| it.eq_ignore_ascii_case(known)))
        };
        if let Err(error) = fs::metadata(&file) {
            return Err(Failure::reading(&file, &error));
        }
        if imports::is_parquet(&file) || has_extension(&["parquet"]) {
            side.measured.push(MeasuredFile::read(&file)?);
        } else if has_extension(&["etl", "zip", "cab", "diagsession"]) {
            let tables = TabledTrace::new(std::slice::from_ref(&file), args.no_cache).open()?;
            let recording = tables.watched(|options| {
                Recording::read(tables.store(), &ReadOptions::default(), options)
            })?;
            side.add_recording(recording);
        } else if has_extension(&["reg"]) {
            exports.push(file);
        } else if !given.is_empty() {
            let what = "unknown kind of file; give measurements (.parquet), traces (.etl) and exports (.reg)";
            return Err(Failure::input(&file, what));
        } else {
            say(&format!(
                "{}: ignored; measurements (.parquet), traces (.etl) and exports (.reg) are read",
                file.display()
            ));
        }
    }
    let planned = folder.join(planned);
    if !exports.is_empty() && planned.exists() {
        let places = tune::plan::agreement(&read_settings(&[planned])?, &read_settings(&exports)?);
        side.places = (places.into_iter())
            .map(|(place, as_planned)| PlaceCheck {
                place: place.to_string(),
                as_planned,
            })
            .collect();
    }
    Ok(side)
}

fn read_settings(files: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let inputs = tune::inputs::read_files(files);
    inputs.map_err(|error| crate::cli::tune::failure(&error))
}

/// Returns the files in a folder, sorted by name. Returns no files if the folder does not exist.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| Failure::reading(folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            let what = format!(
                "it has more than {MOST_FILES} files; give files with --before and --after"
            );
            return Err(Failure::input(folder, what));
        }
    }
    files.sort();
    Ok(files)
}

fn write(out: &mut dyn Write, verdict: &Verdict) -> io::Result<()> {
    output::first_heading(out, &headline(verdict))?;
    for doubt in &verdict.doubts {
        output::paragraph(out, &format!("Doubt: {}.", doubt.trim_end_matches('.')))?;
    }
    for check in &verdict.checks {
        output::heading(out, &format!("{}: {}", check.name, check.answer))?;
        output::paragraph(out, &format!("{}.", check.result))?;
        let settings = wording::listed(&check.settings);
        if !settings.is_empty() {
            output::quiet(out, &format!("shows the effect of the setting {settings}"))?;
        }
        for doubt in &check.doubts {
            output::paragraph(out, &format!("Doubt: {}.", doubt.trim_end_matches('.')))?;
        }
    }
    if !verdict.settle.is_empty() {
        output::heading(out, "To get a verdict")?;
        for step in &verdict.settle {
            output::paragraph(out, &format!("{step}."))?;
        }
    }
    Ok(())
}

/// Returns the verdict in one sentence.
fn headline(verdict: &Verdict) -> String {
    let answer = verdict.answer;
    let word = match answer {
        Answer::Helped => "Helped",
        Answer::Harmed => "Harmed",
        Answer::NoDifference => "No difference that matters",
        Answer::Unknown => "Unknown",
    };
    let deciding = verdict.checks.iter().find(|check| check.answer == answer);
    match (&verdict.why, deciding) {
        (Some(why), _) => format!("{word}: {why}."),
        (None, Some(check)) => format!("{word}: {}. {}.", check.name, check.result),
        (None, None) => format!("{word}."),
    }
}
