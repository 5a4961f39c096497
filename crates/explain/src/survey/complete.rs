//! When a trace has the records of all CPUs.

use std::ops::Range;

use tables::{CpusView, StoreError, Table};

use crate::{Case, Column, Evidence, Finding, Unit, moment};

/// When a trace has the records of all CPUs: a thread that is not known to have run at another time
/// may have, on a CPU whose record had not begun or was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    range: Range<i64>,
    /// CPUs that are not recorded all the time, with from when on and until when they are.
    cpus: Vec<(u16, Option<i64>, Option<i64>)>,
}

impl Default for Complete {
    /// All the time.
    fn default() -> Complete {
        Complete {
            range: i64::MIN..i64::MAX,
            cpus: Vec::new(),
        }
    }
}

impl Complete {
    /// The table that is read.
    pub(super) const TABLE: Table = Table::Cpus;

    pub(super) fn read(case: &Case<'_>) -> Result<Complete, StoreError> {
        let mut complete = Complete::default();
        let table = case.table(Self::TABLE)?;
        let columns = [
            "first_seen_ns",
            "cpu",
            "recorded_from_ns",
            "recorded_until_ns",
        ];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
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

    /// Whether that holds from one moment to another.
    pub(crate) fn holds(&self, from: i64, to: i64) -> bool {
        self.range.start <= from && to <= self.range.end
    }

    /// The same as a condition that follows another in SQL, of two columns or expressions.
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

    /// Whether buffers were overwritten by later ones.
    pub(crate) fn is_of_ring(&self) -> bool {
        self.range.start != i64::MIN
    }

    /// Until when it holds of a trace that ends then.
    pub(crate) fn until(&self, end: i64) -> i64 {
        self.range.end.min(end)
    }

    /// The finding, with what is not told about other times.
    pub(crate) fn doubted(&self, finding: Finding) -> Finding {
        const SHOWN: usize = 64;
        if self.cpus.is_empty() {
            return finding;
        }
        let Range { start, end } = self.range;
        let when = match (!self.is_of_ring(), end == i64::MAX) {
            (true, _) => format!("until {}", moment(end)),
            (false, true) => format!("from {} on", moment(start)),
            (false, false) => format!("from {} to {}", moment(start), moment(end)),
        };
        let query = format!(
            "SELECT cpu, recorded_from_ns, recorded_until_ns FROM cpus WHERE recorded_from_ns IS NOT \
             NULL OR recorded_until_ns IS NOT NULL ORDER BY cpu LIMIT {SHOWN}"
        );
        let columns = [
            Column::new("cpu", "CPU", Unit::None),
            Column::new("recorded_from_ns", "recorded from", Unit::Moment),
            Column::new("recorded_until_ns", "until", Unit::Moment),
        ];
        let mut evidence = Evidence::new("When each CPU is recorded", query, &columns);
        for (cpu, from, until) in self.cpus.iter().take(SHOWN) {
            let cells = [
                Some((*cpu).into()),
                from.map(Into::into),
                until.map(Into::into),
            ];
            evidence = evidence.row(cells);
        }
        finding.with(evidence).doubt(format!(
            "All CPUs are recorded {when} only: a wait beyond is not told unless it is asked for, since \
             its thread may have run unseen"
        ))
    }
}
