//! Changes of a workload: settings, threads, drivers and devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use explain::is_called;
use rules::quantum::Win32PrioritySeparation;
use serde::Deserialize;
use serde::de::value::{Error as SpellingError, StrDeserializer};
use sim::replay::{Change as State, Workload};
use sim::scenario::PriorityClass;

use crate::recorded_workload::Note;

/// A change of the recorded machine or of its programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Change as the user wrote it.
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Affinity(String, Vec<u16>),
    Priority(String, Class),
    Separation(u32),
    /// Module, and factor of the time of its routines.
    Routines(String, f64),
    /// Factor of the service time of disk requests.
    Disk(f64),
    NoRanks,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Named(PriorityClass),
    Level(u8),
}

/// Error in the text of a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongChange {
    /// No change has this form.
    #[error("cannot use the change `{0}`: its form is unknown; known are {SPELLINGS}")]
    Form(String),
    /// The name is right, and the value is wrong.
    #[error("cannot use the change `{text}`: expected {expected}")]
    Value {
        /// Change as the user wrote it.
        text: String,
        /// Form of a right value.
        expected: &'static str,
    },
    /// A trace does not have what a prediction needs.
    #[error("cannot use the change `{text}`: {reason}")]
    Unsupported {
        /// Change as the user wrote it.
        text: String,
        /// Reason.
        reason: &'static str,
    },
}

/// Error of a change that does not fit the trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No process has this name or id.
    #[error("no process named {0} ran; laglab process lists programs")]
    Process(String),
    /// No routine of the module ran.
    #[error(
        "no DPC or interrupt of {0} was recorded; name the module that has the start address of the routine, because \
         layers inside a routine are not separated"
    )]
    Module(String),
    /// No thread waited for a disk.
    #[error(
        "no thread waited for a disk request that the replay can identify; record DISK_IO and DISK_IO_INIT"
    )]
    Disk,
    /// The processor does not exist.
    #[error("there is no processor {0}; the machine has {1}")]
    Cpu(u16, u16),
    /// Ranks follow from the use of the processors.
    #[error(
        "ranks of programs changed with their use of the processors, by a formula that is not documented; only \
         rank:off is predicted for such a trace"
    )]
    RanksMove,
    /// No process has a rank.
    #[error("no process had a rank above 0")]
    Ranks,
    /// The focus is unknown.
    #[error(
        "quanta and boosts depend on the focus, which was not recorded; record the provider Microsoft-Windows-Win32k"
    )]
    Focus,
    /// The value selects defaults of the edition, which is unknown.
    #[error(
        "some bits of the value select the default of the edition (client or server), which was not recorded; use a \
         value without such bits, such as 0x26 for the default of clients or 0x18 for that of servers"
    )]
    Edition,
    /// The recorded quanta are unknown.
    #[error(
        "no quantum ended during the recording, or no setting has the recorded quanta, so the setting before the \
         change is unknown; record a time in which threads compete for a processor"
    )]
    Quanta,
}

/// Changes that cannot be predicted, with the reason.
const UNSUPPORTED: [(&str, &str); 14] = [
    (
        "cpus",
        "Windows would assign threads and interrupts to other processors, by rules that a trace does not show",
    ),
    ("rss", "the replay does not know the packets of a DPC"),
    (
        "interrupts",
        "a trace does not show which interrupt queued a DPC, nor the processors of later interrupts",
    ),
    (
        "timer",
        "a trace shows the requested times of sleeps only to within one clock tick",
    ),
    (
        "timer-resolution",
        "a trace shows the requested times of sleeps only to within one clock tick",
    ),
    (
        "hardfaults",
        "a trace does not show which pages would have stayed in memory; disk:0x bounds the gain of all waits for disks",
    ),
    (
        "hard-faults",
        "a trace does not show which pages would have stayed in memory; disk:0x bounds the gain of all waits for disks",
    ),
    (
        "freezes",
        "without the freeze, no wait for a CPU would be shorter, and the work that the program would do is unknown",
    ),
    ("cache", "effects of caches are not recorded"),
    (
        "signing",
        "the replay does not know the far end of a connection",
    ),
    (
        "quantum",
        "quanta follow from Win32PrioritySeparation; use priority-separation=0x26",
    ),
    (
        "group-weight",
        "the formula of ranks is not documented; rank:off removes ranks",
    ),
    (
        "frequency",
        "the speed of code at another frequency is not recorded",
    ),
    ("memory", "effects of memory are not recorded"),
];

/// Spellings of changes, for error messages and help.
pub(crate) const SPELLINGS: &str = "affinity:PROCESS=0-3, priority:PROCESS=high, priority-separation=0x26, \
     remove:MODULE.sys, dpc:MODULE.sys*0.5, disk:0.5x or rank:off";

impl FromStr for Change {
    type Err = WrongChange;

    fn from_str(text: &str) -> Result<Change, WrongChange> {
        let wrong = |expected| WrongChange::Value {
            text: text.to_owned(),
            expected,
        };
        let at = text.find([':', '=']);
        let (name, rest) = at.map_or((text, ""), |at| (&text[..at], &text[at + 1..]));
        let pair = || {
            let pair = rest.rsplit_once('=');
            (pair.filter(|(name, value)| !name.is_empty() && !value.is_empty()))
                .map(|(name, value)| (name.to_owned(), value))
                .ok_or_else(|| wrong("a name and a value, such as affinity:game.exe=0-3"))
        };
        let kind = match name.to_ascii_lowercase().as_str() {
            "affinity" => {
                let (of, value) = pair()?;
                let cpus = cpus(value).ok_or_else(|| wrong("processors, such as 0-3 or 0,2,4"))?;
                Kind::Affinity(of, cpus)
            }
            "priority" => {
                let (of, value) = pair()?;
                let class = match (class_named(value), value.parse::<u8>()) {
                    (Some(class), _) => Class::Named(class),
                    (None, Ok(level @ 1..=31)) => Class::Level(level),
                    _ => {
                        return Err(wrong(
                            "a priority class (idle, below-normal, normal, above-normal, high, realtime) or a base \
                             priority from 1 to 31",
                        ));
                    }
                };
                Kind::Priority(of, class)
            }
            "priority-separation" | "win32priorityseparation" => {
                let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
                let value = match hex {
                    Some(hex) => u32::from_str_radix(hex, 16).ok(),
                    None => rest.parse().ok(),
                };
                let value = value.filter(|value| *value < 0x40);
                Kind::Separation(value.ok_or_else(|| wrong("a value from 0 to 0x3F"))?)
            }
            "remove" if !rest.is_empty() => Kind::Routines(rest.to_owned(), 0.0),
            "dpc" => {
                let pair = rest.rsplit_once('*');
                let pair =
                    pair.and_then(|(module, factor)| Some((module.to_owned(), factor_of(factor)?)));
                let (module, factor) = pair.ok_or_else(|| {
                    wrong("a module and a factor from 0 to 1, such as dpc:ndis.sys*0.5")
                })?;
                Kind::Routines(module, factor)
            }
            "disk" => {
                let factor = factor_of(rest.strip_suffix(['x', 'X']).unwrap_or(rest));
                Kind::Disk(factor.ok_or_else(|| {
                    wrong("a factor from 0 to 1 for the time of requests, such as disk:0.5x")
                })?)
            }
            "rank" | "ranks" if matches!(rest, "off" | "none") => Kind::NoRanks,
            other => {
                let text = text.to_owned();
                let known = UNSUPPORTED.iter().find(|(name, _)| *name == other);
                return Err(match known {
                    Some((_, reason)) => WrongChange::Unsupported { text, reason },
                    None => WrongChange::Form(text),
                });
            }
        };
        Ok(Change {
            text: text.to_owned(),
            kind,
        })
    }
}

/// Parses the name of a priority class.
fn class_named(text: &str) -> Option<PriorityClass> {
    let text = text.to_ascii_lowercase();
    PriorityClass::deserialize(StrDeserializer::<SpellingError>::new(&text)).ok()
}

/// Parses a list of processors, such as `0-3,8`.
fn cpus(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse::<u16>().ok()?, to.parse::<u16>().ok()?);
        if from > to || to > 255 {
            return None;
        }
        cpus.extend(from..=to);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn factor_of(text: &str) -> Option<f64> {
    let factor = text.parse::<f64>().ok()?;
    (0.0..=1.0).contains(&factor).then_some(factor)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Change {
    /// Returns a sentence that says what the prediction holds fixed.
    pub fn held_fixed(&self) -> &'static str {
        match self.kind {
            Kind::Affinity(..) | Kind::Priority(..) => {
                "Held fixed: the processor time of each piece of work. Threads do not slow each other down by sharing \
                 a core, caches or memory."
            }
            Kind::Separation(_) => {
                "Held fixed: the work of each thread, and the times at which packets and input arrive."
            }
            Kind::Routines(..) => {
                "Held fixed: the number of DPCs and the packets of each. Shorter DPCs handle fewer packets each, so \
                 the gain can be smaller than predicted."
            }
            Kind::Disk(_) => {
                "Held fixed: the requests of each thread and their order. Requests for which no thread waited are left \
                 out, and programs do not react to the faster disk. No number contains the waits for the disk; they show \
                 only in processor time and in waits for a CPU."
            }
            Kind::NoRanks => {
                "Held fixed: the work of each thread. A program with more processor time may use it for other work."
            }
        }
    }

    /// Returns true if the effect of the change is predicted as a bound: the true number is between the recorded one and
    /// the far end of the bar.
    pub fn is_bound(&self) -> bool {
        matches!(self.kind, Kind::Routines(..) | Kind::Disk(_))
    }

    /// Checks that the recording has what a prediction of the change needs.
    ///
    /// # Errors
    /// Returns an error that names what is missing.
    pub(crate) fn check(&self, notes: &[Note]) -> Result<(), ChangeError> {
        match self.kind {
            Kind::NoRanks => Ok(()),
            _ if notes.contains(&Note::RanksMove) => Err(ChangeError::RanksMove),
            Kind::Separation(_) if notes.contains(&Note::NoFocus) => Err(ChangeError::Focus),
            Kind::Separation(_) if notes.contains(&Note::QuantaUnknown) => Err(ChangeError::Quanta),
            Kind::Separation(value)
                if notes.contains(&Note::EditionUnknown)
                    && Win32PrioritySeparation(value).decode(true)
                        != Win32PrioritySeparation(value).decode(false) =>
            {
                Err(ChangeError::Edition)
            }
            _ => Ok(()),
        }
    }

    /// Changes a workload.
    ///
    /// # Errors
    /// Returns an error if the change does not fit the workload.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), ChangeError> {
        match &self.kind {
            Kind::Affinity(of, cpus) => {
                check_cpus(workload, cpus)?;
                let processes = processes_of(workload, of)?;
                for thread in &mut workload.threads {
                    if processes.contains(&thread.process) {
                        thread.affinity = Some(cpus.clone());
                    }
                }
                Ok(())
            }
            Kind::Priority(of, class) => set_priority(workload, of, *class),
            Kind::Separation(value) => {
                workload.machine.priority_separation = *value;
                Ok(())
            }
            Kind::Routines(module, factor) => each_part(workload, module, |part| {
                part.ns = (part.ns as f64 * factor) as u64
            }),
            Kind::Disk(factor) => {
                if workload.requests.is_empty() {
                    return Err(ChangeError::Disk);
                }
                for request in &mut workload.requests {
                    request.service_ns = (request.service_ns as f64 * factor) as u64;
                }
                Ok(())
            }
            Kind::NoRanks => {
                let before = workload.moments.len();
                let is_rank = |change: &State| matches!(change, State::Rank(..));
                workload.moments.retain(|moment| !is_rank(&moment.change));
                if workload.moments.len() == before {
                    Err(ChangeError::Ranks)
                } else {
                    Ok(())
                }
            }
        }
    }
}

/// Returns the indices of the processes with this name or id.
pub(crate) fn processes_of(workload: &Workload, name: &str) -> Result<BTreeSet<u32>, ChangeError> {
    let is_it = |process: &sim::replay::Process| {
        let process = tables::Process {
            id: Some(process.id),
            name: process.name.as_deref(),
        };
        is_called(process, name)
    };
    let all = (0..).zip(&workload.processes);
    let processes: BTreeSet<u32> = all
        .filter(|(_, process)| is_it(process))
        .map(|(n, _)| n)
        .collect();
    if processes.is_empty() {
        Err(ChangeError::Process(name.to_owned()))
    } else {
        Ok(processes)
    }
}

fn check_cpus(workload: &Workload, cpus: &[u16]) -> Result<(), ChangeError> {
    let count = workload.machine.cpus;
    match cpus.iter().find(|cpu| **cpu >= count) {
        Some(wrong) => Err(ChangeError::Cpu(*wrong, count)),
        None => Ok(()),
    }
}

fn set_priority(workload: &mut Workload, name: &str, class: Class) -> Result<(), ChangeError> {
    let mut bases: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for process in processes_of(workload, name)? {
        bases.insert(process, Vec::new());
        if let Class::Named(class) = class {
            workload.processes[process as usize].idle_class = class == PriorityClass::Idle;
        }
    }
    for thread in &workload.threads {
        if let Some(bases) = bases.get_mut(&thread.process) {
            bases.push(thread.base_priority);
        }
    }
    let classes = bases
        .into_iter()
        .map(|(process, priorities)| (process, class_of(&priorities)));
    let classes: BTreeMap<u32, PriorityClass> = classes.collect();
    for thread in &mut workload.threads {
        let Some(old) = classes.get(&thread.process) else {
            continue;
        };
        let new_of = |base: u8| match class {
            Class::Level(level) => level,
            Class::Named(class) => old.rebased(base, class),
        };
        thread.base_priority = new_of(thread.base_priority);
        for step in &mut thread.steps {
            if let sim::replay::Step::Base(base) = step {
                *base = new_of(*base);
            }
        }
    }
    Ok(())
}

/// Returns the priority class of a process whose threads have these base priorities. It is inferred: most threads are
/// nearest to the base of the class. The priorities 1 and 15 tell little, because threads of several classes can have
/// them. Without other threads, the class is normal.
fn class_of(bases: &[u8]) -> PriorityClass {
    let telling = bases.iter().filter(|base| ![1, 15].contains(*base));
    let nearest = |base: &u8| {
        let mut classes = PriorityClass::ALL.into_iter();
        let first = classes.next()?;
        Some(classes.fold(first, |best, class| {
            let distance = |candidate: PriorityClass| candidate.base().abs_diff(*base);
            if distance(class) < distance(best) {
                class
            } else {
                best
            }
        }))
    };
    let nearest: Vec<PriorityClass> = telling.filter_map(nearest).collect();
    let votes = |class: PriorityClass| {
        nearest
            .iter()
            .filter(|candidate| **candidate == class)
            .count()
    };
    let normal = PriorityClass::Normal;
    PriorityClass::ALL.into_iter().fold(normal, |best, class| {
        if votes(class) > votes(best) {
            class
        } else {
            best
        }
    })
}

fn each_part(
    workload: &mut Workload,
    module: &str,
    mut change: impl FnMut(&mut sim::replay::Part),
) -> Result<(), ChangeError> {
    let mut is_changed = false;
    let parts = workload
        .interrupts
        .iter_mut()
        .flat_map(|interrupt| &mut interrupt.parts);
    for part in parts {
        if part
            .module
            .as_deref()
            .is_some_and(|name| name.eq_ignore_ascii_case(module))
        {
            change(part);
            is_changed = true;
        }
    }
    if is_changed {
        Ok(())
    } else {
        Err(ChangeError::Module(module.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed() {
        for text in [
            "affinity:game.exe=0-3,5",
            "priority:game.exe=high",
            "priority:4711=15",
            "Win32PrioritySeparation=0x26",
            "priority-separation=2",
            "remove:IDSvia64.sys",
            "dpc:ndis.sys*0.5",
            "disk:0.5x",
            "rank:off",
        ] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("", "known are"),
            ("cpus:8", "other processors"),
            ("affinity:game.exe", "a name and a value"),
            ("affinity:game.exe=3-1", "expected processors"),
            ("priority:game.exe=urgent", "priority class"),
            ("priority-separation=0x40", "0 to 0x3F"),
            ("disk:fast", "factor"),
            ("disk:-1x", "factor"),
            ("timer:0.5ms", "clock tick"),
            ("interrupts:ndis.sys=4-7", "which interrupt"),
            ("rss:4-7", "packets of a DPC"),
            ("signing=off", "far end"),
        ] {
            let error = text.parse::<Change>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Checks that the priority class of each process is inferred from its own threads, if several have the name.
    #[test]
    fn processes_of_one_name_have_their_own_classes() {
        let process = |id| sim::replay::Process {
            id,
            name: Some("game.exe".to_owned()),
            ..sim::replay::Process::default()
        };
        let thread = |process, base_priority| sim::replay::Thread {
            process,
            base_priority,
            ..sim::replay::Thread::default()
        };
        let mut workload = Workload {
            processes: vec![process(100), process(200)],
            threads: vec![
                thread(0, 8),
                thread(0, 15),
                thread(0, 1),
                thread(1, 13),
                thread(1, 13),
                thread(1, 15),
            ],
            ..Workload::default()
        };
        let change: Change = "priority:game.exe=Above-Normal".parse().unwrap();
        change.apply(&mut workload).unwrap();
        let bases = workload.threads.iter().map(|thread| thread.base_priority);
        // "Time critical" and "idle" stay 15 and 1. In the class "high", 15 is "highest".
        assert_eq!(bases.collect::<Vec<_>>(), [10, 15, 1, 10, 10, 12]);
    }

    /// Checks values whose bits select the default of the edition.
    #[test]
    fn defaults_of_an_unknown_edition_are_refused() {
        for (value, expected) in [
            ("2", Err(ChangeError::Edition)),
            ("0x20", Err(ChangeError::Edition)),
            ("0x26", Ok(())),
            ("0x18", Ok(())),
        ] {
            let change: Change = format!("priority-separation={value}").parse().unwrap();
            assert_eq!(change.check(&[Note::EditionUnknown]), expected, "{value}");
            assert_eq!(change.check(&[]), Ok(()));
        }
    }
}
