//! Tests with the scenarios in `tests/answers`. Each scenario has the answer that an expert gives. Each
//! scenario is explained with several seeds, releases of Windows and sizes of the machine, and with parts of
//! the recording removed.
//!
//! If `LAGLAB_ANSWERS` is set, it is the number of seeds of each scenario. Each seed is tested with all releases, and the
//! size changes from run to run. A scenario without a problem has twice as many seeds, and one release for each. All
//! removals are tested. If the variable is not set, only one of each is tested.

use std::fs;
use std::path::{Path, PathBuf};

use explain::Scope;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use simulated::{Simulated, text};
use toml::Table;

use super::explained::Explained;
use super::hangs::told;

/// Answer that an expert gives.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    /// Theory of the first finding; empty if nothing is wrong.
    theory: String,
    /// Other theories whose finding may come first. The theory that reports the wait depends on the length of the
    /// wait, which depends on the release of Windows.
    or: Vec<String>,
    /// Minimum severity of the first finding.
    severity: String,
    /// Texts that the first finding must contain.
    says: Vec<String>,
    /// Names of threads that the first finding must contain. Windows 7 does not record names of threads.
    threads: Vec<String>,
    /// Releases of Windows on which the scenario makes sense.
    windows: Vec<String>,
    /// True if the first finding must be the only warning or problem of its theory, because it lists all victims.
    alone: bool,
    /// Further warnings or problems that must exist.
    also: Vec<ExpectedFinding>,
    /// Theories that may also have warnings and problems, because these findings are true.
    may: Vec<String>,
    /// Texts that must not be in any warning or problem.
    never: Vec<String>,
    /// Answers to questions about a program or a time.
    ask: Vec<Question>,
    /// Numbers of processors.
    sizes: Vec<u32>,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer {
            theory: String::new(),
            or: Vec::new(),
            severity: "warning".to_owned(),
            says: Vec::new(),
            threads: Vec::new(),
            windows: WINDOWS.map(str::to_owned).to_vec(),
            alone: false,
            also: Vec::new(),
            may: Vec::new(),
            never: Vec::new(),
            ask: Vec::new(),
            sizes: vec![8, 12, 16],
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedFinding {
    theory: String,
    says: Vec<String>,
}

/// Question about a process, or about a moment in milliseconds, and the first finding that the answer must
/// have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    process: Option<String>,
    at_ms: Option<i64>,
    theory: String,
    says: Vec<String>,
}

/// Scenario with its answer.
struct KnownScenario {
    name: String,
    scenario: String,
    answer: Answer,
}

const WINDOWS: [&str; 4] = ["10-22H2", "11-25H2", "11-23H2", "7"];

const KERNEL: [&str; 15] = [
    "PROC_THREAD",
    "LOADER",
    "CSWITCH",
    "DISPATCHER",
    "PRIORITY",
    "ANTI_STARVATION",
    "DPC",
    "INTERRUPT",
    "PROFILE",
    "DISK_IO",
    "DISK_IO_INIT",
    "FILENAME",
    "HARD_FAULTS",
    "NETWORKTRACE",
    "POWER",
];

const STACKS: [&str; 3] = ["CSwitch", "ReadyThread", "Profile"];

const PROVIDERS: [&str; 6] = [
    "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-Win32k",
    "Microsoft-Windows-Kernel-Process",
    "Microsoft-Windows-Kernel-Power",
    "Microsoft-Windows-NDIS-PacketCapture",
    "Multi-Input",
];

/// Returns settings. Each setting removes a part of the recording.
fn removals() -> Vec<String> {
    let without = |list: &str, all: &[&str]| -> Vec<String> {
        let names = (0..all.len()).map(|gone| {
            let kept = (0..all.len()).filter(|place| *place != gone);
            let kept: Vec<String> = kept.map(|place| format!("\"{}\"", all[place])).collect();
            format!("record.{list}=[{}]", kept.join(","))
        });
        names.collect()
    };
    let mut all = without("kernel", &KERNEL);
    all.extend(without("stacks", &STACKS));
    all.extend(without("providers", &PROVIDERS));
    all.extend([
        "record.stacks=[]".to_owned(),
        "record.providers=[]".to_owned(),
    ]);
    all
}

/// Reads the scenarios, in the order of their names.
fn known() -> Vec<KnownScenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let all = files.iter().map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut scenario: Table = fs::read_to_string(path).unwrap().parse().unwrap();
        let answer = scenario.remove("answer").expect("an answer");
        let answer = answer.try_into();
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        KnownScenario {
            name,
            scenario: toml::to_string(&scenario).unwrap(),
            answer,
        }
    });
    all.collect()
}

/// Returns the text of all problems and warnings: the theory, the sentence and the reasons of each.
fn complaints(explained: &Explained) -> Vec<(String, String)> {
    let findings = explained.findings().iter();
    let grave = findings.filter(|finding| finding["severity"] != "information");
    grave
        .map(|finding| (text(&finding["theory"]), whole(finding)))
        .collect()
}

/// Returns the sentences of a finding and its remedies.
fn whole(finding: &Value) -> String {
    let remedies = finding["remedies"].as_array().into_iter().flatten();
    let remedies: Vec<String> = remedies.map(text).collect();
    format!("{} {}", told(finding), remedies.join(" "))
}

fn has_all(text: &str, parts: &[String]) -> bool {
    parts.iter().all(|part| text.contains(part.as_str()))
}

impl KnownScenario {
    fn simulated(&self, settings: &[&str]) -> Simulated {
        Simulated::of_text(&self.name, &self.scenario, settings)
    }

    /// Returns true if the expert's answer allows warnings and problems of the theory.
    fn allows(&self, theory: &str) -> bool {
        let answer = &self.answer;
        answer.theory == theory
            || answer.or.iter().any(|or| or == theory)
            || answer.also.iter().any(|also| also.theory == theory)
            || answer.may.iter().any(|may| may == theory)
    }

    /// Returns the warnings and problems that the expert's answer does not allow.
    fn false_claims(&self, explained: &Explained) -> Vec<String> {
        let complaints = complaints(explained).into_iter();
        let is_false = |(theory, text): &(String, String)| {
            let has = |never: &String| text.contains(never.as_str());
            !self.allows(theory) || self.answer.never.iter().any(has)
        };
        complaints
            .filter(is_false)
            .map(|(theory, text)| format!("false {theory}: {text}"))
            .collect()
    }

    /// Returns the faults of an explanation of the complete recording.
    fn faults(&self, explained: &Explained, has_names: bool) -> Vec<String> {
        let answer = &self.answer;
        let mut faults = self.false_claims(explained);
        let complaints = complaints(explained);
        if !answer.theory.is_empty() {
            let first = &explained.findings()[0];
            let is_grave = first["severity"] == "problem" || first["severity"] == *answer.severity;
            let told = whole(first);
            let is_theory = |theory: &String| first["theory"] == *theory;
            let is_right = (is_theory(&answer.theory) || answer.or.iter().any(is_theory))
                && has_all(&told, &answer.says)
                && (!has_names || has_all(&told, &answer.threads));
            if !is_right || !is_grave {
                faults.push(format!(
                    "first {} {}: {told}",
                    first["severity"], first["theory"]
                ));
            }
        }
        let of_theory = complaints
            .iter()
            .filter(|(theory, _)| *theory == answer.theory);
        let many = of_theory.count();
        if answer.alone && many != 1 {
            faults.push(format!(
                "{many} findings of {}: {complaints:#?}",
                answer.theory
            ));
        }
        for also in &answer.also {
            let mut all = complaints.iter();
            if !all.any(|(theory, told)| *theory == also.theory && has_all(told, &also.says)) {
                faults.push(format!("no {also:?} in {complaints:#?}"));
            }
        }
        faults
    }

    /// Returns the faults of an explanation of a recording from which a part is missing. The theory of the answer
    /// must have a finding or report that data is missing.
    fn faults_of_part(&self, explained: &Explained) -> Vec<String> {
        let mut faults = self.false_claims(explained);
        faults.retain(|fault| !fault.starts_with("false capture"));
        let answer = &self.answer;
        if answer.theory.is_empty() {
            return faults;
        }
        let found = explained.by_theory(&answer.theory);
        let is_missing = explained.judgement(&answer.theory) == "not_recorded";
        if found.is_empty() && !is_missing {
            faults.push(format!("{} is denied", answer.theory));
        }
        faults
    }

    /// Returns the faults of the answers to questions.
    fn faults_of_answers(&self, trace: &str) -> Vec<String> {
        let mut faults = Vec::new();
        for ask in &self.answer.ask {
            let scope = Scope {
                processes: ask.process.iter().cloned().collect(),
                during: ask.at_ms.map(|ms| ms * 1_000_000..ms * 1_000_000 + 1),
                ..Scope::default()
            };
            let explained = Explained::scoped(trace, scope);
            let first = &explained.findings()[0];
            let told = whole(first);
            if first["theory"] != *ask.theory || !has_all(&told, &ask.says) {
                faults.push(format!("asked {ask:?}: {}: {told}", first["theory"]));
            }
        }
        faults
    }
}

/// Returns the number of seeds for the long run.
fn seeds() -> Option<usize> {
    let seeds = std::env::var("LAGLAB_ANSWERS").ok()?;
    Some(seeds.parse().expect("a number of seeds"))
}

/// Explains all combinations. Panics with a list of all faults if there are any.
fn check(
    known: &[KnownScenario],
    settings: impl Fn(usize, &KnownScenario) -> Vec<Vec<String>> + Sync,
    faults: impl Fn(&KnownScenario, &[&str], &Simulated) -> Vec<String> + Sync,
) {
    let runs = known.iter().enumerate().flat_map(|(place, known)| {
        let settings = settings(place, known).into_iter();
        settings.map(move |settings| (known, settings))
    });
    let runs: Vec<(&KnownScenario, Vec<String>)> = runs.collect();
    let failed: Vec<String> = runs
        .par_iter()
        .flat_map_iter(|(known, settings)| {
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let simulated = known.simulated(&settings);
            let faults = faults(known, &settings, &simulated);
            let told = move |fault| format!("{} {settings:?}: {fault}", known.name);
            faults.into_iter().map(told).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} faults in {} runs:\n{}",
        failed.len(),
        runs.len(),
        failed.join("\n")
    );
}

#[test]
fn the_answer_of_an_expert_comes_first() {
    let known = known();
    assert!(known.len() >= 40, "{}", known.len());
    let settings = |place: usize, known: &KnownScenario| {
        let (sizes, releases) = (&known.answer.sizes, &known.answer.windows);
        let with = |seed: usize, windows: &str, size: u32| {
            let group = match size {
                1 => "machine.threads_per_core=1",
                _ => "machine.threads_per_core=2",
            };
            vec![
                format!("seed={seed}"),
                format!("machine.windows={windows}"),
                format!("machine.processors={size}"),
                group.to_owned(),
            ]
        };
        let Some(seeds) = seeds() else {
            let release = &releases[place % releases.len().min(3)];
            return vec![with(place + 1, release, sizes[place % sizes.len()])];
        };
        let run = |seed: usize, build: usize| {
            let size = sizes[(seed + build) % sizes.len()];
            with(seed, &releases[build % releases.len()], size)
        };
        // A machine without a problem has more seeds, and one release for each of them.
        if known.answer.theory.is_empty() {
            (1..=2 * seeds).map(|seed| run(seed, seed)).collect()
        } else {
            (1..=seeds)
                .flat_map(|seed| (0..releases.len()).map(move |build| run(seed, build)))
                .collect()
        }
    };
    check(&known, settings, |known, settings, simulated| {
        let explained = Explained::with_symbols(simulated, Scope::default());
        let mut faults = known.faults(&explained, !settings.contains(&"machine.windows=7"));
        faults.extend(known.faults_of_answers(&simulated.trace));
        faults
    });
}

#[test]
fn a_missing_part_of_the_recording_makes_no_other_answer() {
    let known = known();
    let removals = removals();
    let settings = |place: usize, known: &KnownScenario| {
        // A removal replaces what the scenario itself leaves out.
        let is_partial = known.scenario.contains("[record]");
        match seeds() {
            _ if is_partial => Vec::new(),
            Some(_) => removals.iter().map(|one| vec![one.clone()]).collect(),
            None => vec![vec![removals[place % removals.len()].clone()]],
        }
    };
    check(&known, settings, |known, _, simulated| {
        known.faults_of_part(&Explained::with_symbols(simulated, Scope::default()))
    });
}

/// Checks that the scenario `healthy` gives no warning and no problem on machines of all sizes. There are 20
/// runs, or 500 runs if `LAGLAB_ANSWERS` is set.
#[test]
fn healthy_machines_of_all_sizes_give_no_alarm() {
    const SIZES: [u32; 10] = [1, 2, 3, 4, 6, 8, 16, 32, 64, 256];
    let healthy = [KnownScenario {
        name: "healthy".to_owned(),
        scenario: "title = \"healthy\"\nextends = \"healthy\"\n".to_owned(),
        answer: Answer::default(),
    }];
    let runs = seeds().map_or(20, |_| 500);
    let settings = |_: usize, _: &KnownScenario| {
        let all = (0..runs).map(|run| {
            let size = SIZES[run % SIZES.len()];
            let last = size - 1;
            vec![
                format!("seed={}", 1000 + run),
                format!("machine.processors={size}"),
                format!(
                    "machine.threads_per_core={}",
                    if size.is_multiple_of(2) {
                        1 + run / 10 % 2
                    } else {
                        1
                    }
                ),
                format!(
                    "machine.windows={}",
                    WINDOWS[run / SIZES.len() % WINDOWS.len()]
                ),
                format!("disk.0.cpu={}", last.min(6)),
                format!("device.audio.cpus=[{}]", last.min(4)),
                format!("device.display.cpus=[{}]", last.min(2)),
                format!("duration={}s", if size > 32 { 3 } else { 10 }),
            ]
        });
        all.collect()
    };
    check(&healthy, settings, |known, _, simulated| {
        known.faults(&Explained::new(&simulated.trace), true)
    });
}
