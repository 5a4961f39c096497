//! CPU time that kept a thread from the CPUs for which it waited.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::Table;

use super::holders::{Holders, What};
use super::waiter::Waiter;
use crate::system::{run_priority_expression, run_priority_sql};
use crate::thresholds::{RECORDED_PERCENT, is_share};
use crate::{Case, Column, Evidence, SuspendGaps, Unit, Value};

/// User of CPU time that kept a waiting thread off a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A thread of worse rank, or a thread of the same rank and lower priority. The dispatcher should have preempted
    /// this thread.
    Dispatcher,
    Dpc,
    EqualPriority,
    Idle,
    Isr,
    /// A thread of higher priority and no worse rank.
    Priority,
    /// A thread with a better rank (0 is the best) and with the same or a lower priority.
    Rank,
    Suspended,
    /// A thread of unknown priority.
    Unknown,
}

/// Names of the variants of [`Holder`], in their order. The truth file of the simulation uses the same
/// names.
const NAMES: [&str; 9] = [
    "dispatcher",
    "dpc",
    "equal_priority",
    "idle",
    "isr",
    "priority",
    "rank",
    "suspended",
    "unknown",
];

/// Returns the name of a variant of [`Holder`] in words of Linux.
fn linux_name(name: &'static str) -> &'static str {
    match name {
        "dispatcher" => "lower_priority",
        "dpc" => "softirqs",
        "isr" => "interrupts",
        name => name,
    }
}

/// CPU time by user, on the CPUs for which a thread waited.
#[derive(Clone, Debug, Default)]
pub(crate) struct HolderTimes {
    ns: [i64; NAMES.len()],
    /// Ranks and priorities of the threads in [`Holder::Rank`].
    pub(crate) outranked_by: Option<Outranking>,
    /// CPU time of the fair threads of Linux in [`Holder::EqualPriority`] by their nice values, in nanoseconds.
    pub(crate) by_nice: BTreeMap<i8, i64>,
    /// Time of all CPUs for which the thread waited, summed over the wait, in nanoseconds.
    pub(crate) all_ns: i64,
    /// Length of the wait, in nanoseconds.
    ready_ns: i64,
    is_linux: bool,
}

/// Minimum and maximum rank, and minimum and maximum priority, of the threads in `Holder::Rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outranking {
    pub(crate) ranks: (u8, u8),
    pub(crate) priorities: (i8, i8),
}

impl HolderTimes {
    pub(crate) fn new(case: &Case<'_>, waiter: &Waiter, holders: &Holders) -> HolderTimes {
        let cpus = case
            .survey
            .cpus
            .iter()
            .filter(|cpu| waiter.waited_for(cpu.cpu));
        let mut times = HolderTimes {
            all_ns: waiter.ready_ns().saturating_mul(cpus.count() as i64),
            ready_ns: waiter.ready_ns(),
            is_linux: holders.is_linux,
            ..HolderTimes::default()
        };
        for (range, priority) in &waiter.priorities {
            for (cpu, what, time) in holders.within(range) {
                if waiter.waited_for(cpu) {
                    times.add((waiter.rank, *priority), what, time.net_ns);
                }
            }
        }
        times
    }

    fn add(&mut self, (my_rank, my_priority): (Option<u8>, Option<i8>), what: What, ns: i64) {
        let by = match what {
            What::Idle => Holder::Idle,
            What::Isr => Holder::Isr,
            What::Dpc => Holder::Dpc,
            What::Suspended => Holder::Suspended,
            What::Thread {
                rank,
                priority,
                nice,
                ..
            } => {
                let (rank, my_rank) = (rank.unwrap_or(0), my_rank.unwrap_or(0));
                match priority.zip(my_priority) {
                    _ if rank > my_rank => Holder::Dispatcher,
                    None => Holder::Unknown,
                    Some((priority, mine)) if priority > mine => Holder::Priority,
                    Some((priority, _)) if rank < my_rank => {
                        self.outranked(rank, priority);
                        Holder::Rank
                    }
                    Some((priority, mine)) if priority == mine => {
                        if let Some(nice) = nice {
                            *self.by_nice.entry(nice).or_default() += ns;
                        }
                        Holder::EqualPriority
                    }
                    Some(_) => Holder::Dispatcher,
                }
            }
        };
        self.ns[by as usize] += ns;
    }

    fn outranked(&mut self, rank: u8, priority: i8) {
        let now = self.outranked_by.get_or_insert(Outranking {
            ranks: (rank, rank),
            priorities: (priority, priority),
        });
        now.ranks = (now.ranks.0.min(rank), now.ranks.1.max(rank));
        now.priorities = (
            now.priorities.0.min(priority),
            now.priorities.1.max(priority),
        );
    }

    /// Returns the CPU time of a user, in nanoseconds.
    pub(crate) fn by(&self, by: Holder) -> i64 {
        self.ns[by as usize]
    }

    /// Returns true if the trace shows the users of the CPUs for at least half of the wait. A counterexample is a part
    /// of a trace with the events of only one program.
    pub(crate) fn is_recorded(&self) -> bool {
        let known: i64 = self.ns.iter().sum();
        is_share(known, self.all_ns, RECORDED_PERCENT)
    }

    /// Returns the time of all CPUs for which the thread waited, summed over the wait, in nanoseconds. Suspend gaps are
    /// left out, unless the machine was suspended for the whole wait.
    pub(crate) fn awake_ns(&self) -> i64 {
        match self.all_ns - self.by(Holder::Suspended) {
            1.. if self.part_of_wait(self.by(Holder::Suspended)) < self.ready_ns => {
                self.all_ns - self.by(Holder::Suspended)
            }
            _ => self.all_ns,
        }
    }

    /// Returns the part of the wait that corresponds to the CPU time `cpu_ns`, in nanoseconds.
    pub(crate) fn part_of_wait(&self, cpu_ns: i64) -> i64 {
        match self.all_ns {
            0 => 0,
            all => (i128::from(cpu_ns) * i128::from(self.ready_ns) / i128::from(all)) as i64,
        }
    }

    /// Returns evidence with the CPU time of each user.
    pub(crate) fn evidence(&self, waiter: &Waiter, silences: &SuspendGaps) -> Evidence {
        let columns = [
            Column::new("held_by", "CPU used by", Unit::None),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
        ];
        let which = match waiter.its_cpus() {
            None => "every CPU".to_owned(),
            Some(_) => waiter.cpus_in_words(),
        };
        let title = format!("Use of {which} during the wait");
        let mut evidence = Evidence::new(title, query(waiter, silences, self.is_linux), &columns);
        let mut rows: Vec<_> = NAMES.into_iter().zip(self.ns).collect();
        if self.is_linux {
            for (name, _) in &mut rows {
                *name = linux_name(name);
            }
            rows.sort_unstable();
        }
        for (name, ns) in rows {
            if ns > 0 {
                evidence = evidence.row([Some(name.into()), Some(ns.into())]);
            }
        }
        evidence
    }
}

/// Returns the SQL query of the sums. If several things run on a CPU at the same time, only the
/// highest level counts: a service routine before a DPC, and a DPC before the interrupted thread.
fn query(waiter: &Waiter, silences: &SuspendGaps, is_linux: bool) -> String {
    let of_run = run_priority_sql(is_linux);
    let names = ["isr", "dpc", "dispatcher"];
    let [isr, dpc, dispatcher] = names.map(|name| if is_linux { linux_name(name) } else { name });
    let rank = waiter.rank.unwrap_or(0);
    let me: Vec<String> = (waiter.priorities.iter())
        .map(|(range, priority)| {
            let priority =
                priority.map_or_else(|| "NULL".to_owned(), |priority| priority.to_string());
            format!("({}, {}, {rank}, {priority})", range.start, range.end)
        })
        .collect();
    let me = me.join(", ");
    let on_its_cpus = waiter.and_on_its_cpus();
    let Range { start, end } = &waiter.range;
    let is_within = format!("end_ns > {start} AND start_ns < {end}{on_its_cpus}");
    let suspended: String = silences
        .within(&waiter.range)
        .map(|silence| {
            format!(
                " UNION ALL SELECT DISTINCT cpu, {}, {}, 1000000000 FROM cpu_runs WHERE {is_within}",
                silence.start, silence.end
            )
        })
        .collect();
    format!(
        "WITH me AS (SELECT * FROM (VALUES {me}) AS me (from_ns, to_ns, rank, priority)), runs AS \
         (SELECT cpu, start_ns, end_ns, thread_id, coalesce(rank_out, previous_rank, 0) AS rank, \
         {of_run} AS priority FROM cpu_runs WHERE {is_within}), spans AS \
         (SELECT runs.cpu, greatest(start_ns, from_ns) AS from_ns, least(end_ns, to_ns) AS to_ns, \
         CASE WHEN thread_id = 0 THEN 1 WHEN runs.rank > me.rank THEN 5 WHEN runs.priority IS NULL \
         OR me.priority IS NULL THEN 6 WHEN runs.priority > me.priority THEN 3 WHEN runs.rank < \
         me.rank THEN 2 WHEN runs.priority = me.priority THEN 4 ELSE 5 END AS step FROM runs JOIN \
         me ON end_ns > from_ns AND start_ns < to_ns UNION ALL SELECT cpu, greatest(start_ns, \
         {start}), least(end_ns, {end}), CASE WHEN kind IN ('isr', 'msi') THEN 1000000 ELSE 100 END \
         FROM interrupts WHERE {is_within} AND kind NOT IN ('threaded_dpc', 'passive_isr')\
         {suspended}), edges AS (SELECT cpu, from_ns AS at_ns, step FROM spans UNION ALL SELECT \
         cpu, to_ns, -step FROM spans), levels AS (SELECT lead(at_ns) OVER (PARTITION BY cpu ORDER \
         BY at_ns) - at_ns AS ns, sum(step) OVER (PARTITION BY cpu ORDER BY at_ns) AS level FROM \
         edges) SELECT CASE WHEN level >= 1000000000 THEN 'suspended' WHEN level >= 1000000 THEN \
         '{isr}' WHEN level >= 100 THEN '{dpc}' WHEN level = 1 THEN 'idle' WHEN level = 2 THEN 'rank' \
         WHEN level = 3 THEN 'priority' WHEN level = 4 THEN 'equal_priority' WHEN level = 5 THEN \
         '{dispatcher}' ELSE 'unknown' END AS held_by, sum(ns) AS cpu_ns FROM levels WHERE ns > 0 AND \
         level > 0 GROUP BY 1 ORDER BY 1"
    )
}

/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

/// Returns evidence with the CPU time during the wait by rank and priority, on the CPUs for which the thread waited. On
/// Linux, the time is by priority and nice value.
pub(crate) fn by_precedence(waiter: &Waiter, holders: &Holders) -> Evidence {
    let mut sums: FxHashMap<[Option<i64>; 2], i64> = FxHashMap::default();
    for (cpu, what, time) in holders.within(&waiter.range) {
        if let What::Thread {
            rank,
            priority,
            nice,
            ..
        } = what
            && waiter.waited_for(cpu)
        {
            let priority = priority.map(i64::from);
            let key = if holders.is_linux {
                [priority, nice.map(i64::from)]
            } else {
                [rank.map(i64::from), priority]
            };
            *sums.entry(key).or_default() += time.gross_ns;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, ns)| {
        let [first, second] = key.map(|it| it.unwrap_or(i64::MAX));
        (-ns, first, second)
    });
    let selection = ran(Some(waiter), std::slice::from_ref(&waiter.range))
        .group_by(&["1", "2"])
        .order(&[
            Order::descending("cpu_ns"),
            Order::ascending("1"),
            Order::ascending("2"),
        ]);
    let priority = run_priority_expression(holders.is_linux);
    let evidence = if holders.is_linux {
        let title = "Threads that ran instead, by priority and nice value";
        Evidence::from_selection(title, selection)
            .column("priority", "priority", Unit::None, priority)
            .stored("nice", "nice", Unit::None)
    } else {
        let rank = Expression::FirstKnown(vec!["rank_out", "previous_rank"]);
        Evidence::from_selection("Threads that ran instead, by rank and priority", selection)
            .column("rank", "rank", Unit::None, rank)
            .column("priority", "priority", Unit::None, priority)
    };
    let mut evidence =
        evidence.column("cpu_ns", "CPU time", Unit::Duration, Expression::TimeWithin);
    for ([first, second], ns) in sums.into_iter().take(SHOWN) {
        let cells = [
            first.map(Value::from),
            second.map(Value::from),
            Some(ns.into()),
        ];
        evidence = evidence.row(cells);
    }
    evidence
}

/// Processes that ran while threads waited.
pub(crate) struct WhoRan {
    pub(crate) evidence: Evidence,
    /// The process with most CPU time.
    pub(crate) most: Option<Most>,
    /// The process with second most CPU time.
    pub(crate) second: Option<Most>,
    /// CPU time of the waiting process itself, in nanoseconds.
    pub(crate) own_ns: i64,
}

/// CPU time of one process, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) process_row: Option<u32>,
    pub(crate) process_id: Option<u32>,
    pub(crate) ns: i64,
}

/// Sums up CPU time by process. If `waiter` is set, only the CPUs for which this thread waited count. Each range must
/// begin and end where a wait begins or ends. The ranges must be disjoint.
pub(crate) fn by_process(
    case: &Case<'_>,
    waiter: Option<&Waiter>,
    stretches: &[Range<i64>],
    holders: &Holders,
) -> WhoRan {
    let mut sums: FxHashMap<(Option<u32>, Option<u32>), i64> = FxHashMap::default();
    for (cpu, what, time) in stretches.iter().flat_map(|range| holders.within(range)) {
        if let What::Thread {
            process_row,
            process_id,
            ..
        } = what
            && waiter.is_none_or(|waiter| waiter.waited_for(cpu))
        {
            *sums.entry((process_row, process_id)).or_default() += time.gross_ns;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|((row, id), ns)| {
        (
            -ns,
            row.map_or(u64::MAX, u64::from),
            id.map_or(u64::MAX, u64::from),
        )
    });
    let selection = ran(waiter, stretches)
        .group_by(&["process_row", "process_id"])
        .order(&[
            Order::descending("cpu_ns"),
            Order::ascending("process_row"),
            Order::ascending("process_id"),
        ]);
    let process = Expression::Process("process_row");
    let mut evidence = Evidence::from_selection("Threads that ran instead, by process", selection)
        .column("process", "process", Unit::None, process)
        .column("cpu_ns", "CPU time", Unit::Duration, Expression::TimeWithin);
    let mut first = sums.iter().map(|((row, id), ns)| Most {
        process_row: *row,
        process_id: *id,
        ns: *ns,
    });
    let (most, second) = (first.next(), first.next());
    let own_row = waiter.and_then(|waiter| waiter.process_row);
    let is_own = |row: Option<u32>| row.is_some() && row == own_row;
    let own = sums.iter().find(|((row, _), _)| is_own(*row));
    let own_ns = own.map_or(0, |(_, ns)| *ns);
    for ((row, _), ns) in sums.into_iter().take(SHOWN) {
        let process = case.process_label(row).map(Value::from);
        evidence = evidence.row([process, Some(ns.into())]);
    }
    WhoRan {
        evidence,
        most,
        second,
        own_ns,
    }
}

/// Returns evidence with the idle time of each CPU that is not in `cpus`, and the longest of these idle times in
/// nanoseconds. Returns `None` if none of these CPUs was idle.
pub(crate) fn idle_beyond(
    case: &Case<'_>,
    waiter: &Waiter,
    (cpus, title): (&[u16], &'static str),
    holders: &Holders,
) -> Option<(Evidence, i64)> {
    let beyond = case.survey.cpus.iter().map(|cpu| cpu.cpu);
    let mut idle: Vec<(u16, i64)> = beyond
        .filter(|cpu| !cpus.contains(cpu))
        .map(|cpu| (cpu, 0))
        .collect();
    for (cpu, what, time) in holders.within(&waiter.range) {
        if what == What::Idle
            && let Some((_, ns)) = idle.iter_mut().find(|(other, _)| *other == cpu)
        {
            *ns += time.gross_ns;
        }
    }
    idle.retain(|(_, ns)| *ns > 0);
    idle.sort_unstable_by_key(|(cpu, ns)| (-ns, *cpu));
    let selection = Selection::new(Table::CpuRuns)
        .overlapping(std::slice::from_ref(&waiter.range))
        .filter(Condition::is("thread_id", 0))
        .filter(Condition::is_none_of("cpu", cpus))
        .group_by(&["cpu"])
        .order(&[Order::descending("cpu_ns"), Order::ascending("cpu")])
        .limit(SHOWN);
    let mut evidence = Evidence::from_selection(title, selection)
        .stored("cpu", "CPU", Unit::None)
        .column("cpu_ns", "idle", Unit::Duration, Expression::TimeWithin);
    for (cpu, ns) in idle.iter().take(SHOWN) {
        evidence = evidence.row([Some((*cpu).into()), Some((*ns).into())]);
    }
    idle.first().map(|(_, longest)| (evidence, *longest))
}

/// Returns a selection of the runs of threads during waits, on the CPUs for which the thread `waiter` waited. If
/// `waiter` is `None`, the runs on all CPUs are selected.
fn ran(waiter: Option<&Waiter>, during: &[Range<i64>]) -> Selection {
    let its_cpus = waiter.and_then(Waiter::its_cpus);
    Selection::new(Table::CpuRuns)
        .overlapping(during)
        .filter(Condition::is_not("thread_id", 0))
        .filters(its_cpus.map(|cpus| Condition::is_one_of("cpu", cpus)))
        .limit(SHOWN)
}
