//! What was asked of the timer's resolution, and what it became.

use std::ops::Range;

use tables::{StoreError, Table, TimerRequestsView};

use crate::{Case, Column, Evidence, Unit, ranges};

/// Time between clock interrupts when nobody asks for less.
pub(super) const DEFAULT_NS: i64 = 15_625_000;

/// A process that asked for a resolution.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) process_row: Option<u32>,
    pub(super) process_id: Option<u32>,
    /// The finest that it asked for.
    pub(super) finest_ns: i64,
    /// When it first asked.
    pub(super) from_ns: i64,
    /// Windows said that it ignores it.
    pub(super) was_ignored: bool,
    /// From when to when its requests stood.
    pub(super) held: Vec<Range<i64>>,
}

/// Who asked for what when, and what the system's resolution became.
pub(super) struct Requests {
    /// Those of the finest first.
    pub(super) askers: Vec<Asker>,
    /// From when on the system's resolution was which.
    pub(super) effective: Vec<(i64, i64)>,
    /// Whether the trace tells of anything.
    pub(super) is_empty: bool,
}

impl Requests {
    pub(super) fn read(case: &Case<'_>) -> Result<Requests, StoreError> {
        let columns = [
            "time_ns",
            "kind",
            "resolution_ns",
            "process_id",
            "process_row",
            "ignored",
        ];
        let table = case.table(Table::TimerRequests)?;
        let mut requests = Requests {
            askers: Vec::new(),
            effective: Vec::new(),
            is_empty: table.rows() == 0,
        };
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = TimerRequestsView::new(&batch)?;
            for row in 0..view.len() {
                requests.add(&view, row);
            }
        }
        let askers = &mut requests.askers;
        askers.sort_by_key(|asker| (asker.finest_ns, asker.from_ns));
        Ok(requests)
    }

    fn add(&mut self, view: &TimerRequestsView<'_>, row: usize) {
        let time_ns = view.time_ns[row];
        let Some(ns) = view.resolution_ns.get(row) else {
            return;
        };
        if view.kind.get(row) == Some("effective") {
            self.effective.extend((ns > 0).then_some((time_ns, ns)));
            return;
        }
        let who = (view.process_row.get(row), view.process_id.get(row));
        let mut askers = self.askers.iter_mut();
        let asker = askers.find(|asker| (asker.process_row, asker.process_id) == who);
        let ignored = view.ignored.get(row) == Some(true);
        match (asker, ns) {
            // It takes its request back.
            (Some(asker), ..=0) => {
                if let Some(last) = asker.held.last_mut() {
                    last.end = last.end.min(time_ns);
                }
            }
            (None, ..=0) => {}
            (Some(asker), _) => {
                asker.finest_ns = asker.finest_ns.min(ns);
                asker.was_ignored |= ignored;
                if asker.held.last().is_some_and(|last| last.end <= time_ns) {
                    asker.held.push(time_ns..i64::MAX);
                }
            }
            (None, _) => self.askers.push(Asker {
                process_row: who.0,
                process_id: who.1,
                finest_ns: ns,
                from_ns: time_ns,
                was_ignored: ignored,
                held: std::iter::once(time_ns..i64::MAX).collect(),
            }),
        }
    }

    /// When anybody's request stood.
    pub(super) fn held(&self) -> Vec<Range<i64>> {
        let all = self.askers.iter().flat_map(|asker| asker.held.clone());
        ranges::union(all.collect())
    }

    /// The time between two clock interrupts at a moment: as the system set it or, if nothing tells
    /// that, the finest that is asked for.
    pub(super) fn period_ns(&self, time_ns: i64) -> i64 {
        let after = self.effective.partition_point(|(from, _)| *from <= time_ns);
        if let Some((_, ns)) = after.checked_sub(1).and_then(|at| self.effective.get(at)) {
            return *ns;
        }
        let held = self.askers.iter().filter(|asker| asker.holds(time_ns));
        held.map(|asker| asker.finest_ns)
            .min()
            .unwrap_or(DEFAULT_NS)
    }

    /// For how long the system's resolution was this one, in a trace that ends then.
    pub(super) fn held_ns(&self, end_ns: i64, resolution_ns: i64) -> i64 {
        let mut set = self.effective.clone();
        set.sort_unstable();
        let until = set.iter().skip(1).map(|(time_ns, _)| *time_ns);
        let until = until.chain([end_ns]);
        let held = set
            .iter()
            .zip(until)
            .filter(|((_, ns), _)| *ns == resolution_ns);
        held.map(|((from, _), until)| until.saturating_sub(*from).max(0))
            .sum()
    }

    /// How often timers are looked at of a process whose request does not count, or that has none:
    /// as many whole periods of the hardware as the default holds.
    pub(super) fn default_ns(&self, time_ns: i64) -> i64 {
        let period_ns = self.period_ns(time_ns).max(1);
        (DEFAULT_NS / period_ns).max(1) * period_ns
    }
}

impl Asker {
    pub(super) fn holds(&self, time_ns: i64) -> bool {
        let after = self.held.partition_point(|held| held.start <= time_ns);
        let held = after.checked_sub(1).and_then(|at| self.held.get(at));
        held.is_some_and(|held| time_ns < held.end)
    }
}

/// All who asked.
pub(super) fn by_process(case: &Case<'_>, askers: &[Asker]) -> Evidence {
    const SHOWN: usize = 20;
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("finest_ns", "finest asked for", Unit::Duration),
        Column::new("from_ns", "since", Unit::Moment),
        Column::new("was_ignored", "ignored", Unit::None),
    ];
    let query = format!(
        "SELECT process(process_row) AS process, min(resolution_ns) AS finest_ns, min(time_ns) AS \
         from_ns, max(CASE WHEN ignored THEN 1 ELSE 0 END) AS was_ignored FROM timer_requests WHERE \
         kind = 'request' AND resolution_ns > 0 GROUP BY process_row, process_id ORDER BY \
         finest_ns, from_ns, process_id LIMIT {SHOWN}"
    );
    let mut askers: Vec<&Asker> = askers.iter().collect();
    askers.sort_by_key(|asker| (asker.finest_ns, asker.from_ns, asker.process_id));
    let mut evidence = Evidence::new("Who asked for a timer resolution", query, &columns);
    for asker in askers.into_iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(asker.process_row).map(Into::into),
            Some(asker.finest_ns.into()),
            Some(asker.from_ns.into()),
            Some(i64::from(asker.was_ignored).into()),
        ]);
    }
    evidence
}

/// What one process asked for.
pub(super) fn of(case: &Case<'_>, asker: &Asker) -> Evidence {
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("finest_ns", "finest asked for", Unit::Duration),
        Column::new("from_ns", "since", Unit::Moment),
    ];
    let is_it = match asker.process_row {
        Some(row) => format!("process_row = {row}"),
        None => match asker.process_id {
            Some(id) => format!("process_row IS NULL AND process_id = {id}"),
            None => "process_row IS NULL AND process_id IS NULL".to_owned(),
        },
    };
    let query = format!(
        "SELECT process(min(process_row)) AS process, min(resolution_ns) AS finest_ns, min(time_ns) \
         AS from_ns FROM timer_requests WHERE kind = 'request' AND resolution_ns > 0 AND {is_it}"
    );
    Evidence::new("What was asked for", query, &columns).row([
        case.process_label(asker.process_row).map(Into::into),
        Some(asker.finest_ns.into()),
        Some(asker.from_ns.into()),
    ])
}

/// What the system's resolution was.
pub(super) fn effective(case: &Case<'_>, requests: &Requests) -> Evidence {
    const SHOWN: usize = 10;
    let end_ns = case.survey.span.end;
    let columns = [
        Column::new("resolution_ns", "resolution", Unit::Duration),
        Column::new("times", "times", Unit::Count),
        Column::new("first_ns", "first", Unit::Moment),
        Column::new("held_ns", "for", Unit::Duration),
        Column::new("interrupts_per_second", "interrupts a second", Unit::Count),
    ];
    let query = format!(
        "SELECT resolution_ns, count(*) AS times, min(time_ns) AS first_ns, sum(greatest(0, until_ns \
         - time_ns)) AS held_ns, 1000000000 / resolution_ns AS interrupts_per_second FROM (SELECT \
         resolution_ns, time_ns, lead(time_ns, 1, {end_ns}) OVER (ORDER BY time_ns, resolution_ns) AS \
         until_ns FROM timer_requests WHERE kind = 'effective' AND resolution_ns > 0) GROUP BY \
         resolution_ns ORDER BY resolution_ns LIMIT {SHOWN}"
    );
    let mut sums: Vec<(i64, i64, i64)> = Vec::new();
    for (time_ns, ns) in &requests.effective {
        match sums.iter_mut().find(|(known, ..)| known == ns) {
            Some((_, times, _)) => *times += 1,
            None => sums.push((*ns, 1, *time_ns)),
        }
    }
    sums.sort_unstable();
    let mut evidence = Evidence::new("The system's resolution", query, &columns);
    for (ns, times, first_ns) in sums.into_iter().take(SHOWN) {
        evidence = evidence.row([
            Some(ns.into()),
            Some(times.into()),
            Some(first_ns.into()),
            Some(requests.held_ns(end_ns, ns).into()),
            Some((1_000_000_000 / ns).into()),
        ]);
    }
    evidence
}
