//! Theory: threads lost their CPUs because their quantum ended.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use rules::quantum::{self, Win32PrioritySeparation};
use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{CpuRunsView, StoreError, Table};

use crate::thread_state::{QUANTUM_END, READY};
use crate::thresholds::{CLOCK_PERIOD_NS, QUANTUM_TURNS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, duration,
};

/// Theory about the measured lengths of quanta, compared with the values of the registry setting
/// Win32PrioritySeparation.
pub(crate) struct Quantum;

static ABOUT: About = About {
    id: "quantum",
    name: "quanta",
    question: "Did threads lose their CPUs at the end of their quantum?",
    tables: &[Table::CpuRuns, Table::Focus, Table::Sessions],
    sources: &[
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: quantum",
            url: None,
        },
        Source {
            title: "valleyofdoom: PC-Tuning, research on Win32PrioritySeparation",
            url: Some("https://github.com/valleyofdoom/PC-Tuning"),
        },
    ],
};

/// Length of a unit of a quantum in microseconds: a third of a clock tick.
const UNIT_US: f64 = CLOCK_PERIOD_NS as f64 / 1_000.0 / 3.0;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

/// Returns a text with the values of Win32PrioritySeparation that have the same effect as `setting`, and
/// their meaning.
fn stands_for(setting: Win32PrioritySeparation) -> String {
    let quantum = setting.decode(false);
    let units = |quantum: quantum::Quantum| (quantum.foreground_units, quantum.background_units);
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

/// Returns a text with three values of Win32PrioritySeparation. They have fixed quanta and differ only in the
/// boost.
fn alike(value: u32) -> String {
    format!("{value:#X}, {:#X}, {:#X}", value + 1, value + 2)
}

#[derive(Clone, Copy, Default)]
struct Turns {
    count: u64,
    ran_ns: i64,
    longest_ns: i64,
}

/// Key of a group of turns. A turn is a run that the end of the quantum ended. The key has the process row, the
/// process id, the focus, and the units of the quantum that were left. The focus is true if the process had the
/// focus, and `None` if this is not known.
type Key = (Option<u32>, Option<u32>, Option<bool>, i64);

impl Theory for Quantum {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "the trace has no context switches".to_owned(),
            ));
        }
        let machine = case.machine()?;
        let Some(mhz) = machine.cpu_mhz else {
            let what = "the frequency of the CPUs is not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        };
        let focus = case.focus()?.into_iter();
        let focus: Vec<(u32, Range<i64>)> = focus
            .filter_map(|focus| Some((focus.process_row?, focus.during)))
            .collect();
        let turns = turns(case, mhz, &focus)?;
        if turns.is_empty() {
            let because = "no quantum ended a thread's turn";
            return Ok(Outcome::Against(because.to_owned(), Vec::new()));
        }
        let build = machine.os_build;
        Ok(Outcome::For(vec![finding(
            case, mhz, build, &focus, &turns,
        )]))
    }
}

/// Units of the quanta of the program with the focus and of others, if turns show them.
#[derive(Clone, Copy)]
struct Quanta {
    foreground: Option<i64>,
    background: Option<i64>,
}

impl Quanta {
    /// Returns the quanta of turns. If the focus is not recorded and quanta have several lengths, the longest length is
    /// assumed to belong to the program with the focus.
    fn measured(turns: &[(Key, Turns)], knows_focus: bool) -> Quanta {
        if knows_focus {
            return Quanta {
                foreground: usual(turns, Some(true)),
                background: usual(turns, Some(false)),
            };
        }
        let lengths = lengths(turns);
        let longest = lengths.last().filter(|_| lengths.len() > 1);
        Quanta {
            foreground: longest.copied(),
            background: lengths.first().copied(),
        }
    }

    /// Returns a clause that says to which values of Win32PrioritySeparation the quanta correspond.
    fn settings(self) -> String {
        let is_like = |quantum: Option<i64>, units: u8| {
            quantum.is_none_or(|quantum| quantum == i64::from(units))
        };
        let fits: Vec<String> = Win32PrioritySeparation::TABLE
            .into_iter()
            .filter(|setting| {
                let classic = setting.decode(false);
                is_like(self.foreground, classic.foreground_units)
                    && is_like(self.background, classic.background_units)
            })
            .map(stands_for)
            .collect();
        match fits.as_slice() {
            [] => "no value of Win32PrioritySeparation gives this quantum in the classic table"
                .to_owned(),
            [value] => format!("this corresponds to Win32PrioritySeparation = {value}"),
            _ => format!(
                "several values of Win32PrioritySeparation fit, because no turn shows {}: {}",
                match self {
                    Quanta {
                        foreground: Some(_),
                        background: None,
                    } => "the quantum of programs without the focus",
                    _ => "the quantum of a program with the focus",
                },
                fits.join("; or ")
            ),
        }
    }
}

impl fmt::Display for Quanta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = |units: i64| {
            let ns = (units as f64 * UNIT_US * 1_000.0) as i64;
            format!("{units} units ({})", duration(ns))
        };
        match (self.foreground, self.background) {
            (Some(with), Some(without)) => write!(
                f,
                "{} for the program with the focus, {} for others",
                units(with),
                units(without)
            ),
            (Some(with), None) => write!(f, "{} for the program with the focus", units(with)),
            (None, Some(without)) => f.write_str(&units(without)),
            (None, None) => Ok(()),
        }
    }
}

fn finding(
    case: &Case<'_>,
    mhz: u32,
    build: Option<u32>,
    focus: &[(u32, Range<i64>)],
    turns: &[(Key, Turns)],
) -> Finding {
    let count: u64 = turns.iter().map(|(_, turns)| turns.count).sum();
    let quanta = Quanta::measured(turns, !focus.is_empty());
    let settings = quanta.settings();
    let count = counted(count, "turn was", "turns were");
    let is_early = end_early(turns);
    let sentence = if is_early {
        format!(
            "{count} ended in favour of a thread of the same priority, mostly before the quantum was \
             used up. The quantum is at least {quanta}: {settings}."
        )
    } else {
        format!("{count} ended by the quantum, most often after {quanta}: {settings}.")
    };
    let in_focus = had_focus(focus);
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence);
    if is_early {
        finding = finding.with(left_at_most(case, mhz, &in_focus, turns));
    }
    finding = finding.with(by_process(case, mhz, &in_focus, turns)).doubt(
        "A quantum is counted in CPU cycles and ends at a clock interrupt, so turns last up to a \
         tick longer",
    );
    if focus.is_empty() {
        finding = finding.doubt(if quanta.foreground.is_some() {
            "The trace does not record the focus: if there are two lengths, the longer one is \
             assumed to be the quantum of the program with the focus"
        } else {
            "The trace does not record the focus: some of these turns may be of the program with the \
             focus, whose quantum can be longer"
        });
    }
    match build {
        Some(build) if build >= quantum::TABLE_DOUBTED_FROM => finding.doubt(format!(
            "On build {build}, quanta do not follow the classic table: trust the measured values, \
             not the table"
        )),
        _ => finding,
    }
}

/// Returns the SQL expression that is true for the turns of the program with the focus, and NULL if the focus is not
/// recorded.
fn had_focus(focus: &[(u32, Range<i64>)]) -> String {
    if focus.is_empty() {
        return "CAST(NULL AS BOOLEAN)".to_owned();
    }
    let conditions = focus.iter().map(|(row, Range { start, end })| {
        format!("process_row = {row} AND end_ns > {start} AND end_ns <= {end}")
    });
    let conditions: Vec<String> = conditions.collect();
    format!("coalesce({}, false)", conditions.join(" OR "))
}

/// Returns evidence with the turns of each process, by length of the quantum.
fn by_process(case: &Case<'_>, mhz: u32, in_focus: &str, turns: &[(Key, Turns)]) -> Evidence {
    let title = "Turns ended by the quantum, by process and length of the quantum";
    let (sum, longest) = (Expression::Sum("cpu_ns"), Expression::Max("cpu_ns"));
    let evidence = turns_by(title, in_focus, &["units"])
        .column("units", "quantum", Unit::None, units_left(mhz))
        .column("turns", "turns", Unit::Count, Expression::Count)
        .column("cpu_ns", "CPU time", Unit::Duration, sum)
        .column("longest_ns", "longest turn", Unit::Duration, longest);
    let shown = turns.iter().take(SHOWN);
    shown.fold(evidence, |evidence, ((row, _, has_focus, units), turns)| {
        evidence.row([
            case.process_label(*row).map(Into::into),
            has_focus.map(Into::into),
            Some((*units).into()),
            Some(turns.count.into()),
            Some(turns.ran_ns.into()),
            Some(turns.longest_ns.into()),
        ])
    })
}

/// Returns evidence for each process: the largest part of the quantum that was left at the end of a turn.
fn left_at_most(case: &Case<'_>, mhz: u32, in_focus: &str, turns: &[(Key, Turns)]) -> Evidence {
    let title = "Turns ended for another thread, and the greatest part of the quantum that was \
        left";
    let most = match units_left(mhz) {
        Expression::Formula(units) => Expression::Formula(format!("max({units})")),
        other => other,
    };
    let mut evidence = turns_by(title, in_focus, &[])
        .column("units", "left at most", Unit::None, most)
        .column("turns", "turns", Unit::Count, Expression::Count);
    let mut sums: FxHashMap<_, (i64, u64)> = FxHashMap::default();
    for ((row, id, focus, units), turns) in turns {
        let (most, count) = sums.entry((*row, *id, *focus)).or_default();
        *most = (*most).max(*units);
        *count += turns.count;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(key, (_, count))| (std::cmp::Reverse(*count), *key));
    for ((row, _, has_focus), (units, count)) in sums.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(row).map(Into::into),
            has_focus.map(Into::into),
            Some(units.into()),
            Some(count.into()),
        ]);
    }
    evidence
}

/// Returns evidence about the turns that ended for another thread, grouped by process, focus and
/// the columns in `more`.
fn turns_by(title: &str, in_focus: &str, more: &[&'static str]) -> Evidence {
    let groups = [&["process_row", "process_id", "has_focus"], more].concat();
    let mut order = vec![
        Order::descending("turns"),
        Order::ascending("process_row").unknown_first(),
        Order::ascending("process_id").unknown_first(),
        Order::ascending("has_focus").unknown_first(),
    ];
    order.extend(more.iter().map(|name| Order::ascending(name)));
    let selection = Selection::new(Table::CpuRuns)
        .filters([
            Condition::is("wait_reason_out", QUANTUM_END),
            Condition::is("state_out", READY),
            Condition::AtLeast("remaining_quantum_out", 1),
            Condition::is_not("thread_id", 0),
        ])
        .group_by(&groups)
        .order(&order)
        .limit(SHOWN);
    let focus = Expression::Formula(in_focus.to_owned());
    let process = Expression::Process("process_row");
    Evidence::from_selection(title, selection)
        .column("process", "process", Unit::None, process)
        .column("has_focus", "has the focus", Unit::None, focus)
}

/// Returns an SQL expression for the units of the quantum that were left.
fn units_left(mhz: u32) -> Expression {
    Expression::Formula(format!(
        "CAST(round(remaining_quantum_out * 1024 / ({mhz} * {UNIT_US:?})) AS BIGINT)"
    ))
}

/// Returns the length of a quantum, computed from the units that were left at the end of turns. If at least
/// half of the turns have the same value, this value is the length, because Windows refills an expired
/// quantum at once. If turns end earlier, the largest value is the length.
fn length<'t>(turns: impl Iterator<Item = (i64, &'t Turns)>) -> Option<i64> {
    let mut counts: FxHashMap<i64, u64> = FxHashMap::default();
    for (units, turns) in turns {
        *counts.entry(units).or_default() += turns.count;
    }
    let all: u64 = counts.values().sum();
    let (most, count) = counts
        .iter()
        .max_by_key(|(units, count)| (**count, **units))?;
    if count * 2 >= all {
        Some(*most)
    } else {
        counts.keys().max().copied()
    }
}

/// Returns the usual length of the quantum, in units, of programs with the focus (`Some(true)`), programs without the
/// focus (`Some(false)`) or programs whose focus is unknown (`None`).
fn usual(turns: &[(Key, Turns)], has_focus: Option<bool>) -> Option<i64> {
    let own_turns = turns
        .iter()
        .filter(|((_, _, focus, _), _)| *focus == has_focus);
    length(own_turns.map(|((.., units), turns)| (*units, turns)))
}

/// Returns the lengths of the quanta of all processes, each length once.
fn lengths(turns: &[(Key, Turns)]) -> BTreeSet<i64> {
    let mut turns_by_process: FxHashMap<_, Vec<(i64, &Turns)>> = FxHashMap::default();
    for ((row, id, _, units), turns) in turns {
        turns_by_process
            .entry((*row, *id))
            .or_default()
            .push((*units, turns));
    }
    let lengths = turns_by_process.into_values();
    lengths
        .filter_map(|turns| length(turns.into_iter()))
        .collect()
}

/// Returns true if most turns of a program ended before its quantum was used up.
fn end_early(turns: &[(Key, Turns)]) -> bool {
    let mut counts: FxHashMap<_, (u64, u64)> = FxHashMap::default();
    for ((row, id, focus, _), turns) in turns {
        let (all, most) = counts.entry((*row, *id, *focus)).or_default();
        *all += turns.count;
        *most = (*most).max(turns.count);
    }
    // A program with only a few turns does not count.
    counts
        .values()
        .any(|(all, most)| *all >= QUANTUM_TURNS && most * 2 < *all)
}

/// Reads the turns that the quantum ended. The most frequent turns come first.
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
            // The rest of a quantum is logged in units of 1,024 CPU cycles. If the quantum expired,
            // this is the whole quantum, because Windows refills it at once.
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
