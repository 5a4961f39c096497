//! How long are turns, and whose are longer?

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, StoreError, Table};
use tune::decode::quantum::{self, Win32PrioritySeparation};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted,
    duration,
};

/// Quanta as they were used, against what Win32PrioritySeparation stands for.
pub(crate) struct Quantum;

static ABOUT: About = About {
    id: "quantum",
    question: "Did quanta end threads' turns: how long are they, and longer with the focus?",
    tables: &[Table::CpuRuns, Table::Focus, Table::Sessions],
    sources: &[
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: quantum",
            url: "",
        },
        Source {
            title: "valleyofdoom: PC-Tuning, research on Win32PrioritySeparation",
            url: "https://github.com/valleyofdoom/PC-Tuning",
        },
    ],
};

/// A third of the clock tick of 15.625 ms, in microseconds: what a unit stands for.
const UNIT_US: f64 = 15_625.0 / 3.0;
/// The reason to leave the CPU that is the end of a quantum (`WrQuantumEnd`).
const QUANTUM_END: u8 = 30;
/// The state of a thread that goes on as soon as its turn comes.
const READY: u8 = 1;
/// Rows shown.
const SHOWN: usize = 12;
/// So many turns of a program make a rule.
const MANY: u64 = 20;

/// Values of Win32PrioritySeparation that are one, with what they stand for.
fn stands_for(setting: Win32PrioritySeparation) -> String {
    let quantum = setting.decode(false);
    let units = |of: quantum::Quantum| (of.foreground_units, of.background_units);
    let usual = |server| units(Win32PrioritySeparation::default().decode(server));
    let value = setting.0;
    let (values, default) = match units(quantum) {
        this if this == usual(false) => (format!("0x2, {value:#X}"), "; the default of clients"),
        this if this == usual(true) => (alike(value), "; the default of servers"),
        _ if quantum.variable => (format!("{value:#X}"), ""),
        _ => (alike(value), ""),
    };
    let interval = if quantum.long { "long" } else { "short" };
    let length = match (quantum.variable, quantum.ratio()) {
        (false, _) => "fixed",
        (true, 1) => "variable, no difference",
        (true, 2) => "variable, twice as long with the focus",
        (true, _) => "variable, three times as long with the focus",
    };
    format!("{values} ({interval}, {length}{default})")
}

/// The values with fixed quanta that differ from this one in the boost alone.
fn alike(value: u32) -> String {
    format!("{value:#X}, {:#X}, {:#X}", value + 1, value + 2)
}

#[derive(Clone, Copy, Default)]
struct Turns {
    count: u64,
    ran_ns: i64,
    longest_ns: i64,
}

/// Row and id of the process, whether it had the focus if that is known, units of its quantum.
type Key = (Option<u32>, Option<u32>, Option<bool>, i64);

impl Theory for Quantum {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "there are no context switches".to_owned(),
            ));
        }
        let machine = case.machine()?;
        let Some(mhz) = machine.cpu_mhz else {
            let what = "the trace does not say at which frequency the processors run";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        };
        let focus = case.focus()?.into_iter();
        let focus: Vec<(u32, Range<i64>)> = focus
            .filter_map(|focus| Some((focus.process_row?, focus.during)))
            .collect();
        let turns = turns(case, mhz, &focus)?;
        if turns.is_empty() {
            let because = "no thread's turn was ended by its quantum: nobody had to wait for one";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let build = machine.os_build;
        Ok(Outcome::For(vec![found(case, mhz, build, &focus, turns)]))
    }
}

fn found(
    case: &Case<'_>,
    mhz: u32,
    build: Option<u32>,
    focus: &[(u32, Range<i64>)],
    turns: Vec<(Key, Turns)>,
) -> Finding {
    let all: u64 = turns.iter().map(|(_, turns)| turns.count).sum();
    let (with, without) = match focus.is_empty() {
        false => (usual(&turns, Some(true)), usual(&turns, Some(false))),
        // Of two lengths the longer can only be the program's with the focus.
        true => {
            let lengths = lengths(&turns);
            let longest = lengths.last().filter(|_| lengths.len() > 1);
            (longest.copied(), lengths.first().copied())
        }
    };
    let units = |units: i64| {
        let ns = (units as f64 * UNIT_US * 1_000.0) as i64;
        format!("{units} units ({})", duration(ns))
    };
    let told = match (with, without) {
        (Some(with), Some(without)) => format!(
            "{} of the program with the focus, {} of others",
            units(with),
            units(without)
        ),
        (Some(with), None) => format!("{} of the program with the focus", units(with)),
        (None, without) => without.map_or_else(String::new, units),
    };
    let fits: Vec<String> = Win32PrioritySeparation::TABLE
        .into_iter()
        .filter(|setting| {
            let classic = setting.decode(false);
            with.is_none_or(|with| with == i64::from(classic.foreground_units))
                && without.is_none_or(|without| without == i64::from(classic.background_units))
        })
        .map(stands_for)
        .collect();
    let stands_for = match fits.is_empty() {
        true => {
            "no value of Win32PrioritySeparation stands for that in the classic table".to_owned()
        }
        false if fits.len() == 1 => {
            format!("what Win32PrioritySeparation at {} stands for", fits[0])
        }
        false => format!(
            "what several values of Win32PrioritySeparation stand for, and which of them was set is not \
             known, for no turn tells {}: {}",
            match (with, without) {
                (Some(_), None) => "the quantum of programs without the focus",
                _ => "the quantum of a program with the focus",
            },
            fits.join("; or ")
        ),
    };
    let is_early = end_early(&turns);
    let sentence = match is_early {
        false => format!(
            "{} ended by the quantum, most at {told}: {stands_for}.",
            counted(all, "turn was", "turns were")
        ),
        true => format!(
            "{} ended for a thread of the same priority, most before the quantum was used up; it is \
             at least {told}: {stands_for}.",
            counted(all, "turn was", "turns were")
        ),
    };
    let in_focus = match focus.is_empty() {
        true => "CAST(NULL AS BOOLEAN)".to_owned(),
        false => {
            let had = focus.iter().map(|(row, range)| {
                let Range { start, end } = range;
                format!("process_row = {row} AND end_ns > {start} AND end_ns <= {end}")
            });
            format!("coalesce({}, false)", had.collect::<Vec<_>>().join(" OR "))
        }
    };
    let query = format!(
        "SELECT process(process_row) AS process, {in_focus} AS has_focus, \
         CAST(round(remaining_quantum_out * 1024 / ({mhz} * {UNIT_US:?})) AS BIGINT) AS units, \
         count(*) AS turns, sum(cpu_ns) AS cpu_ns, max(cpu_ns) AS longest_ns FROM cpu_runs WHERE \
         wait_reason_out = {QUANTUM_END} AND state_out = {READY} AND remaining_quantum_out > 0 AND \
         thread_id <> 0 GROUP BY process_row, process_id, has_focus, units ORDER BY turns DESC, \
         process_row NULLS FIRST, process_id NULLS FIRST, has_focus NULLS FIRST, units LIMIT {SHOWN}"
    );
    let mut evidence = Evidence::new(
        "Turns ended by the quantum, by process and length of the quantum",
        query,
        &[
            Column::new("process", "process", Unit::None),
            Column::new("has_focus", "has the focus", Unit::None),
            Column::new("units", "quantum", Unit::None),
            Column::new("turns", "turns", Unit::Count),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
            Column::new("longest_ns", "longest turn", Unit::Duration),
        ],
    );
    for ((row, _, has_focus, units), turns) in turns.iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(*row).map(Into::into),
            has_focus.map(Into::into),
            Some((*units).into()),
            Some(turns.count.into()),
            Some(turns.ran_ns.into()),
            Some(turns.longest_ns.into()),
        ]);
    }
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence);
    if is_early {
        finding = finding.with(left_at_most(case, mhz, &in_focus, &turns));
    }
    let finding = finding.with(evidence).doubt(
        "A quantum is counted in CPU cycles and ends at a clock interrupt, so turns take up to a \
             tick more",
    );
    let finding = match (focus.is_empty(), with) {
        (true, Some(_)) => finding.doubt(
            "The trace does not say who had the focus: of two lengths the longer was taken for the \
             focused program's",
        ),
        (true, None) => finding.doubt(
            "The trace does not say who had the focus: whether one of these programs had it is not \
             known",
        ),
        (false, _) => finding,
    };
    match build {
        Some(build) if build >= quantum::TABLE_DOUBTED_FROM => finding.doubt(format!(
            "On build {build} quanta were seen not to follow the classic table: trust what was \
             measured, not the table"
        )),
        _ => finding,
    }
}

/// What was left of quanta at most, by process.
fn left_at_most(case: &Case<'_>, mhz: u32, in_focus: &str, turns: &[(Key, Turns)]) -> Evidence {
    let query = format!(
        "SELECT process(process_row) AS process, {in_focus} AS has_focus, \
         max(CAST(round(remaining_quantum_out * 1024 / ({mhz} * {UNIT_US:?})) AS BIGINT)) AS units, \
         count(*) AS turns FROM cpu_runs WHERE wait_reason_out = {QUANTUM_END} AND state_out = \
         {READY} AND remaining_quantum_out > 0 AND thread_id <> 0 GROUP BY process_row, process_id, \
         has_focus ORDER BY turns DESC, process_row NULLS FIRST, process_id NULLS FIRST, has_focus \
         NULLS FIRST LIMIT {SHOWN}"
    );
    let title = "Turns ended for another thread, and what was left of the quantum at most";
    let mut evidence = Evidence::new(
        title,
        query,
        &[
            Column::new("process", "process", Unit::None),
            Column::new("has_focus", "has the focus", Unit::None),
            Column::new("units", "left at most", Unit::None),
            Column::new("turns", "turns", Unit::Count),
        ],
    );
    let mut of: FxHashMap<_, (i64, u64)> = FxHashMap::default();
    for ((row, id, focus, units), turns) in turns {
        let (most, count) = of.entry((*row, *id, *focus)).or_default();
        *most = (*most).max(*units);
        *count += turns.count;
    }
    let mut of: Vec<_> = of.into_iter().collect();
    of.sort_by_key(|(key, (_, count))| (std::cmp::Reverse(*count), *key));
    for ((row, _, has_focus), (units, count)) in of.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(row).map(Into::into),
            has_focus.map(Into::into),
            Some(units.into()),
            Some(count.into()),
        ]);
    }
    evidence
}

/// How long a quantum is of which turns had so many units left, how often each: what most had, for a
/// quantum that has ended is given anew at once. Where turns end before, it is what they had left at
/// most.
fn length<'t>(turns: impl Iterator<Item = (i64, &'t Turns)>) -> Option<i64> {
    let mut of: FxHashMap<i64, u64> = FxHashMap::default();
    for (units, turns) in turns {
        *of.entry(units).or_default() += turns.count;
    }
    let all: u64 = of.values().sum();
    let (most, count) = of.iter().max_by_key(|(units, count)| (**count, **units))?;
    match count * 2 >= all {
        true => Some(*most),
        false => of.keys().max().copied(),
    }
}

/// The quantum of programs with, or of those without the focus.
fn usual(turns: &[(Key, Turns)], has_focus: Option<bool>) -> Option<i64> {
    let of = turns
        .iter()
        .filter(|((_, _, focus, _), _)| *focus == has_focus);
    length(of.map(|((.., units), turns)| (*units, turns)))
}

/// The quanta of processes, each length once.
fn lengths(turns: &[(Key, Turns)]) -> BTreeSet<i64> {
    let mut of: FxHashMap<_, Vec<(i64, &Turns)>> = FxHashMap::default();
    for ((row, id, _, units), turns) in turns {
        of.entry((*row, *id)).or_default().push((*units, turns));
    }
    let lengths = of.into_values();
    lengths
        .filter_map(|turns| length(turns.into_iter()))
        .collect()
}

/// Whether most turns of some program ended before the quantum did.
fn end_early(turns: &[(Key, Turns)]) -> bool {
    let mut of: FxHashMap<_, (u64, u64)> = FxHashMap::default();
    for ((row, id, focus, _), turns) in turns {
        let (all, most) = of.entry((*row, *id, *focus)).or_default();
        *all += turns.count;
        *most = (*most).max(turns.count);
    }
    // A few turns are no rule.
    of.values()
        .any(|(all, most)| *all >= MANY && most * 2 < *all)
}

/// Turns that the quantum ended, the most frequent first.
fn turns(
    case: &Case<'_>,
    mhz: u32,
    focus: &[(u32, Range<i64>)],
) -> Result<Vec<(Key, Turns)>, StoreError> {
    const COLUMNS: [&str; 8] = [
        "end_ns",
        "cpu_ns",
        "thread_id",
        "process_id",
        "process_row",
        "state_out",
        "wait_reason_out",
        "remaining_quantum_out",
    ];
    let mut turns: FxHashMap<Key, Turns> = FxHashMap::default();
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, i64::MIN..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            if view.wait_reason_out.get(row) != Some(QUANTUM_END)
                || view.state_out.get(row) != Some(READY)
                || view.thread_id[row] == 0
            {
                continue;
            }
            let Some(left) = view.remaining_quantum_out.get(row).filter(|left| *left > 0) else {
                continue;
            };
            // Logged in units of 1,024 CPU cycles. A quantum that has ended is given anew at once.
            let units = (f64::from(left) * 1024.0 / (f64::from(mhz) * UNIT_US)).round() as i64;
            let process = view.process_row.get(row);
            let end = view.end_ns[row];
            let has_focus = (!focus.is_empty()).then(|| {
                let mut had = focus.iter().filter(|(row, _)| Some(*row) == process);
                had.any(|(_, range)| range.start < end && end <= range.end)
            });
            let key = (process, view.process_id.get(row), has_focus, units);
            let turns = turns.entry(key).or_default();
            turns.count += 1;
            turns.ran_ns = turns.ran_ns.saturating_add(view.cpu_ns[row]);
            turns.longest_ns = turns.longest_ns.max(view.cpu_ns[row]);
        }
    }
    let mut turns: Vec<(Key, Turns)> = turns.into_iter().collect();
    turns.sort_by_key(|(key, turns)| (std::cmp::Reverse(turns.count), *key));
    Ok(turns)
}
