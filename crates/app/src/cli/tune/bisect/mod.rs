//! `laglab tune bisect`.

mod command;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bisect::{Log, Outcome, Plan, Purpose, References, Search, Step, Suspect};
use serde::Serialize;
use session::NewFile;
use tune::inputs::{Input, InputError};

use super::{chain, failure};
use crate::cli::Failure;
use crate::cli::time_with_unit::time_with_unit;
use crate::output::say;
use crate::output::{self, Columns, Side, counted};

/// Finds the setting that makes the machine slow, among many settings. It activates some of them,
/// measures, and continues with fewer. Measurements may vary, and some of them may even be wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune bisect baseline.txt --measure ./apply-and-copy.sh\n  \
    laglab tune bisect baseline.txt --measure 'ntttcp-run.cmd' --lower-is-better --timeout 20m\n  \
    laglab tune bisect baseline.txt --manual                   print the settings to activate\n  \
    laglab tune bisect baseline.txt --manual --measured 412    enter a measurement\n  \
    laglab tune bisect baseline.txt --manual --said bad        enter a judgement\n\n\
    BASELINE is a policy, a baseline or an export, or a text file with a setting per line. CMD must activate \
    exactly the settings in the file LAGLAB_SETTINGS, one per line, and print a number; the last one counts. \
    Every measurement is saved; run the same command again to continue.\n\n\
    Exit code 1: no guilty setting was found.")]
pub(super) struct Args {
    /// Policy, baseline or export as for audit, or a text file with a setting per line (# starts a comment)
    #[arg(value_name = "BASELINE")]
    baseline: PathBuf,
    /// Command that activates the settings of a file and prints a measurement
    #[arg(long, value_name = "CMD", required_unless_present = "manual")]
    measure: Option<String>,
    /// Print the settings to activate; the user enters measurements
    #[arg(long, conflicts_with = "measure")]
    manual: bool,
    /// Result of the measurement with the printed settings
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "manual",
        allow_negative_numbers = true
    )]
    measured: Option<f64>,
    /// Your judgement of the machine with the printed settings: fast or slow
    #[arg(
        long,
        value_name = "WORD",
        requires = "manual",
        conflicts_with = "measured"
    )]
    said: Option<Word>,
    /// Write the settings to activate to this file, one per line [default: standard output]
    #[arg(long, value_name = "FILE", requires = "manual")]
    settings: Option<PathBuf>,
    /// Save the measurements in this file [default: BASELINE.bisect.toml]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Lower numbers are better (for example, if the measurement is a time)
    #[arg(long)]
    lower_is_better: bool,
    /// Maximum duration of a measurement
    #[arg(long, value_name = "TIME", value_parser = time_with_unit, default_value = "10m")]
    timeout: Duration,
    /// Maximum rate at which a fast measurement is judged slow, in percent [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    false_alarm: Option<f64>,
    /// Maximum rate at which a slow measurement is judged fast, in percent [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    miss: Option<f64>,
    /// A measurement counts as slow if it has at least this share of the total slowdown, in percent [default:
    /// 50]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    effect: Option<f64>,
    /// Draw a conclusion only if it is correct with at least this probability, in percent [default: 99.5]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    confidence: Option<f64>,
    /// Number of reference measurements without any setting, and number of reference measurements with all
    /// settings; at least 7 [default: 10]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    references: Option<u32>,
    /// Maximum number of measurements in a round, except the rounds with reference measurements [default: 20]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    measurements: Option<u32>,
    /// Maximum number of rounds [default: 100]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    rounds: Option<u32>,
}

/// User's answer for the settings of one step: the machine is fast or slow with these settings.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Fast, as without any setting
    Good,
    /// Slow, as with all settings
    Bad,
}

/// Maximum size of a list of settings, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of bytes of a log of a search.
const MAX_LOG: u64 = 256 << 20;

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let settings = settings(&args.baseline)?;
    let path = args.log.clone().unwrap_or_else(|| {
        let mut name = args.baseline.clone().into_os_string();
        name.push(".bisect.toml");
        name.into()
    });
    let mut search = resume(args, &path, settings)?;
    match &args.measure {
        Some(command) => measure(args, &path, &mut search, command)?,
        None => enter(args, &path, &mut search)?,
    }
    match search.step() {
        Step::Measure { .. } => print_step(args, &search, json),
        Step::Done(outcome) => print_outcome(&search, &outcome, json),
    }
}

/// Reads the settings of a baseline. The file is a policy, a baseline, an export, or a list of settings.
fn settings(path: &Path) -> Result<Vec<String>, Failure> {
    match tune::inputs::read_files(&[path]) {
        Ok(inputs) => {
            for input in &inputs {
                if input.complaints.count > 0 {
                    say(&format!(
                        "{}: {} unreadable lines or entries skipped",
                        input.name, input.complaints.count
                    ));
                }
            }
            Ok(settings_of(&inputs))
        }
        Err(InputError::Unknown { .. }) => list(path),
        Err(error) => Err(failure(&error)),
    }
}

/// Returns the settings in the inputs. If a setting occurs several times, its last value counts.
fn settings_of(inputs: &[Input]) -> Vec<String> {
    let mut places = HashMap::new();
    let mut settings: Vec<String> = Vec::new();
    for found in inputs.iter().flat_map(|input| &input.found) {
        let place = &found.place;
        let setting = match &found.value {
            Some(value) => format!("{place} = {value}"),
            None => format!("{place} is not set"),
        };
        match places.entry(place) {
            Entry::Occupied(there) => settings[*there.get()] = setting,
            Entry::Vacant(new) => {
                new.insert(settings.len());
                settings.push(setting);
            }
        }
    }
    settings
}

/// Reads a list of settings, one per line.
fn list(path: &Path) -> Result<Vec<String>, Failure> {
    let text = String::from_utf8(Failure::read(path, MAX_BYTES)?)
        .map_err(|_| Failure::reading(path, &ErrorKind::InvalidData.into()))?;
    let mut seen = HashSet::new();
    let mut settings = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !seen.insert(line) {
            return Err(Failure::input(
                path,
                format!("line {}: duplicate setting `{line}`", number + 1),
            ));
        }
        settings.push(line.to_owned());
    }
    Ok(settings)
}

/// Resumes the search that a log describes. Without a log, starts a new search.
fn resume(args: &Args, path: &Path, settings: Vec<String>) -> Result<Search, Failure> {
    let log = match files::read_file(path, MAX_LOG) {
        Ok(text) => Log::parse(&String::from_utf8_lossy(&text))
            .map_err(|error| Failure::input(path, chain(&error)))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let plan = plan(args, Plan::default());
            let log = Log::new(settings.clone(), plan);
            log.map_err(|error| Failure::input(&args.baseline, chain(&error)))?
        }
        Err(error) => return Err(Failure::reading(path, &error)),
    };
    let advice = "give another --log, or delete the file to start again";
    if log.settings != settings {
        return Err(Failure::input(
            path,
            format!(
                "the log has other settings than {}: {advice}",
                args.baseline.display()
            ),
        ));
    }
    if plan(args, log.plan.clone()) != log.plan {
        return Err(Failure::input(
            path,
            format!("the log was started with other options: {advice}"),
        ));
    }
    Search::resume(log).map_err(|error| Failure::input(path, chain(&error)))
}

/// Returns the plan. The values of the options replace the parameters of `plan`.
fn plan(args: &Args, plan: Plan) -> Plan {
    let mut updated = plan;
    updated.lower_is_better |= args.lower_is_better;
    let set = |value: &mut f64, option: Option<f64>| *value = option.unwrap_or(*value);
    set(&mut updated.rates.false_alarm, args.false_alarm);
    set(&mut updated.rates.miss, args.miss);
    set(&mut updated.effect, args.effect);
    set(&mut updated.confidence, args.confidence);
    let set = |value: &mut u32, option: Option<u32>| *value = option.unwrap_or(*value);
    set(&mut updated.references, args.references);
    set(&mut updated.measurements, args.measurements);
    set(&mut updated.rounds, args.rounds);
    updated
}

fn save(path: &Path, search: &Search) -> Result<(), Failure> {
    let file = NewFile::create(path)?;
    let written = file.file().write_all(search.log().to_text().as_bytes());
    written.map_err(|error| Failure::writing(path, &error))?;
    file.finish()?;
    Ok(())
}

/// Runs the measuring command again and again until the search ends.
fn measure(args: &Args, path: &Path, search: &mut Search, command: &str) -> Result<(), Failure> {
    let mut printed = None;
    loop {
        let Step::Measure {
            round,
            purpose,
            active,
            ..
        } = search.step()
        else {
            return Ok(());
        };
        if printed != Some(round) {
            say(&format!(
                "round {round}: {}",
                active_settings(search, purpose, &active)
            ));
            printed = Some(round);
        }
        let lines = lines(search, &active);
        let value = command::measure(command, &lines, round, args.timeout)?;
        search.measured(value).map_err(|error| failure(&error))?;
        save(path, search)?;
    }
}

/// Adds a measurement or judgement that the user entered.
fn enter(args: &Args, path: &Path, search: &mut Search) -> Result<(), Failure> {
    let added = match (args.measured, args.said) {
        (Some(value), _) => search.measured(value),
        (None, Some(word)) => search.judged(word == Word::Bad),
        (None, None) => return Ok(()),
    };
    added.map_err(|error| failure(&error))?;
    save(path, search)
}

fn lines(search: &Search, active: &[usize]) -> String {
    let names = active
        .iter()
        .map(|place| search.log().settings[*place].as_str());
    names.flat_map(|name| [name, "\n"]).collect()
}

fn active_settings(search: &Search, purpose: Purpose, active: &[usize]) -> String {
    match purpose {
        Purpose::WithoutAny => "no settings are active (reference)".to_owned(),
        Purpose::WithAll => format!("all {} settings are active (reference)", active.len()),
        Purpose::Trial => format!(
            "{} of {} settings are active",
            active.len(),
            search.log().settings.len()
        ),
    }
}

/// JSON output: next measurement that the user should make. Programs rely on its fields.
#[derive(Serialize)]
struct StepJson<'a> {
    round: usize,
    purpose: Purpose,
    taken: usize,
    settings: Vec<&'a str>,
}

/// Prints the next measurement that the user should make.
fn print_step(args: &Args, search: &Search, json: bool) -> Result<(), Failure> {
    let Step::Measure {
        round,
        purpose,
        active,
        taken,
    } = search.step()
    else {
        return Ok(());
    };
    if let Some(path) = &args.settings {
        let written = fs::write(path, lines(search, &active));
        written.map_err(|error| Failure::writing(path, &error))?;
    }
    if json {
        let names = active
            .iter()
            .map(|place| search.log().settings[*place].as_str());
        output::json(&StepJson {
            round,
            purpose,
            taken,
            settings: names.collect(),
        })?;
        return Ok(());
    }
    let mut out = output::for_people();
    output::first_heading(
        &mut out,
        &format!(
            "Round {round}: {}",
            active_settings(search, purpose, &active)
        ),
    )?;
    match &args.settings {
        Some(path) => output::paragraph(
            &mut out,
            &format!("The settings are in {}.", path.display()),
        )?,
        None => {
            for place in &active {
                output::verbatim(&mut out, &search.log().settings[*place])?;
            }
        }
    }
    let what = match (purpose, taken) {
        (Purpose::Trial, 0) => {
            "Activate exactly these settings, measure, and enter the result:".to_owned()
        }
        (Purpose::Trial, taken) => {
            let measurements = counted(taken as u64, "measurement", "measurements");
            format!("Keep these settings and measure again ({measurements} so far):")
        }
        (_, taken) => format!(
            "With exactly these settings, measure {}, and enter each result:",
            counted(
                (search.log().plan.references as usize - taken) as u64,
                "time",
                "times"
            )
        ),
    };
    output::paragraph(&mut out, &what)?;
    let path = |option: &str, path: &Option<PathBuf>| {
        (path.as_ref()).map_or(String::new(), |path| {
            format!(" --{option} {}", path.display())
        })
    };
    let command = format!(
        "laglab tune bisect {} --manual{}{}",
        args.baseline.display(),
        path("log", &args.log),
        path("settings", &args.settings)
    );
    output::verbatim(&mut out, &format!("{command} --measured NUMBER"))?;
    output::paragraph(&mut out, "or enter a judgement once:")?;
    output::verbatim(&mut out, &format!("{command} --said good|bad"))?;
    out.flush()?;
    Ok(())
}

/// JSON output: outcome of the search. Programs rely on its fields.
#[derive(Serialize)]
struct OutcomeJson<'a> {
    outcome: &'static str,
    causes: Vec<Vec<&'a str>>,
    remains: Option<f64>,
    suspects: Vec<SuspectJson<'a>>,
    references: Option<&'a References>,
    rounds: usize,
    measurements: usize,
}

#[derive(Serialize)]
struct SuspectJson<'a> {
    setting: &'a str,
    probability: f64,
}

/// Prints the outcome of the search.
fn print_outcome(search: &Search, outcome: &Outcome, json: bool) -> Result<(), Failure> {
    let log = search.log();
    let name = |place: &usize| log.settings[*place].as_str();
    let none = (&[][..], &[][..], None);
    let (word, (causes, suspects, remains)) = match outcome {
        Outcome::NoDifference(_) => ("no_difference", none),
        Outcome::Found { causes, remains } => ("found", (&causes[..], &[][..], *remains)),
        Outcome::Undecided {
            causes, suspects, ..
        } => ("undecided", (&causes[..], &suspects[..], None)),
    };
    let measurements = log.rounds.iter().map(|round| round.values.len()).sum();
    if json {
        output::json(&OutcomeJson {
            outcome: word,
            causes: causes
                .iter()
                .map(|cause| cause.iter().map(name).collect())
                .collect(),
            remains,
            suspects: (suspects.iter())
                .map(
                    |Suspect {
                         setting,
                         probability,
                     }| SuspectJson {
                        setting: name(setting),
                        probability: *probability,
                    },
                )
                .collect(),
            references: search.references(),
            rounds: log.rounds.len(),
            measurements,
        })?;
    } else {
        let mut out = output::for_people();
        let effort = format!(
            "{}, {}",
            counted(log.rounds.len() as u64, "round", "rounds"),
            counted(measurements as u64, "measurement", "measurements")
        );
        output::first_heading(
            &mut out,
            &format!(
                "{}, {effort}",
                counted(log.settings.len() as u64, "setting", "settings")
            ),
        )?;
        if let Some(references) = search.references() {
            let line = format!(
                "The mean is {} without any setting and {} with all settings; the standard \
                 deviation is {}.",
                digits(references.fast),
                digits(references.slow),
                digits(references.deviation)
            );
            output::paragraph(&mut out, &line)?;
        }
        for cause in causes {
            match &cause[..] {
                [one] => output::paragraph(&mut out, &format!("Guilty setting: {}", name(one)))?,
                several => {
                    output::paragraph(
                        &mut out,
                        "No single setting is guilty. These settings are guilty in combination:",
                    )?;
                    for one in several {
                        output::verbatim(&mut out, name(one))?;
                    }
                }
            }
        }
        if let Some(remains) = remains {
            let line = format!(
                "Without the guilty settings, about {:.0} % of the slowdown remains.",
                // Adding 0 turns -0 into 0.
                (100.0 * remains).round() + 0.0
            );
            output::paragraph(&mut out, &line)?;
        }
        write_outcome(&mut out, search, outcome)?;
        out.flush()?;
    }
    match outcome {
        Outcome::Found { .. } => Ok(()),
        _ => Err(Failure::Negative("no guilty setting was found".to_owned())),
    }
}

fn write_outcome(out: &mut dyn Write, search: &Search, outcome: &Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Found { .. } => output::quiet(
            out,
            &format!(
                "The probability of this result is at least {} %, if no setting undoes another and \
                 the machine does not change.",
                100.0 * search.log().plan.confidence
            ),
        )?,
        Outcome::NoDifference(Some(references)) => output::paragraph(
            out,
            &format!(
                "All settings together make no difference beyond chance: two equal machines differ \
                 by as much in {:.1} % of cases, and at most {:.1} % are allowed. More \
                 --references can show a smaller difference.",
                100.0 * references.chance,
                100.0 * References::MAX_CHANCE
            ),
        )?,
        Outcome::NoDifference(None) => output::paragraph(
            out,
            "The machine is slow without any setting, or fast with all: the settings are not the cause.",
        )?,
        Outcome::Undecided {
            suspects,
            contradiction,
            ..
        } => {
            let why = if *contradiction {
                "Measurements contradict each other: a setting may undo another one, or the \
                     machine changed."
            } else {
                "The maximum number of rounds is reached: allow more with --rounds, and start \
                     again with a new --log."
            };
            output::warning(out, why)?;
            let mut columns = Columns::new(&[Side::Right, Side::Left]);
            for Suspect {
                setting,
                probability,
            } in suspects
            {
                let name = search.log().settings[*setting].clone();
                columns.row([format!("{:.1} %", 100.0 * probability), name]);
            }
            output::paragraph(out, "Main suspects:")?;
            columns.write(out)?;
        }
    }
    Ok(())
}

/// Formats a number with about four significant digits.
fn digits(number: f64) -> String {
    let before_point = number.abs().max(1e-9).log10().floor() as i32 + 1;
    let decimals = usize::try_from(4 - before_point).unwrap_or(0);
    format!("{number:.decimals$}")
}

/// Parses a percentage. Returns it as a fraction.
fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    (number.filter(|percent| (0.0..=100.0).contains(percent)))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage from 0 to 100".to_owned())
}
