//! What kept a thread off the CPUs that it may use.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::holders::{Holders, What};
use super::waiter::Waiter;
use crate::{Case, Column, Evidence, Silences, Unit, Value};

/// What kept a thread off a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A thread of its rank or a worse one that goes behind it all the same, or one of its rank and
    /// lower priority.
    Dispatcher,
    Dpc,
    EqualPriority,
    Idle,
    Isr,
    /// A thread of higher priority, and of no worse rank.
    Priority,
    /// A thread of better rank and no higher priority.
    Rank,
    Suspended,
    /// A thread whose priority is not known.
    Unknown,
}

/// As the simulation's truth calls them, in the order of [`By`].
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

/// How long what kept a thread off the CPUs that it may use: CPU time.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    ns: [i64; NAMES.len()],
    /// The lowest and the highest priority of those that [`By::Rank`] is made of, and their ranks.
    pub(super) outranked_by: Option<Outranking>,
    /// Time of all CPUs that it may use.
    pub(super) all_ns: i64,
    /// How long it waited.
    ready_ns: i64,
}

/// Threads of better rank and no higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outranking {
    pub(super) ranks: (u8, u8),
    pub(super) priorities: (i8, i8),
}

impl Held {
    pub(super) fn of(case: &Case<'_>, waiter: &Waiter, holders: &Holders) -> Held {
        let cpus = case
            .survey
            .cpus
            .iter()
            .filter(|cpu| waiter.may_use(cpu.cpu));
        let mut held = Held {
            all_ns: waiter.ready_ns().saturating_mul(cpus.count() as i64),
            ready_ns: waiter.ready_ns(),
            ..Held::default()
        };
        for (range, priority) in &waiter.priorities {
            for (cpu, what, time) in holders.within(range) {
                if waiter.may_use(cpu) {
                    held.add((waiter.rank, *priority), what, time.net_ns);
                }
            }
        }
        held
    }

    fn add(&mut self, (my_rank, my_priority): (Option<u8>, Option<i8>), what: What, ns: i64) {
        let by = match what {
            What::Idle => By::Idle,
            What::Isr => By::Isr,
            What::Dpc => By::Dpc,
            What::Suspended => By::Suspended,
            What::Thread { rank, priority, .. } => {
                let (rank, my_rank) = (rank.unwrap_or(0), my_rank.unwrap_or(0));
                match priority.zip(my_priority) {
                    _ if rank > my_rank => By::Dispatcher,
                    None => By::Unknown,
                    Some((priority, mine)) if priority > mine => By::Priority,
                    Some((priority, _)) if rank < my_rank => {
                        self.outranked(rank, priority);
                        By::Rank
                    }
                    Some((priority, mine)) if priority == mine => By::EqualPriority,
                    Some(_) => By::Dispatcher,
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

    /// CPU time that something had.
    pub(super) fn by(&self, by: By) -> i64 {
        self.ns[by as usize]
    }

    /// The part of the wait that CPU time stands for.
    pub(super) fn part_of_wait(&self, cpu_ns: i64) -> i64 {
        match self.all_ns {
            0 => 0,
            all => (i128::from(cpu_ns) * i128::from(self.ready_ns) / i128::from(all)) as i64,
        }
    }

    /// How the CPUs' time was spent, and the query that says so.
    pub(super) fn evidence(&self, waiter: &Waiter, silences: &Silences) -> Evidence {
        let columns = [
            Column::new("held_by", "what kept it off a CPU", Unit::None),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
        ];
        let which = match &waiter.limited_to {
            None => "every CPU",
            Some(_) => "the CPUs that it may use",
        };
        let title = format!("What had {which} meanwhile");
        let mut evidence = Evidence::new(title, query(waiter, silences), &columns);
        for (name, ns) in NAMES.iter().zip(self.ns) {
            if ns > 0 {
                evidence = evidence.row([Some((*name).into()), Some(ns.into())]);
            }
        }
        evidence
    }
}

/// The same sums in SQL: what is under way on a CPU counts by levels, so that service routines go
/// before DPCs and these before the thread that they interrupt.
fn query(waiter: &Waiter, silences: &Silences) -> String {
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
         coalesce(priority, priority_out) AS priority FROM cpu_runs WHERE {is_within}), spans AS \
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
         'isr' WHEN level >= 100 THEN 'dpc' WHEN level = 1 THEN 'idle' WHEN level = 2 THEN 'rank' \
         WHEN level = 3 THEN 'priority' WHEN level = 4 THEN 'equal_priority' WHEN level = 5 THEN \
         'dispatcher' ELSE 'unknown' END AS held_by, sum(ns) AS cpu_ns FROM levels WHERE ns > 0 AND \
         level > 0 GROUP BY 1 ORDER BY 1"
    )
}

/// Rows shown of who ran.
const SHOWN: usize = 12;

/// CPU time meanwhile by rank and priority, on the CPUs that the thread may use.
pub(super) fn by_rank_and_priority(waiter: &Waiter, holders: &Holders) -> Evidence {
    let mut sums: FxHashMap<(Option<u8>, Option<i8>), i64> = FxHashMap::default();
    for (cpu, what, time) in holders.within(&waiter.range) {
        if let What::Thread { rank, priority, .. } = what
            && waiter.may_use(cpu)
        {
            *sums.entry((rank, priority)).or_default() += time.gross_ns;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|((rank, priority), ns)| {
        (
            -ns,
            rank.map_or(i16::MAX, i16::from),
            priority.map_or(i16::MAX, i16::from),
        )
    });
    let query = format!(
        "SELECT coalesce(rank_out, previous_rank) AS rank, coalesce(priority, priority_out) AS \
         priority, {} FROM cpu_runs WHERE {} GROUP BY 1, 2 ORDER BY cpu_ns DESC, 1, 2 LIMIT {SHOWN}",
        sum_within(&waiter.range),
        ran_within(waiter),
    );
    let columns = [
        Column::new("rank", "rank", Unit::None),
        Column::new("priority", "priority", Unit::None),
        Column::new("cpu_ns", "CPU time", Unit::Duration),
    ];
    let mut evidence = Evidence::new("Who ran instead, by rank and priority", query, &columns);
    for ((rank, priority), ns) in sums.into_iter().take(SHOWN) {
        let cells = [
            rank.map(Value::from),
            priority.map(Value::from),
            Some(ns.into()),
        ];
        evidence = evidence.row(cells);
    }
    evidence
}

/// Who ran instead of threads that waited.
pub(super) struct WhoRan {
    pub(super) evidence: Evidence,
    /// Who had most.
    pub(super) most: Option<Most>,
    /// What the process that waited had itself.
    pub(super) own_ns: i64,
}

/// A process that had more of the CPUs than any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Most {
    pub(super) process_row: Option<u32>,
    pub(super) process_id: Option<u32>,
    pub(super) ns: i64,
}

/// CPU time by process, on the CPUs that a waiting thread may use or on all. The stretches are apart,
/// and begin and end where waits do.
pub(super) fn by_process(
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
            && waiter.is_none_or(|waiter| waiter.may_use(cpu))
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
    let ranges: Vec<String> = stretches
        .iter()
        .map(|range| format!("({}, {})", range.start, range.end))
        .collect();
    let query = format!(
        "SELECT process(process_row) AS process, sum(least(end_ns, to_ns) - greatest(start_ns, \
         from_ns)) AS cpu_ns FROM cpu_runs JOIN (VALUES {}) AS waits (from_ns, to_ns) ON end_ns > \
         from_ns AND start_ns < to_ns WHERE end_ns > start_ns AND thread_id <> 0{} GROUP BY \
         process_row, process_id ORDER BY cpu_ns DESC, process_row, process_id LIMIT {SHOWN}",
        ranges.join(", "),
        waiter.map_or_else(String::new, Waiter::and_on_its_cpus)
    );
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("cpu_ns", "CPU time", Unit::Duration),
    ];
    let mut evidence = Evidence::new("Who ran instead, by process", query, &columns);
    let most = sums.first().map(|((row, id), ns)| Most {
        process_row: *row,
        process_id: *id,
        ns: *ns,
    });
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
        own_ns,
    }
}

/// How long CPUs that the thread may not use were idle: the evidence, and the longest.
pub(super) fn idle_beyond(
    case: &Case<'_>,
    waiter: &Waiter,
    holders: &Holders,
) -> Option<(Evidence, i64)> {
    let beyond = case.survey.cpus.iter().map(|cpu| cpu.cpu);
    let mut idle: Vec<(u16, i64)> = beyond
        .filter(|cpu| !waiter.may_use(*cpu))
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
    let Range { start, end } = &waiter.range;
    let not_its = waiter.and_on_its_cpus().replace(" IN ", " NOT IN ");
    let query = format!(
        "SELECT cpu, {} FROM cpu_runs WHERE end_ns > {start} AND start_ns < {end} AND end_ns > \
         start_ns AND thread_id = 0{not_its} GROUP BY cpu ORDER BY cpu_ns DESC, cpu LIMIT {SHOWN}",
        sum_within(&waiter.range)
    );
    let columns = [
        Column::new("cpu", "CPU", Unit::None),
        Column::new("cpu_ns", "idle", Unit::Duration),
    ];
    let title = "How long CPUs that it may not use were idle";
    let mut evidence = Evidence::new(title, query, &columns);
    for (cpu, ns) in idle.iter().take(SHOWN) {
        evidence = evidence.row([Some((*cpu).into()), Some((*ns).into())]);
    }
    idle.first().map(|(_, longest)| (evidence, *longest))
}

/// The time of runs within a range, summed up in SQL.
fn sum_within(range: &Range<i64>) -> String {
    let Range { start, end } = range;
    format!("sum(least(end_ns, {end}) - greatest(start_ns, {start})) AS cpu_ns")
}

/// Runs of threads during a wait on the CPUs that may be used, in SQL.
fn ran_within(waiter: &Waiter) -> String {
    let Range { start, end } = &waiter.range;
    let on_its_cpus = waiter.and_on_its_cpus();
    format!(
        "end_ns > {start} AND start_ns < {end} AND end_ns > start_ns AND thread_id <> 0{on_its_cpus}"
    )
}
