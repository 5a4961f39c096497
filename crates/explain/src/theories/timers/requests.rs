//! Requests for timer resolutions, and their effect.

use std::ops::Range;

use selection::{Condition, Expression, Order, Selection};
use tables::{StoreError, Table, TimerRequestsView};

use crate::thresholds::CLOCK_PERIOD_NS;
use crate::{Case, Column, Evidence, Unit, ranges};

/// Process that requested a timer resolution.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) process_row: Option<u32>,
    pub(super) process_id: Option<u32>,
    /// Finest resolution that the process requested, in nanoseconds.
    pub(super) finest_ns: i64,
    /// Time of the process's first request, in nanoseconds since the trace's start.
    pub(super) from_ns: i64,
    /// True if Windows reported that it ignores the request.
    pub(super) was_ignored: bool,
    /// Time ranges during which the process's requests were active.
    pub(super) held: Vec<Range<i64>>,
}

/// Requests for timer resolutions, and the changes of the system's resolution.
pub(super) struct Requests {
    /// Requesting processes. Those with the finest resolution come first.
    pub(super) askers: Vec<Asker>,
    /// Times at which the system's resolution changed, each with the new resolution in nanoseconds.
    pub(super) effective: Vec<(i64, i64)>,
    /// True if the trace records neither requests nor the system's resolution.
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
            // A resolution of 0 or less means that the process withdrew its request.
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

    /// Returns the time ranges during which any request was active.
    pub(super) fn active_ranges(&self) -> Vec<Range<i64>> {
        let all = self.askers.iter().flat_map(|asker| asker.held.clone());
        ranges::union(all.collect())
    }

    /// Returns the time between two clock interrupts at the moment `time_ns`, in nanoseconds. It is the
    /// system's resolution. If the system's resolution is not recorded, it is the finest requested
    /// resolution.
    pub(super) fn period_ns(&self, time_ns: i64) -> i64 {
        let after = self.effective.partition_point(|(from, _)| *from <= time_ns);
        if let Some((_, ns)) = after.checked_sub(1).and_then(|at| self.effective.get(at)) {
            return *ns;
        }
        let askers = self.askers.iter().filter(|asker| asker.holds(time_ns));
        askers
            .map(|asker| asker.finest_ns)
            .min()
            .unwrap_or(CLOCK_PERIOD_NS)
    }

    /// Returns the total time in nanoseconds during which the system's resolution was `resolution_ns`. The
    /// trace ends at `end_ns`.
    pub(super) fn held_ns(&self, end_ns: i64, resolution_ns: i64) -> i64 {
        let mut set = self.effective.clone();
        set.sort_unstable();
        let until = set.iter().skip(1).map(|(time_ns, _)| *time_ns);
        let until = until.chain([end_ns]);
        let ranges = set
            .iter()
            .zip(until)
            .filter(|((_, ns), _)| *ns == resolution_ns);
        ranges
            .map(|((from, _), until)| until.saturating_sub(*from).max(0))
            .sum()
    }

    /// Returns the period of timers of a process for which no request counts, in nanoseconds. The period is the largest
    /// multiple of the clock's period that does not exceed the default period.
    pub(super) fn default_ns(&self, time_ns: i64) -> i64 {
        let period_ns = self.period_ns(time_ns).max(1);
        (CLOCK_PERIOD_NS / period_ns).max(1) * period_ns
    }
}

impl Asker {
    pub(super) fn holds(&self, time_ns: i64) -> bool {
        let after = self.held.partition_point(|held| held.start <= time_ns);
        let range = after.checked_sub(1).and_then(|at| self.held.get(at));
        range.is_some_and(|range| time_ns < range.end)
    }
}

/// Returns evidence with the requesting processes.
pub(super) fn by_process(case: &Case<'_>, askers: &[Asker]) -> Evidence {
    const SHOWN: usize = 20;
    let selection = requested()
        .group_by(&["process_row", "process_id"])
        .order(&[
            Order::ascending("finest_ns"),
            Order::ascending("from_ns"),
            Order::ascending("process_id"),
        ])
        .limit(SHOWN);
    let ignored = "max(CASE WHEN ignored THEN 1 ELSE 0 END)".to_owned();
    let ignored = Expression::Formula(ignored);
    let mut askers: Vec<&Asker> = askers.iter().collect();
    askers.sort_by_key(|asker| (asker.finest_ns, asker.from_ns, asker.process_id));
    let mut evidence = asked_for("Requests for a timer resolution", selection).column(
        "was_ignored",
        "ignored",
        Unit::None,
        ignored,
    );
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

/// Returns a selection of the requests for a resolution.
fn requested() -> Selection {
    Selection::new(Table::TimerRequests)
        .filter(Condition::is_text("kind", &["request"]))
        .filter(Condition::AtLeast("resolution_ns", 1))
}

/// Returns evidence without rows about requests by process.
fn asked_for(title: &str, selection: Selection) -> Evidence {
    let process = Expression::Process("process_row");
    let (finest, from) = (Expression::Min("resolution_ns"), Expression::Min("time_ns"));
    Evidence::from_selection(title, selection)
        .column("process", "process", Unit::None, process)
        .column("finest_ns", "finest request", Unit::Duration, finest)
        .column("from_ns", "since", Unit::Moment, from)
}

/// Returns evidence with the request of one process.
pub(super) fn evidence(case: &Case<'_>, asker: &Asker) -> Evidence {
    let selection = requested()
        .filter(Condition::of_process(asker.process_row, asker.process_id))
        .group_by(&["process_row", "process_id"]);
    asked_for("The request", selection).row([
        case.process_label(asker.process_row).map(Into::into),
        Some(asker.finest_ns.into()),
        Some(asker.from_ns.into()),
    ])
}

/// Returns evidence with the values of the system's resolution.
pub(super) fn effective(case: &Case<'_>, requests: &Requests) -> Evidence {
    const SHOWN: usize = 10;
    let end_ns = case.survey.span.end;
    let columns = [
        Column::new("resolution_ns", "resolution", Unit::Duration),
        Column::new("times", "times", Unit::Count),
        Column::new("first_ns", "first", Unit::Moment),
        Column::new("held_ns", "for", Unit::Duration),
        Column::new(
            "interrupts_per_second",
            "interrupts per second",
            Unit::Count,
        ),
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
