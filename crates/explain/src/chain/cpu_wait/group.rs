//! Groups of waits that are reported as one finding: the waits of a process, and the waits of other
//! processes with the same cause.

use std::cmp::Reverse;
use std::ops::Range;

use tables::StoreError;

use super::ExaminedWait;
use super::weigh::{Cause, Facts};
use crate::chain::holder_times::{self, Most, WhoRan};
use crate::chain::holders::Holders;
use crate::drivers::SYSTEM;
use crate::finding::Attention;
use crate::ranges::union;
use crate::survey::{NoticedWaits, WaitFilter};
use crate::thresholds::{ABANDONED_NS, DISRUPTIVE_NS, NOTICED_NS, SAME_DELAY_PERCENT, is_share};
use crate::{Case, Column, Evidence, Severity, Unit};

/// Maximum number of suspend gaps subtracted from waits.
const SLEEPS: usize = 64;
/// Maximum number of processes in a table of evidence.
const SHOWN: usize = 20;

/// Waits of a process, together with the waits of other processes that have the same cause.
pub(crate) struct Group<'c> {
    /// Waits of the process that were examined, the worst first.
    pub(crate) waits: Vec<ExaminedWait>,
    /// All noticeable waits of the process; `None` if some of them are uncertain.
    pub(crate) noticed: Option<&'c NoticedWaits>,
    /// Delay of the process, in nanoseconds.
    pub(crate) delay_ns: i64,
    pub(crate) severity: Severity,
    /// Attention that the user paid to the process during the worst wait.
    pub(crate) attention: Option<Attention>,
    /// Processes that ran during the waits of this group. All these waits have the same cause as the worst
    /// wait.
    pub(crate) who_ran: WhoRan,
    /// True if all waits of the process have the same cause, so that all of them were counted.
    pub(crate) has_one_cause: bool,
    /// Causes of other waits of the process that cost too little time for a separate group. Each entry has the cause
    /// and its cost in nanoseconds.
    pub(crate) smaller: Vec<(Option<Cause>, i64)>,
    /// Groups of other processes that have the same cause and are less important.
    pub(crate) others: Vec<Group<'c>>,
}

/// Groups the examined waits. The first element of `waits` must be the worst wait. In the result, the most
/// important group comes first.
pub(crate) fn grouped<'c>(
    case: &'c Case<'_>,
    facts: &Facts,
    waits: Vec<ExaminedWait>,
    holders: &Holders,
) -> Result<Vec<Group<'c>>, StoreError> {
    let user = case.noticed()?;
    let mut of_processes: Vec<Vec<ExaminedWait>> = Vec::new();
    for one in waits {
        // Incompletely recorded waits form separate groups, because their evidence has other rows.
        let same = |group: &&mut Vec<ExaminedWait>| {
            let (a, b) = (&group[0].waiter, &one.waiter);
            a.process_row == b.process_row
                && a.process_id == b.process_id
                && (a.wait.is_some(), a.is_whole()) == (b.wait.is_some(), b.is_whole())
        };
        match of_processes.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => of_processes.push(vec![one]),
        }
    }
    let mut groups: Vec<Group<'c>> = Vec::new();
    for waits in of_processes {
        let noticed = noticed(case, facts, &waits);
        let mut by_cause = by_cause(waits).into_iter();
        let Some((main, smaller)) = by_cause.next() else {
            continue;
        };
        // If all examined waits of the process have one cause, the delay includes all noticed waits of the process.
        // Otherwise, the delay includes only the examined waits with this cause.
        let has_one = by_cause.len() == 0 && smaller.is_empty();
        let main = Group::with_noticed(case, noticed, main, (has_one, smaller), holders);
        groups.push(main);
        groups.extend(by_cause.map(|(of_cause, smaller)| {
            Group::with_noticed(case, noticed, of_cause, (false, smaller), holders)
        }));
    }
    for group in &mut groups {
        let waiter = &group.worst().waiter;
        group.attention = user.attention(waiter.process_row, &waiter.range);
    }
    // Groups with the same cause are joined below, and the first of them represents the others. So the program
    // that the user looked at comes first. Otherwise, the most severe delay comes first, and a program with windows among
    // those with about the same delay.
    let longest_ns = groups.iter().map(|group| group.delay_ns).max().unwrap_or(0);
    groups.sort_by_key(|group| {
        let is_grave = group.severity > Severity::Information;
        let is_among_longest = is_share(group.delay_ns, longest_ns, SAME_DELAY_PERCENT);
        let kind = is_among_longest.then(|| user.kind(group.worst().waiter.process_row));
        Reverse((
            is_grave,
            group.attention == Some(Attention::Focus),
            group.severity,
            group.attention,
            kind,
            group.delay_ns,
        ))
    });
    let mut joined: Vec<Group<'c>> = Vec::new();
    for group in groups {
        match joined.iter_mut().find(|first| first.is_like(&group)) {
            Some(first) => {
                // A user does not notice the delays of other programs, unless they are very long.
                let is_unnoticed = first.attention == Some(Attention::Focus)
                    && group.attention != first.attention
                    && group.delay_ns < ABANDONED_NS;
                let severity = if is_unnoticed {
                    group.severity.min(Severity::Warning)
                } else {
                    group.severity
                };
                first.severity = first.severity.max(severity);
                first.others.push(group);
            }
            None => joined.push(group),
        }
    }
    joined.sort_by_key(|group| Reverse((group.severity, group.attention, group.delay_ns)));
    Ok(joined)
}

/// Waits of a process that have the same cause, and smaller causes without a separate group. Each smaller cause has its
/// cost in nanoseconds.
type WaitsOfCause = (Vec<ExaminedWait>, Vec<(Option<Cause>, i64)>);

/// Divides the waits of a process by their causes. The cause that cost most time comes first. Causes that
/// cost little time get no separate entry; they are listed in the first entry.
fn by_cause(waits: Vec<ExaminedWait>) -> Vec<WaitsOfCause> {
    let mut causes: Vec<(i64, Vec<ExaminedWait>)> = Vec::new();
    for one in waits {
        let same =
            |cause: &&mut (i64, Vec<ExaminedWait>)| cause.1[0].weighed.cause == one.weighed.cause;
        match causes.iter_mut().find(same) {
            Some(cause) => cause.1.push(one),
            None => causes.push((0, vec![one])),
        }
    }
    let causes = causes.into_iter().flat_map(|(_, waits)| by_culprit(waits));
    let mut causes: Vec<(i64, Vec<ExaminedWait>)> = causes.collect();
    // The sort is stable. If two causes cost the same time, the cause of the worst wait comes first.
    causes.sort_by_key(|(ns, _)| Reverse(*ns));
    let mut causes = causes.into_iter();
    let first = causes.next().map(|(_, first)| first);
    let (own, small): (Vec<_>, Vec<_>) = causes.partition(|(ns, _)| *ns >= DISRUPTIVE_NS);
    let smaller = small
        .into_iter()
        .map(|(ns, waits)| (waits[0].weighed.cause, ns));
    let first = first.map(|first| (first, smaller.collect()));
    let own = own.into_iter().map(|(_, of_cause)| (of_cause, Vec::new()));
    first.into_iter().chain(own).collect()
}

/// Divides waits with the same cause by the process that used most CPU time, if several processes each cost a disruptive
/// time. Each part has its cost in nanoseconds.
fn by_culprit(waits: Vec<ExaminedWait>) -> Vec<(i64, Vec<ExaminedWait>)> {
    let by_others = [Some(Cause::HigherPriority), Some(Cause::EqualPriority)];
    let who = |one: &ExaminedWait| {
        let most = one.weighed.most.as_ref();
        let most = most.filter(|_| by_others.contains(&one.weighed.cause));
        most.map(|most| (most.process_row, most.process_id))
    };
    let mut culprits: Vec<Vec<ExaminedWait>> = Vec::new();
    for one in waits {
        match culprits
            .iter_mut()
            .find(|culprit| who(&culprit[0]) == who(&one))
        {
            Some(culprit) => culprit.push(one),
            None => culprits.push(vec![one]),
        }
    }
    let mut parts: Vec<(i64, Vec<ExaminedWait>)> = Vec::new();
    for waits in culprits {
        let ns = lost_in_these(&waits);
        match parts.first_mut() {
            Some((_, first)) if ns < DISRUPTIVE_NS => first.extend(waits),
            _ => parts.push((ns, waits)),
        }
    }
    for (ns, waits) in &mut parts {
        waits.sort_by_key(|one| Reverse((one.delay_ns(), one.waiter.ready_ns())));
        *ns = lost_in_these(waits);
    }
    parts
}

/// Returns the sums of all noticeable waits of a process. Returns `None` if some of these waits may be wrong; then only
/// the examined waits count.
fn noticed<'c>(
    case: &'c Case<'_>,
    facts: &Facts,
    waits: &[ExaminedWait],
) -> Option<&'c NoticedWaits> {
    let waiter = &waits[0].waiter;
    let mut all = case.survey.noticed_waits.iter();
    let noticed = all.find(|noticed| {
        noticed.process_row == waiter.process_row
            && (waiter.process_row.is_some() || noticed.process_id == waiter.process_id)
    });
    noticed.filter(|noticed| waiter.is_whole() && noticed.waits > 0 && !facts.waits_may_be_none())
}

impl<'c> Group<'c> {
    /// Creates a group of the given waits of one process.
    pub(crate) fn new(case: &Case<'_>, waits: Vec<ExaminedWait>, holders: &Holders) -> Group<'c> {
        Group::with_noticed(case, None, waits, (true, Vec::new()), holders)
    }

    fn with_noticed(
        case: &Case<'_>,
        noticed: Option<&'c NoticedWaits>,
        waits: Vec<ExaminedWait>,
        (has_one_cause, smaller): (bool, Vec<(Option<Cause>, i64)>),
        holders: &Holders,
    ) -> Group<'c> {
        let worst = &waits[0];
        let delay_ns = match noticed.filter(|_| has_one_cause) {
            Some(noticed) => noticed.waited_ns() - slept_ns(case, noticed),
            None => lost_in_these(&waits).min(case.survey.span_ns()),
        };
        let is_urgent = worst
            .waiter
            .priority()
            .is_none_or(|p| p >= case.normal_priority());
        // If the threads of the waiting program used the CPUs in turn, the program continued to run. A thread that
        // gives way to all others is meant to wait.
        let is_intended = worst.weighed.is_among_its_own || worst.waiter.has_idle_policy;
        let severity = match delay_ns {
            _ if is_intended || worst.may_have_run(case) => Severity::Information,
            DISRUPTIVE_NS.. if is_urgent => Severity::Problem,
            DISRUPTIVE_NS.. => Severity::Warning,
            NOTICED_NS.. if is_urgent => Severity::Warning,
            _ => Severity::Information,
        };
        let alike = waits
            .iter()
            .filter(|one| one.waiter.its_cpus() == worst.waiter.its_cpus());
        let stretches = union(alike.map(|one| one.waiter.range.clone()).collect());
        let who_ran = holder_times::by_process(case, Some(&worst.waiter), &stretches, holders);
        Group {
            noticed,
            delay_ns,
            severity,
            attention: None,
            who_ran,
            has_one_cause,
            smaller,
            others: Vec::new(),
            waits,
        }
    }

    /// Returns the wait with the longest delay.
    pub(crate) fn worst(&self) -> &ExaminedWait {
        &self.waits[0]
    }

    /// Returns the time ranges of the examined waits, disjoint and in order.
    pub(crate) fn ranges(&self) -> Vec<Range<i64>> {
        let ranges = self.waits.iter().map(|one| one.waiter.range.clone());
        union(ranges.collect())
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.worst().weighed.cause
    }

    /// Returns true if two groups are reported as one finding. If threads of higher or equal priority caused the waits
    /// of both groups, the same other process must have used most CPU time. For causes of the whole machine, the waits
    /// must have the same cause and be completely recorded. Groups with a cause that concerns only one process, such as
    /// its affinity, are reported separately.
    fn is_like(&self, other: &Group<'_>) -> bool {
        let are_whole = [self, other].map(|group| group.worst().waiter.is_whole());
        let who = |group: &Group<'_>| {
            let most = group.most_of_others();
            most.map(|most| (most.process_row, most.process_id))
        };
        match [self.cause(), other.cause()] {
            [
                Some(Cause::HigherPriority | Cause::EqualPriority),
                Some(Cause::HigherPriority | Cause::EqualPriority),
            ] => who(self).is_some() && who(self) == who(other),
            [Some(one), Some(two)] => {
                one == two
                    && are_whole == [true, true]
                    && matches!(
                        one,
                        Cause::Interrupts | Cause::LostEvents | Cause::Suspended
                    )
            }
            _ => false,
        }
    }

    /// Returns the process with most CPU time during the waits, if it is not the waiting process. System counts also if
    /// its threads waited: it contains the threads of all drivers.
    pub(crate) fn most_of_others(&self) -> Option<&Most> {
        let waiter = &self.worst().waiter;
        let is_other = |most: &&Most| {
            most.process_id == Some(SYSTEM)
                || (most.process_row, most.process_id) != (waiter.process_row, waiter.process_id)
        };
        self.who_ran.most.as_ref().filter(is_other)
    }

    /// Returns evidence with the number and length of the waits of each process.
    pub(crate) fn evidence(&self, case: &Case<'_>) -> Option<Evidence> {
        let mut all: Vec<(&NoticedWaits, i64)> = std::iter::once(self)
            .chain(&self.others)
            .filter_map(|group| group.noticed)
            .map(|noticed| (noticed, slept_ns(case, noticed)))
            .collect();
        if all.is_empty() {
            return None;
        }
        all.sort_by_key(|(noticed, _)| {
            (
                Reverse(noticed.waited_ns()),
                noticed.process_row.map_or(u64::MAX, u64::from),
                noticed.process_id.map_or(u64::MAX, u64::from),
            )
        });
        // Waits of a process that have different causes are several groups, with the same sums.
        all.dedup_by_key(|(noticed, _)| (noticed.process_row, noticed.process_id));
        let columns = [
            Column::new("process", "process", Unit::None),
            Column::new("waits", "waits", Unit::Count),
            Column::new("longest_wait_ns", "longest", Unit::Duration),
            Column::new(
                "in_all_ns",
                "in total, simultaneous waits counted once",
                Unit::Duration,
            ),
            Column::new("slept_ns", "machine suspended", Unit::Duration),
        ];
        let title = format!("All waits of {} or longer", crate::duration(NOTICED_NS));
        let noticed: Vec<&NoticedWaits> = all.iter().map(|(noticed, _)| *noticed).collect();
        let mut evidence = Evidence::new(title, query(case, &noticed), &columns);
        for (noticed, slept_ns) in all.into_iter().take(SHOWN) {
            evidence = evidence.row([
                case.process_label(noticed.process_row).map(Into::into),
                Some(noticed.waits.into()),
                Some(noticed.longest_ns.into()),
                Some(noticed.waited_ns().into()),
                Some(slept_ns.into()),
            ]);
        }
        Some(evidence)
    }
}

/// Returns the suspend gaps during waits of the process.
fn sleeps<'n>(
    case: &'n Case<'_>,
    noticed: &'n NoticedWaits,
) -> impl Iterator<Item = &'n Range<i64>> {
    let silences = case.survey.suspend_gaps.ranges.iter();
    silences.take(SLEEPS).filter(|silence| {
        let mut ranges = noticed.ranges.iter();
        ranges.any(|range| range.start <= silence.start && silence.end <= range.end)
    })
}

fn slept_ns(case: &Case<'_>, noticed: &NoticedWaits) -> i64 {
    let lengths = sleeps(case, noticed).map(|sleep| sleep.end - sleep.start);
    lengths.sum()
}

/// Returns the SQL query of the sums. The query can subtract whole suspend gaps: no event is logged in a gap, so no
/// wait begins or ends in it.
fn query(case: &Case<'_>, all: &[&NoticedWaits]) -> String {
    let (complete, damage) = (&case.survey.complete, case.survey.damage);
    let wanted = WaitFilter::new(&case.names, &case.scope, complete, damage);
    let conditions: Vec<String> = all
        .iter()
        .map(|noticed| {
            let condition = wanted.condition(noticed.process_row, noticed.process_id);
            format!("({condition})")
        })
        .collect();
    let mut slept: Vec<&Range<i64>> = all.iter().flat_map(|n| sleeps(case, n)).collect();
    slept.sort_unstable_by_key(|sleep| sleep.start);
    slept.dedup();
    let slept: Vec<String> = slept
        .iter()
        .map(|Range { start, end }| {
            format!(
                "max(CASE WHEN from_ns <= {start} AND to_ns >= {end} THEN {} ELSE 0 END)",
                end - start
            )
        })
        .collect();
    let slept = if slept.is_empty() {
        "0".to_owned()
    } else {
        slept.join(" + ")
    };
    format!(
        "WITH waits AS (SELECT process_row, process_id, start_ns - ready_ns AS from_ns, start_ns AS \
         to_ns FROM cpu_runs WHERE ready_ns >= {NOTICED_NS} AND NOT ran_unseen AND ({})), in_order \
         AS (SELECT *, max(to_ns) OVER (PARTITION BY process_row, process_id ORDER BY from_ns, to_ns \
         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached_ns FROM waits) SELECT \
         process(process_row) AS process, count(*) AS waits, max(to_ns - from_ns) AS longest_wait_ns, \
         sum(greatest(0, to_ns - greatest(from_ns, coalesce(reached_ns, from_ns)))) AS in_all_ns, \
         {slept} AS slept_ns FROM in_order GROUP BY process_row, process_id ORDER BY in_all_ns DESC, \
         process_row, process_id LIMIT {SHOWN}",
        conditions.join(" OR ")
    )
}

/// Returns the time during which at least one of the waits caused a delay, in nanoseconds of wall-clock time.
fn lost_in_these(waits: &[ExaminedWait]) -> i64 {
    let mut lost: Vec<(Range<i64>, i64)> = waits
        .iter()
        .map(|one| (one.waiter.range.clone(), one.delay_ns()))
        .filter(|(_, lost)| *lost > 0)
        .collect();
    lost.sort_by_key(|(range, _)| range.start);
    let (mut reached, mut sum) = (i64::MIN, 0);
    for (range, delay_ns) in lost {
        let new = range.end.saturating_sub(range.start.max(reached)).max(0);
        sum += new.min(delay_ns);
        reached = reached.max(range.end);
    }
    sum
}
