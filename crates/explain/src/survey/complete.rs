//! Time during which all CPUs are recorded.

use std::ops::Range;

use selection::{Condition, Order, Selection};
use tables::{CpusView, StoreError, Table};

use crate::{Evidence, Finding, Reader, Unit, listed, moment};

/// Time during which all CPUs are recorded. At other times, a thread may have run unseen on a CPU
/// whose recording had not begun or had already ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    range: Range<i64>,
    /// CPUs that are recorded for only a part of the trace. Each entry has the number of the CPU and the
    /// start and end of its recording.
    cpus: Vec<(u16, Option<i64>, Option<i64>)>,
}

impl Default for Complete {
    /// Returns the value for a trace in which all CPUs are recorded at all times.
    fn default() -> Complete {
        Complete {
            range: i64::MIN..i64::MAX,
            cpus: Vec::new(),
        }
    }
}

impl Complete {
    /// Table with the recorded time of each CPU.
    pub(super) const TABLE: Table = Table::Cpus;

    pub(super) fn read(reader: &Reader<'_>) -> Result<Complete, StoreError> {
        let mut complete = Complete::default();
        let table = reader.table(Self::TABLE)?;
        let columns = [
            "first_seen_ns",
            "cpu",
            "recorded_from_ns",
            "recorded_until_ns",
        ];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = CpusView::new(&batch)?;
            for row in 0..view.len() {
                let from = view.recorded_from_ns.get(row);
                let until = view.recorded_until_ns.get(row);
                if from.is_none() && until.is_none() {
                    continue;
                }
                complete.cpus.push((view.cpu[row], from, until));
                let range = &mut complete.range;
                range.start = range.start.max(from.unwrap_or(i64::MIN));
                range.end = range.end.min(until.unwrap_or(i64::MAX));
            }
        }
        Ok(complete)
    }

    /// Returns true if all CPUs are recorded from one moment to another.
    pub(crate) fn holds(&self, from: i64, to: i64) -> bool {
        self.range.start <= from && to <= self.range.end
    }

    /// Returns an SQL condition that is true if all CPUs are recorded from `from` to `to`. Both arguments are
    /// columns or expressions. The condition starts with `AND`, because it follows other conditions. It is empty if all
    /// CPUs are recorded at all times.
    pub(super) fn condition(&self, from: &str, to: &str) -> String {
        let mut condition = String::new();
        if self.range.start != i64::MIN {
            condition += &format!(" AND {from} >= {}", self.range.start);
        }
        if self.range.end != i64::MAX {
            condition += &format!(" AND {to} <= {}", self.range.end);
        }
        condition
    }

    /// Returns the names of the CPUs that have no recorded event although other CPUs switched threads.
    /// Returns `None` if there are no such CPUs. Threads may have run unrecorded on these CPUs.
    pub(crate) fn missing(&self) -> Option<String> {
        let missing = self.cpus.iter().filter(|(_, _, until)| is_nothing(*until));
        let missing: Vec<u16> = missing.map(|(cpu, ..)| *cpu).collect();
        (!missing.is_empty()).then(|| cpu_names(&missing))
    }

    /// Returns true if later buffers of the session overwrote earlier buffers.
    pub(crate) fn is_of_ring(&self) -> bool {
        self.range.start != i64::MIN
    }

    /// Returns the start of the time during which all CPUs are recorded, in a trace that starts at
    /// `start`.
    pub(crate) fn from(&self, start: i64) -> i64 {
        self.range.start.max(start)
    }

    /// Returns the end of the time during which all CPUs are recorded, in a trace that ends at
    /// `end`.
    pub(crate) fn until(&self, end: i64) -> i64 {
        self.range.end.min(end)
    }

    /// Adds a doubt about waits at times when some CPUs are not recorded.
    pub(crate) fn doubted(&self, finding: Finding) -> Finding {
        const SHOWN: usize = 64;
        if self.cpus.is_empty() {
            return finding;
        }
        let finding = match self.missing() {
            None => finding,
            Some(missing) => finding.doubt(format!(
                "No events of {missing} are recorded, so threads may have run there unseen. No \
                 wait for a CPU is certain. Waits are reported only if you ask about a thread or a \
                 process"
            )),
        };
        let Range { start, end } = self.range;
        let when = match (!self.is_of_ring(), end == i64::MAX) {
            (true, _) => format!("until {}", moment(end)),
            (false, true) => format!("from {}", moment(start)),
            (false, false) => format!("from {} to {}", moment(start), moment(end)),
        };
        let selection = Selection::new(Table::Cpus)
            .filter(Condition::Any(vec![
                Condition::IsKnown("recorded_from_ns"),
                Condition::IsKnown("recorded_until_ns"),
            ]))
            .order(&[Order::ascending("cpu")])
            .limit(SHOWN);
        let mut evidence = Evidence::from_selection("Recorded time of each CPU", selection)
            .stored("cpu", "CPU", Unit::None)
            .stored("recorded_from_ns", "recorded from", Unit::Moment)
            .stored("recorded_until_ns", "until", Unit::Moment);
        for (cpu, from, until) in self.cpus.iter().take(SHOWN) {
            let cells = [
                Some((*cpu).into()),
                from.map(Into::into),
                until.map(Into::into),
            ];
            evidence = evidence.row(cells);
        }
        let finding = finding.with(evidence);
        if end <= 0 {
            return finding;
        }
        finding.doubt(format!(
            "All CPUs are recorded only {when}. At other times, a waiting thread may have run \
             unseen on a CPU that was not recorded. Such waits are reported only if you ask about \
             a thread or a process"
        ))
    }
}

/// Returns true if the recording of a CPU ended at time 0 or before. Such a CPU is not recorded at all.
fn is_nothing(until_ns: Option<i64>) -> bool {
    until_ns.is_some_and(|until_ns| until_ns <= 0)
}

/// Returns the names of CPUs with sorted numbers, such as `CPU 3` or `CPUs 0, 2 and 4`.
pub(crate) fn cpu_names(sorted: &[u16]) -> String {
    match sorted {
        [cpu] => format!("CPU {cpu}"),
        all => format!("CPUs {}", numbers(all)),
    }
}

/// Returns sorted numbers as text. Three or more consecutive numbers become a range.
fn numbers(sorted: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let words = ranges
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first} to {last}")],
        });
    listed(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_are_a_range() {
        assert_eq!(numbers(&[3]), "3");
        assert_eq!(numbers(&[2, 3, 4, 5, 6, 7]), "2 to 7");
        assert_eq!(numbers(&[0, 1, 5, 7, 8, 9]), "0, 1, 5 and 7 to 9");
        assert_eq!(numbers(&[u16::MAX]), "65535");
    }

    #[test]
    fn a_cpu_without_any_event_is_missing() {
        let mut complete = Complete::default();
        assert_eq!(complete.missing(), None);
        complete.cpus = vec![
            (1, None, Some(9_000)),
            (4, None, Some(0)),
            (5, None, Some(0)),
        ];
        assert_eq!(complete.missing().as_deref(), Some("CPUs 4 and 5"));
    }
}
