//! `laglab tune bisect`.

mod command;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tune::bisect::{Log, Outcome, Plan, Purpose, References, Search, Step, Suspect};
use tune::inputs::{Input, InputError};

use crate::cli::{Failure, NewFile, say};
use crate::duration::{Plain, nanoseconds};
use crate::output::{self, Columns, Side};

/// Finds which of many settings makes it slow: makes some of them active, measures, and goes on with
/// fewer, reckoning with measurements that vary and answers that are wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune bisect baseline.txt --measure ./apply-and-copy.sh\n  \
    laglab tune bisect baseline.txt --measure 'ntttcp-run.cmd' --lower-is-better --timeout 20m\n  \
    laglab tune bisect baseline.txt --manual                   what to make active, and how to answer\n  \
    laglab tune bisect baseline.txt --manual --measured 412    … and what it came to\n  \
    laglab tune bisect baseline.txt --manual --said bad\n\n\
    BASELINE is a policy, a baseline or an export, or a text file with a setting per line. CMD makes just the settings active that are listed in the file \
    LAGLAB_SETTINGS, a line each, and prints a number, of which the last counts. What was measured is kept \
    after each measurement; the same command goes on.\n\n\
    Exit code 1: no setting is found guilty.")]
pub(super) struct Args {
    /// What sets them: a policy, baseline or export as audit takes it, or a text file with a setting per
    /// line, where lines that begin with # are none
    #[arg(value_name = "BASELINE")]
    baseline: PathBuf,
    /// The command that makes the settings of a file active and prints what it measured
    #[arg(long, value_name = "CMD", required_unless_present = "manual")]
    measure: Option<String>,
    /// Say what is to be made active, and be told what was measured
    #[arg(long, conflicts_with = "measure")]
    manual: bool,
    /// What was measured with the settings that were asked for
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "manual",
        allow_negative_numbers = true
    )]
    measured: Option<f64>,
    /// How it was with the settings that were asked for
    #[arg(
        long,
        value_name = "WORD",
        requires = "manual",
        conflicts_with = "measured"
    )]
    said: Option<Word>,
    /// Where to write the settings to be made active, a line each [default: standard output]
    #[arg(long, value_name = "FILE", requires = "manual")]
    settings: Option<PathBuf>,
    /// Where to keep what was measured [default: the baseline's name and .bisect.toml]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// A lower number is the better one, as of a time
    #[arg(long)]
    lower_is_better: bool,
    /// How long a measurement may take
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    timeout: Duration,
    /// How often what is fast may be called slow, in percent [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    false_alarm: Option<f64>,
    /// How often what is slow may be called fast, in percent [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    miss: Option<f64>,
    /// Slow is what costs this much of what all settings cost, in percent [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    effect: Option<f64>,
    /// How sure a conclusion must be, in percent [default: 99.5]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Search")]
    confidence: Option<f64>,
    /// Measurements without any setting, and as many with all [default: 10]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    references: Option<u32>,
    /// Measurements of other rounds at most [default: 20]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    measurements: Option<u32>,
    /// Rounds at most [default: 100]
    #[arg(long, value_name = "COUNT", help_heading = "Search")]
    rounds: Option<u32>,
}

/// How it was.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// As fast as without any of the settings
    Good,
    /// As slow as with all of them
    Bad,
}

/// Larger files are no lists of settings.
const MOST_BYTES: u64 = 16 << 20;

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
        None => answer(args, &path, &mut search)?,
    }
    match search.step() {
        Step::Measure { .. } => ask(args, &search, json),
        Step::Done(outcome) => tell(&search, &outcome, json),
    }
}

/// The settings of a baseline: a policy, baseline or export, or a list of lines.
fn settings(path: &Path) -> Result<Vec<String>, Failure> {
    match tune::inputs::read_files(&[path]) {
        Ok(inputs) => {
            for input in &inputs {
                if input.complaints.count > 0 {
                    say(&format!(
                        "{}: lines or entries that cannot be read and are left out: {}",
                        input.name, input.complaints.count
                    ));
                }
            }
            Ok(of_inputs(&inputs))
        }
        Err(InputError::Unknown { .. }) => list(path),
        Err(error) => Err(Failure::Input(error.to_string())),
    }
}

/// What inputs set, each place once, with the value that is said last.
fn of_inputs(inputs: &[Input]) -> Vec<String> {
    let mut places = HashMap::new();
    let mut settings: Vec<String> = Vec::new();
    for found in inputs.iter().flat_map(|input| &input.found) {
        let place = found.place.to_string();
        let setting = match &found.value {
            Some(value) => format!("{place} = {value}"),
            None => format!("{place} is not set"),
        };
        match places.entry(place.to_lowercase()) {
            Entry::Occupied(there) => settings[*there.get()] = setting,
            Entry::Vacant(new) => {
                new.insert(settings.len());
                settings.push(setting);
            }
        }
    }
    settings
}

/// The lines of a list.
fn list(path: &Path) -> Result<Vec<String>, Failure> {
    let length = fs::metadata(path)
        .map_err(|error| Failure::input(path, error))?
        .len();
    if length > MOST_BYTES {
        return Err(Failure::input(
            path,
            format!("has {length} bytes, more than any list of settings"),
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| Failure::input(path, error))?;
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
                format!("line {}: `{line}` is there twice", number + 1),
            ));
        }
        settings.push(line.to_owned());
    }
    Ok(settings)
}

/// The search as far as its log has it.
fn resume(args: &Args, path: &Path, settings: Vec<String>) -> Result<Search, Failure> {
    let log = match fs::read_to_string(path) {
        Ok(text) => Log::parse(&text).map_err(|error| Failure::input(path, error))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let plan = plan(args, Plan::default());
            let log = Log::new(settings.clone(), plan);
            log.map_err(|error| Failure::input(&args.baseline, error))?
        }
        Err(error) => return Err(Failure::input(path, error)),
    };
    let another =
        "another search; give another --log for this one, or remove the file to begin anew";
    if log.settings != settings {
        return Err(Failure::input(
            path,
            format!(
                "is about other settings than {}: {another}",
                args.baseline.display()
            ),
        ));
    }
    if plan(args, log.plan.clone()) != log.plan {
        return Err(Failure::input(
            path,
            format!("was begun with other options: {another}"),
        ));
    }
    Search::resume(log).map_err(|error| Failure::input(path, error))
}

/// A plan with what is given.
fn plan(args: &Args, plan: Plan) -> Plan {
    let mut given = plan;
    given.lower_is_better |= args.lower_is_better;
    let set = |value: &mut f64, given: Option<f64>| *value = given.unwrap_or(*value);
    set(&mut given.rates.false_alarm, args.false_alarm);
    set(&mut given.rates.miss, args.miss);
    set(&mut given.effect, args.effect);
    set(&mut given.confidence, args.confidence);
    let set = |value: &mut u32, given: Option<u32>| *value = given.unwrap_or(*value);
    set(&mut given.references, args.references);
    set(&mut given.measurements, args.measurements);
    set(&mut given.rounds, args.rounds);
    given
}

fn keep(path: &Path, search: &Search) -> Result<(), Failure> {
    let file = NewFile::create(path)?;
    let written = file.file().write_all(search.log().to_text().as_bytes());
    written.map_err(|error| Failure::input(path, error))?;
    file.finish().map(|_| ())
}

/// Measures by a command until there is an outcome.
fn measure(args: &Args, path: &Path, search: &mut Search, command: &str) -> Result<(), Failure> {
    let mut told = None;
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
        if told != Some(round) {
            say(&format!(
                "round {round}: {}",
                what_is_active(search, purpose, &active)
            ));
            told = Some(round);
        }
        let lines = lines(search, &active);
        let value = command::measure(command, &lines, round, args.timeout)?;
        search
            .measured(value)
            .map_err(|error| Failure::Input(error.to_string()))?;
        keep(path, search)?;
    }
}

/// Takes note of what a person tells.
fn answer(args: &Args, path: &Path, search: &mut Search) -> Result<(), Failure> {
    let noted = match (args.measured, args.said) {
        (Some(value), _) => search.measured(value),
        (None, Some(word)) => search.said(word == Word::Bad),
        (None, None) => return Ok(()),
    };
    noted.map_err(|error| Failure::Input(error.to_string()))?;
    keep(path, search)
}

fn lines(search: &Search, active: &[usize]) -> String {
    let names = active
        .iter()
        .map(|place| search.log().settings[*place].as_str());
    names.flat_map(|name| [name, "\n"]).collect()
}

fn what_is_active(search: &Search, purpose: Purpose, active: &[usize]) -> String {
    match purpose {
        Purpose::WithoutAny => {
            "none of the settings is active, to know how it is without".to_owned()
        }
        Purpose::WithAll => format!(
            "all {} settings are active, to know how it is with them",
            active.len()
        ),
        Purpose::Trial => format!(
            "{} of {} settings are active",
            active.len(),
            search.log().settings.len()
        ),
    }
}

/// What a person is asked to do, in its stable shape for programs.
#[derive(Serialize)]
struct Asked<'a> {
    round: usize,
    purpose: Purpose,
    taken: usize,
    settings: Vec<&'a str>,
}

/// Asks a person to measure.
fn ask(args: &Args, search: &Search, json: bool) -> Result<(), Failure> {
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
        written.map_err(|error| Failure::input(path, error))?;
    }
    if json {
        let names = active
            .iter()
            .map(|place| search.log().settings[*place].as_str());
        output::json(&Asked {
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
            what_is_active(search, purpose, &active)
        ),
    )?;
    match &args.settings {
        Some(path) => output::paragraph(&mut out, &format!("They are in {}.", path.display()))?,
        None => {
            for place in &active {
                output::verbatim(&mut out, &search.log().settings[*place])?;
            }
        }
    }
    let what = match (purpose, taken) {
        (Purpose::Trial, 0) => {
            "Make just these active, measure, and say what it came to:".to_owned()
        }
        (Purpose::Trial, taken) => {
            format!("Leave it so and measure again (it was measured {taken} times):")
        }
        (_, taken) => format!(
            "Leave it so and measure {} times, saying each time what it came to:",
            search.log().plan.references as usize - taken
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
    output::paragraph(&mut out, "or, where no number says it, once:")?;
    output::verbatim(&mut out, &format!("{command} --said good|bad"))?;
    out.flush()?;
    Ok(())
}

/// What a search came to, in its stable shape for programs.
#[derive(Serialize)]
struct Told<'a> {
    outcome: &'static str,
    causes: Vec<Vec<&'a str>>,
    remains: Option<f64>,
    suspects: Vec<ToldSuspect<'a>>,
    references: Option<&'a References>,
    rounds: usize,
    measurements: usize,
}

#[derive(Serialize)]
struct ToldSuspect<'a> {
    setting: &'a str,
    probability: f64,
}

/// Tells what it came to.
fn tell(search: &Search, outcome: &Outcome, json: bool) -> Result<(), Failure> {
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
        output::json(&Told {
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
                     }| ToldSuspect {
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
        let effort = format!("{} rounds, {measurements} measurements", log.rounds.len());
        output::first_heading(
            &mut out,
            &format!("{} settings, {effort}", log.settings.len()),
        )?;
        if let Some(references) = search.references() {
            let line = format!(
                "Without any of them it measures {}, with all {}; measurements of one state vary by {}.",
                digits(references.fast),
                digits(references.slow),
                digits(references.deviation)
            );
            output::paragraph(&mut out, &line)?;
        }
        for cause in causes {
            match &cause[..] {
                [one] => output::paragraph(&mut out, &format!("Guilty by itself: {}", name(one)))?,
                several => {
                    output::paragraph(&mut out, "No single setting explains it; guilty together:")?;
                    for one in several {
                        output::verbatim(&mut out, name(one))?;
                    }
                }
            }
        }
        if let Some(remains) = remains {
            let line = format!(
                "Without the guilty, about {:.0} % of what all settings cost is left.",
                // Not -0.
                (100.0 * remains).round() + 0.0
            );
            output::paragraph(&mut out, &line)?;
        }
        write_outcome(&mut out, search, outcome)?;
        out.flush()?;
    }
    match outcome {
        Outcome::Found { .. } => Ok(()),
        _ => Err(Failure::Negative(
            "no setting is found guilty beyond what is told".to_owned(),
        )),
    }
}

fn write_outcome(out: &mut dyn Write, search: &Search, outcome: &Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Found { .. } => output::quiet(
            out,
            &format!(
                "A conclusion is drawn when it is {} % sure, if settings do not undo each other and the \
                 machine stays as it was.",
                100.0 * search.log().plan.confidence
            ),
        )?,
        Outcome::NoDifference(Some(references)) => output::paragraph(
            out,
            &format!(
                "All settings together make no difference that can be told from chance: the means are {:.1} \
                 standard errors apart, and {:.1} are needed. If there is one, more --references show it.",
                references.apart, references.needed
            ),
        )?,
        Outcome::NoDifference(None) => output::paragraph(
            out,
            "It is slow without any of the settings, or fast with all of them: it is not they.",
        )?,
        Outcome::Undecided {
            suspects,
            contradiction,
            ..
        } => {
            let why = match contradiction {
                true => {
                    "Answers contradict each other: settings may undo each other, or the machine changed."
                }
                false => "Too many rounds: --rounds allows more, in a new --log.",
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
            output::paragraph(out, "Most suspect:")?;
            columns.write(out)?;
        }
    }
    Ok(())
}

/// A number with four digits that matter.
fn digits(number: f64) -> String {
    let before_point = number.abs().max(1e-9).log10().floor() as i32 + 1;
    let decimals = usize::try_from(4 - before_point).unwrap_or(0);
    format!("{number:.decimals$}")
}

/// A share, given in percent.
fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    (number.filter(|percent| (0.0..=100.0).contains(percent)))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a number of percent, 0 to 100".to_owned())
}

/// A time, which may be minutes.
fn time(text: &str) -> Result<Duration, String> {
    let ns = match text.strip_suffix('m') {
        Some(minutes) => nanoseconds(minutes, Plain::Seconds).and_then(|ns| ns.checked_mul(60)),
        None => nanoseconds(text, Plain::Seconds),
    };
    (ns.and_then(|ns| u64::try_from(ns).ok())
        .filter(|ns| *ns > 0))
    .map(Duration::from_nanos)
    .ok_or_else(|| "expected a time such as 90s or 20m".to_owned())
}
