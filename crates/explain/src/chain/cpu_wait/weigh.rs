//! Examines the possible causes of one wait.

use std::ops::Range;

use selection::{Condition, Expression, Order, Selection};
use tables::{DamagesView, ProcessFreezesView, StoreError, Table};

use super::lost_events;
use crate::chain::holder_times::{self, Holder, HolderTimes, Most, WhoRan};
use crate::chain::holders::Holders;
use crate::chain::waiter::Waiter;
use crate::survey::{Effect, cpu_names};
use crate::thresholds::{
    BLAME_PERCENT, CAUSE_PERCENT, NOTICED_NS, PARTIAL_CAUSE_PERCENT, is_share,
};
use crate::{About, Case, Evidence, Judgement, Unit, Verdict, duration, percent};

/// Cause of a wait. Several causes may each explain half of the wait or more. The first of them in this list is then
/// reported as the cause, because the others follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    LostEvents,
    Suspended,
    Frozen,
    PagedOut,
    Interrupts,
    Affinity,
    /// Linux: the thread waited in the queue of one CPU while another CPU was idle.
    Queue,
    Rank,
    HigherPriority,
    EqualPriority,
    Dispatcher,
}

impl Cause {
    /// Returns the name of the cause in lists.
    pub(crate) fn name(self, case: &Case<'_>) -> &'static str {
        let about = match self {
            Cause::LostEvents => &LOST,
            Cause::Suspended => &SUSPENDED,
            Cause::Frozen => &FROZEN,
            Cause::PagedOut => &PAGED_OUT,
            Cause::Interrupts => about_interrupts(case),
            Cause::Affinity => &AFFINITY,
            Cause::Queue => &QUEUE,
            Cause::Rank => &RANK,
            Cause::HigherPriority => &PRIORITY,
            Cause::EqualPriority => &QUANTUM,
            Cause::Dispatcher if case.is_linux() => &LINUX_SCHEDULER,
            Cause::Dispatcher => &DISPATCHER,
        };
        about.name
    }
}

const fn about(id: &'static str, name: &'static str, question: &'static str) -> About {
    About {
        id,
        name,
        question,
        tables: &[],
        sources: &[],
    }
}

pub(crate) static PRIORITY: About = about(
    "higher-priority",
    "higher priority",
    "Were the CPUs busy with threads of higher priority?",
);
pub(crate) static QUANTUM: About = about(
    "equal-priority",
    "equal priority",
    "Did threads of the same priority take turns on the CPUs?",
);
pub(crate) static RANK: About = about(
    "better-rank",
    "rank",
    "Were the CPUs busy with threads of better rank? Rank comes before priority.",
);
pub(crate) static DISPATCHER: About = about(
    "dispatcher",
    "threads of lower precedence",
    "Did threads of lower precedence (rank, then priority) keep a CPU while this thread was ready?",
);
pub(crate) static INTERRUPTS: About = about(
    "interrupted-cpus",
    "DPCs and ISRs",
    "Were the CPUs busy with DPCs and ISRs?",
);
/// Question of [`DISPATCHER`] about recordings of Linux.
static LINUX_SCHEDULER: About = about(
    "dispatcher",
    "threads of lower priority",
    "Did threads of lower priority run while this thread was ready?",
);
/// Question of [`INTERRUPTS`] about recordings of Linux.
static LINUX_INTERRUPTS: About = about(
    "interrupted-cpus",
    "softirqs and interrupts",
    "Were the CPUs busy with softirqs and interrupts?",
);
pub(crate) static AFFINITY: About = about(
    "affinity",
    "affinity",
    "Was the thread limited to some of the CPUs?",
);
/// Question about waits in the queue of one CPU. It applies only to recordings of Linux.
static QUEUE: About = about(
    "cpu-queue",
    "queue of one CPU",
    "Did it wait in the queue of one CPU while another CPU was idle?",
);
pub(crate) static PAGED_OUT: About = about(
    "stack-paged-out",
    "paging",
    "Was its kernel stack paged out, or its process swapped out?",
);
pub(crate) static FROZEN: About = about("process-frozen", "freezing", "Was its process frozen?");
pub(crate) static SUSPENDED: About = about(
    "machine-suspended",
    "suspension",
    "Was the machine suspended?",
);
pub(crate) static LOST: About = about(
    "lost-events",
    "lost events",
    "Are events missing or clocks wrong, so that this wait is doubtful?",
);

/// Facts about the trace that the examination of every wait needs.
pub(crate) struct Facts {
    freezes: Vec<Freeze>,
    pub(crate) damage: Vec<DamageRow>,
    has_interrupts: bool,
    /// Maximum difference between two clocks, in nanoseconds; 0 if all clocks agree.
    clocks_apart_ns: i64,
}

struct Freeze {
    range: Range<i64>,
    process_id: u32,
}

/// Row of the table `damage`.
pub(crate) struct DamageRow {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: Option<i64>,
    pub(crate) kind: Option<String>,
    pub(crate) count: Option<u64>,
    pub(crate) cpu: Option<u16>,
}

impl Facts {
    pub(crate) fn read(case: &Case<'_>) -> Result<Facts, StoreError> {
        let mut freezes = Vec::new();
        let table = case.table(Table::ProcessFreezes)?;
        let columns = ["start_ns", "end_ns", "process_id"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = ProcessFreezesView::new(&batch)?;
            freezes.extend((0..view.len()).map(|row| Freeze {
                range: view.start_ns[row]..view.end_ns[row],
                process_id: view.process_id[row],
            }));
        }
        let mut damage = Vec::new();
        let table = case.table(Table::Damages)?;
        let columns = ["start_ns", "end_ns", "kind", "count", "cpu"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            damage.extend((0..view.len()).map(|row| DamageRow {
                start_ns: view.start_ns[row],
                end_ns: view.end_ns.get(row),
                kind: view.kind.get(row).map(str::to_owned),
                count: view.count.get(row),
                cpu: view.cpu.get(row),
            }));
        }
        Ok(Facts {
            freezes,
            damage,
            has_interrupts: case.has(Table::Interrupts)?,
            clocks_apart_ns: case.survey.clocks_apart_ns(),
        })
    }
}

impl DamageRow {
    pub(crate) fn is_loss(&self) -> bool {
        let kind = self.kind.as_deref();
        kind.is_some_and(|kind| Effect::from_kind(kind).lacks_events())
    }

    pub(crate) fn may_lie_in(&self, range: &Range<i64>) -> bool {
        self.start_ns < range.end && self.end_ns.is_none_or(|ns| ns > range.start)
    }
}

impl Facts {
    /// Returns true if waits may be wrong because events are lost or clocks disagree.
    pub(crate) fn waits_may_be_none(&self) -> bool {
        self.clocks_disagree() || self.lacks_events()
    }

    /// Returns true if events are lost or damaged.
    pub(crate) fn lacks_events(&self) -> bool {
        self.damage.iter().any(DamageRow::is_loss)
    }

    pub(crate) fn clocks_disagree(&self) -> bool {
        self.clocks_apart_ns > 0
    }

    /// Returns true if the event that readied the thread may belong to the run before the wait. This is
    /// possible if the time from the end of that run to the event is at most the difference between the
    /// clocks.
    pub(crate) fn may_be_of_run_before(&self, waiter: &Waiter) -> bool {
        let wait = waiter.wait.as_ref();
        let readied = wait.and_then(|wait| wait.readied_ns.zip(wait.previous_out_ns));
        self.clocks_disagree()
            && readied.is_some_and(|(readied_ns, out_ns)| {
                readied_ns.saturating_sub(out_ns) <= self.clocks_apart_ns
            })
    }

    /// Returns true if a wait is probably wrong. The CPUs must have been mostly idle, although the thread was not
    /// paged out. In addition, at least one of three conditions must hold: events may be lost during the wait, clocks
    /// disagree, or only one end of the wait is recorded.
    fn may_have_lost(&self, waiter: &Waiter, times: &HolderTimes) -> bool {
        waiter.is_paged_out != Some(true)
            && is_share(times.by(Holder::Idle), times.all_ns, CAUSE_PERCENT)
            && (!waiter.is_whole()
                || self.clocks_disagree()
                || waiter.certain.is_none()
                    && (self.damage.iter()).any(|d| d.is_loss() && d.may_lie_in(&waiter.range)))
    }
}

/// Verdicts about a wait, and facts for its description.
pub(crate) struct WaitVerdicts {
    pub(crate) verdicts: Vec<Verdict>,
    /// Cause of the wait, if a cause explains half of the wait or more.
    pub(crate) cause: Option<Cause>,
    /// Part of the wait that does not count as a delay, because the machine was suspended or the
    /// wait may be wrong, in nanoseconds.
    pub(crate) not_delay_ns: i64,
    /// Part of the wait during which the machine was suspended, in nanoseconds.
    pub(crate) asleep_ns: i64,
    /// Process with most CPU time during the wait.
    pub(crate) most: Option<Most>,
    /// Process with second most CPU time during the wait. It is set only if this time is a large share.
    pub(crate) second: Option<Most>,
    /// Number of the thread's ideal processor, and the time of DPCs and service routines on this processor in
    /// nanoseconds. It is set if DPCs and service routines used most of the processor's time.
    pub(crate) locked_ideal: Option<(u16, i64)>,
    pub(crate) idle_beyond_ns: Option<i64>,
    /// True if threads of the same process took turns with this thread. In this case, the program of this
    /// thread continued to run.
    pub(crate) is_among_its_own: bool,
    /// True if the CPUs were idle for half of the wait or more. No event explains such a wait, because a
    /// ready thread takes an idle CPU at once.
    pub(crate) is_idle_unexplained: bool,
    /// True if the trace records DPCs and service routines. If they are not recorded, a CPU that runs them
    /// looks idle.
    pub(crate) has_interrupts: bool,
    /// CPUs for which the thread waited, if samples show that DPCs and service routines locked them and no event shows
    /// it. Then the processes whose threads were interrupted did not use the CPU time.
    pub(crate) sampled_locks: Vec<u16>,
}

/// Returns the CPUs for which the thread waited if samples show that all of them were locked for most of the wait.
fn sampled_locks(case: &Case<'_>, waiter: &Waiter) -> Vec<u16> {
    let its_cpus = match (waiter.its_cpus(), waiter.ideal_processor) {
        (Some(cpus), _) => cpus.to_vec(),
        (None, Some(ideal)) if waiter.waited_for(u16::from(ideal)) => vec![u16::from(ideal)],
        (None, _) => Vec::new(),
    };
    let interrupts = &case.survey.interrupts;
    let are_locked = !its_cpus.is_empty()
        && (its_cpus.iter()).all(|cpu| interrupts.is_locked_by_samples(*cpu, &waiter.range));
    if are_locked { its_cpus } else { Vec::new() }
}

/// Examines all causes of a wait.
pub(crate) fn weigh(
    case: &Case<'_>,
    facts: &Facts,
    waiter: &Waiter,
    times: &HolderTimes,
    holders: &Holders,
) -> WaitVerdicts {
    let asleep_ns = times.part_of_wait(times.by(Holder::Suspended));
    let awake_ns = waiter.ready_ns() - asleep_ns;
    let scales = Scales {
        ready_ns: waiter.ready_ns(),
        // Suspension is no delay, so causes are compared with the rest of the wait. If the rest is shorter than
        // `NOTICED_NS`, causes are compared with the whole wait.
        lost_ns: match awake_ns {
            NOTICED_NS.. => awake_ns,
            _ => waiter.ready_ns(),
        },
        times,
    };
    let stretch = [waiter.range.clone()];
    let WhoRan {
        most,
        second,
        own_ns,
        ..
    } = holder_times::by_process(case, Some(waiter), &stretch, holders);
    let is_large = |process: &Most| is_share(process.ns, times.awake_ns(), BLAME_PERCENT);
    let ideal = AtIdeal::new(case, waiter, holders);
    let mut weighed = users(case, facts, waiter, times, &scales, &ideal);
    let (affinity, idle_beyond_ns) = affinity(case, waiter, holders, &scales);
    weighed.push((Cause::Affinity, affinity));
    if case.is_linux() {
        weighed.push((Cause::Queue, queue(case, waiter, holders, &scales)));
    } else {
        weighed.push((Cause::PagedOut, paged_out(case, waiter, &scales)));
        weighed.push((Cause::Frozen, frozen(case, facts, waiter, &scales)));
    }
    weighed.push((Cause::Suspended, suspended(case, waiter, &scales)));
    let is_doubtful = waiter.ran_unseen
        || !times.is_recorded()
        || facts.may_be_of_run_before(waiter)
        || facts.may_have_lost(waiter, times);
    weighed.push((
        Cause::LostEvents,
        lost_events::judge(facts, waiter, is_doubtful, &scales),
    ));

    let explain_half = weighed.iter().filter(|(_, verdict)| {
        let explains = verdict.explains_ns.unwrap_or(0);
        verdict.judgement == Judgement::For && is_share(explains, scales.lost_ns, CAUSE_PERCENT)
    });
    let causes = explain_half.map(|(cause, _)| *cause);
    let causes: Vec<Cause> = causes
        .filter(|cause| *cause != Cause::Suspended || awake_ns < NOTICED_NS)
        .collect();
    let cause = causes.iter().copied().min();
    let not_delay_ns = if is_doubtful {
        scales.ready_ns
    } else {
        asleep_ns
    };
    let sampled_locks = sampled_locks(case, waiter);
    let is_known = |_: &Most| sampled_locks.is_empty();
    WaitVerdicts {
        verdicts: weighed.into_iter().map(|(_, verdict)| verdict).collect(),
        cause,
        not_delay_ns,
        asleep_ns,
        most: most.filter(is_known),
        second: second.filter(is_known).filter(is_large),
        locked_ideal: ideal
            .filter(AtIdeal::is_locked)
            .map(|ideal| (ideal.cpu, ideal.interrupts_ns())),
        idle_beyond_ns,
        is_among_its_own: causes.contains(&Cause::EqualPriority)
            && is_share(own_ns, times.awake_ns(), CAUSE_PERCENT),
        is_idle_unexplained: cause.is_none()
            && is_share(times.by(Holder::Idle), times.awake_ns(), CAUSE_PERCENT),
        has_interrupts: facts.has_interrupts,
        sampled_locks,
    }
}

/// Examines the users of CPU time: threads, DPCs and service routines.
fn users(
    case: &Case<'_>,
    facts: &Facts,
    waiter: &Waiter,
    times: &HolderTimes,
    scales: &Scales<'_>,
    ideal: &Option<AtIdeal>,
) -> Vec<(Cause, Verdict)> {
    let mut weighed: Vec<(Cause, Verdict)> = Vec::new();
    let is_linux = case.is_linux();

    let its_time = &*waiter.time_in_words();
    let awake_ns = times.awake_ns();
    let had = |who: &str, by: &[Holder]| {
        let ns: i64 = by.iter().map(|by| times.by(*by)).sum();
        format!("{who} used {} of {its_time}.", percent(ns, awake_ns))
    };
    weighed.push((Cause::HigherPriority, priority(waiter, scales, its_time)));
    weighed.push((
        Cause::EqualPriority,
        if scales.lacks_priority() {
            not_recorded(&QUANTUM, UNKNOWN_PRIORITY)
        } else {
            let who = if is_linux {
                "Threads of the same priority"
            } else {
                "Threads of the same rank and priority"
            };
            scales.cpu_time(
                &QUANTUM,
                &[Holder::EqualPriority],
                had(who, &[Holder::EqualPriority]),
            )
        },
    ));
    if !is_linux {
        weighed.push((Cause::Rank, rank(case, waiter, times, scales, its_time)));
    }
    weighed.push((Cause::Dispatcher, dispatcher(case, scales, its_time)));
    let routines = wording::capitalized(case.terms().routines);
    weighed.push((
        Cause::Interrupts,
        if facts.has_interrupts {
            let had = had(&routines, &[Holder::Dpc, Holder::Isr]);
            interrupts(case, ideal, scales, had)
        } else {
            let because = format!("{routines} are not recorded.");
            not_recorded(about_interrupts(case), &because)
        },
    ));
    weighed
}

/// Values with which the shares of causes are computed.
pub(crate) struct Scales<'h> {
    pub(crate) ready_ns: i64,
    /// Part of the wait with which causes are compared, in nanoseconds.
    lost_ns: i64,
    times: &'h HolderTimes,
}

impl Scales<'_> {
    /// Returns true if threads of unknown priority ran for a notable part of the wait.
    fn lacks_priority(&self) -> bool {
        let unknown_ns = self.times.by(Holder::Unknown);
        unknown_ns > 0 && is_share(unknown_ns, self.times.awake_ns(), PARTIAL_CAUSE_PERCENT)
    }

    /// Returns the verdict on a cause that used CPU time.
    fn cpu_time(&self, about: &About, by: &[Holder], because: String) -> Verdict {
        let ns: i64 = by.iter().map(|by| self.times.by(*by)).sum();
        self.explains(about, self.times.part_of_wait(ns), because)
    }

    /// Returns the verdict on a cause that explains a part of the wait. `because` may begin with a small letter.
    pub(crate) fn explains(&self, about: &About, explains_ns: i64, because: String) -> Verdict {
        let explains = |percent| self.lost_ns > 0 && is_share(explains_ns, self.lost_ns, percent);
        let (judgement, because) = if explains(CAUSE_PERCENT) {
            (Judgement::For, wording::capitalized(&because))
        } else if explains(PARTIAL_CAUSE_PERCENT) {
            (Judgement::For, format!("In part: {because}"))
        } else {
            (Judgement::Against, wording::capitalized(&because))
        };
        let mut verdict = Verdict::new(about, judgement, because);
        verdict.explains_ns = Some(explains_ns);
        verdict
    }
}

/// Reason for the answer “not recorded” to questions about priorities.
const UNKNOWN_PRIORITY: &str = "The priority of the thread during the wait is not recorded.";

/// Returns the verdict on threads of higher priority. If the priority of the waiting thread is
/// unknown but Windows raised it because of starvation, the verdict is yes: Windows raises only
/// threads that were ready for about four seconds.
fn priority(waiter: &Waiter, scales: &Scales<'_>, its_time: &str) -> Verdict {
    let times = scales.times;
    let share = |by: Holder| percent(times.by(by), times.awake_ns());
    if !scales.lacks_priority() {
        let higher = share(Holder::Priority);
        let because = format!("Threads of higher priority used {higher} of {its_time}.");
        return scales.cpu_time(&PRIORITY, &[Holder::Priority], because);
    }
    if !waiter.is_starved {
        return not_recorded(&PRIORITY, UNKNOWN_PRIORITY);
    }
    let because = format!(
        "Its priority during the wait is not recorded, but Windows raised it to 15 at the end, as \
         it does with starved threads: threads of higher or equal priority used {} of {its_time}.",
        share(Holder::Unknown)
    );
    scales.cpu_time(&PRIORITY, &[Holder::Priority, Holder::Unknown], because)
}

fn not_recorded(about: &About, because: &str) -> Verdict {
    Verdict::new(about, Judgement::NotRecorded, because)
}

/// CPU time on the ideal processor of a thread. If a thread finds no idle CPU, it waits in the queue of its
/// ideal processor.
struct AtIdeal {
    cpu: u16,
    /// The wait, as if the thread could run only on its ideal processor.
    waiter: Waiter,
    times: HolderTimes,
}

impl AtIdeal {
    fn new(case: &Case<'_>, waiter: &Waiter, holders: &Holders) -> Option<AtIdeal> {
        let cpus = &case.survey.cpus;
        // The trace has only the low eight bits of the processor's number. With more than 256 CPUs, the processor is
        // unknown.
        let cpu = u16::from(waiter.ideal_processor?);
        let is_known = cpus.len() <= 256 && cpus.iter().any(|known| known.cpu == cpu);
        if !is_known || !waiter.waited_for(cpu) {
            return None;
        }
        let waiter = Waiter {
            limited_to: Some(vec![cpu]),
            ..waiter.clone()
        };
        let times = HolderTimes::new(case, &waiter, holders);
        Some(AtIdeal { cpu, waiter, times })
    }

    fn interrupts_ns(&self) -> i64 {
        self.times.by(Holder::Dpc) + self.times.by(Holder::Isr)
    }

    /// Returns true if DPCs and service routines used most of the ideal processor's time.
    fn is_locked(&self) -> bool {
        let all_ns = self.times.all_ns;
        all_ns > 0 && is_share(self.interrupts_ns(), all_ns, CAUSE_PERCENT)
    }
}

fn about_interrupts(case: &Case<'_>) -> &'static About {
    if case.is_linux() {
        &LINUX_INTERRUPTS
    } else {
        &INTERRUPTS
    }
}

/// Returns the verdict on DPCs and service routines. It covers all CPUs for which the thread waited. If the ideal
/// processor is locked, the verdict also covers this processor alone.
fn interrupts(
    case: &Case<'_>,
    ideal: &Option<AtIdeal>,
    scales: &Scales<'_>,
    had: String,
) -> Verdict {
    let by = [Holder::Dpc, Holder::Isr];
    let Some(ideal) = ideal.as_ref().filter(|ideal| ideal.is_locked()) else {
        return scales.cpu_time(about_interrupts(case), &by, had);
    };
    let because = format!(
        "{had} It waited in the queue of its ideal processor, CPU {}, where DPCs and ISRs used {} of \
         the time.",
        ideal.cpu,
        percent(ideal.interrupts_ns(), ideal.times.all_ns)
    );
    let of_all_ns = by.iter().map(|by| scales.times.by(*by)).sum();
    let explains_ns = (scales.times.part_of_wait(of_all_ns)).max(ideal.interrupts_ns());
    let mut verdict = scales.explains(&INTERRUPTS, explains_ns, because);
    let mut evidence = ideal
        .times
        .evidence(&ideal.waiter, &case.survey.suspend_gaps);
    evidence.title = format!(
        "Use of CPU {}, its ideal processor, during the wait",
        ideal.cpu
    )
    .into();
    verdict.evidence.push(evidence);
    verdict
}

fn rank(
    case: &Case<'_>,
    waiter: &Waiter,
    times: &HolderTimes,
    scales: &Scales<'_>,
    its_time: &str,
) -> Verdict {
    if case.survey.runs_with_rank == 0 {
        return not_recorded(
            &RANK,
            "The context switches in this trace do not contain ranks: only Windows 10 1709 and later \
             record them.",
        );
    }
    let Some(rank) = waiter.rank else {
        return not_recorded(&RANK, "The rank of the thread is unknown.");
    };
    if rank > 0 && scales.lacks_priority() {
        return not_recorded(&RANK, UNKNOWN_PRIORITY);
    }
    let because = match (rank, times.outranked_by) {
        (0, _) => "the thread's rank was 0, the best one.".to_owned(),
        (rank, None) => {
            format!("the thread's rank was {rank}, but no thread with a better rank ran.")
        }
        (rank, Some(by)) => format!(
            "the thread's rank was {rank}, and 0 is the best rank. Threads with a better rank used {} of \
             {its_time}, although their priorities ({} to {}) were the same or lower.",
            percent(times.by(Holder::Rank), times.awake_ns()),
            by.priorities.0,
            by.priorities.1
        ),
    };
    scales.cpu_time(&RANK, &[Holder::Rank], because)
}

/// Returns the verdict on threads of lower precedence that ran during the wait. The time of idle CPUs is left out. A
/// ready thread takes an idle CPU first, so another cause kept the thread from an idle CPU.
fn dispatcher(case: &Case<'_>, scales: &Scales<'_>, its_time: &str) -> Verdict {
    let (ns, awake_ns) = (scales.times.by(Holder::Dispatcher), scales.times.awake_ns());
    let had = format!(
        "Threads of lower precedence used {} of {its_time}",
        percent(ns, awake_ns),
    );
    if case.is_linux() {
        let because = format!("{had}.");
        return scales.cpu_time(&LINUX_SCHEDULER, &[Holder::Dispatcher], because);
    }
    // If ranks are not recorded, threads of lower priority may have had a better rank.
    if case.survey.runs_with_rank == 0 && is_share(ns, awake_ns, CAUSE_PERCENT) {
        let because = format!(
            "{had}, but perhaps their ranks were better: the context switches in this trace do \
            not contain ranks."
        );
        return not_recorded(&DISPATCHER, &because);
    }
    let mut verdict = scales.cpu_time(&DISPATCHER, &[Holder::Dispatcher], format!("{had}."));
    if verdict.judgement == Judgement::For {
        verdict.because = format!(
            "{:#} The dispatcher compares a ready thread only with the thread on its ideal processor.",
            verdict.because
        )
        .into();
    }
    verdict
}

fn affinity(
    case: &Case<'_>,
    waiter: &Waiter,
    holders: &Holders,
    scales: &Scales<'_>,
) -> (Verdict, Option<i64>) {
    let Some(cpus) = &waiter.limited_to else {
        let verdict = if waiter.affinity_is_known {
            scales.explains(&AFFINITY, 0, "It may run on every CPU.".to_owned())
        } else {
            not_recorded(&AFFINITY, "The CPUs on which it may run are not recorded.")
        };
        return (verdict, None);
    };
    let of_all = format!(
        "It may run on {} of {} CPUs: {}",
        cpus.len(),
        case.survey.cpus.len(),
        cpu_names(cpus)
    );
    let title = "Idle time of CPUs that it may not use";
    match holder_times::idle_beyond(case, waiter, (cpus, title), holders) {
        None => {
            let because = format!("{of_all}. The other CPUs were not idle.");
            (scales.explains(&AFFINITY, 0, because), None)
        }
        Some((evidence, longest)) => {
            let because = format!(
                "{of_all}. One of the other CPUs was idle for {}.",
                duration(longest)
            );
            let mut verdict = scales.explains(&AFFINITY, longest.min(scales.ready_ns), because);
            verdict.evidence.push(evidence);
            (verdict, Some(longest))
        }
    }
}

/// Returns the verdict on the queue in which a thread of Linux waited.
fn queue(case: &Case<'_>, waiter: &Waiter, holders: &Holders, scales: &Scales<'_>) -> Verdict {
    let Some(queue) = waiter.queue else {
        let because = match waiter.limited_to.as_deref() {
            Some([_]) => {
                return scales.explains(&QUEUE, 0, "It may run on one CPU only.".to_owned());
            }
            _ => {
                "It is unknown in which queue it waited: it did not run on the same CPU before and after."
            }
        };
        return not_recorded(&QUEUE, because);
    };
    let cpus = case.survey.cpus.iter().map(|cpu| cpu.cpu);
    let is_forbidden = |cpu: &u16| {
        let limited = waiter.limited_to.as_ref();
        limited.is_some_and(|cpus| !cpus.contains(cpu))
    };
    let not_free: Vec<u16> = cpus
        .filter(|cpu| *cpu == queue || is_forbidden(cpu))
        .collect();
    let title = "Idle time of other CPUs that it may use";
    let waited = format!("It waited in the queue of CPU {queue}");
    match holder_times::idle_beyond(case, waiter, (&not_free, title), holders) {
        None => {
            let because = format!("{waited}. The other CPUs that it may use were not idle.");
            scales.explains(&QUEUE, 0, because)
        }
        Some((evidence, longest)) => {
            let because = format!("{waited}. Another CPU was idle for {}.", duration(longest));
            let mut verdict = scales.explains(&QUEUE, longest.min(scales.ready_ns), because);
            verdict.evidence.push(evidence);
            verdict
        }
    }
}

fn paged_out(case: &Case<'_>, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    match waiter.is_paged_out {
        Some(true) => {
            // The trace does not record when the kernel stack was in memory again. The thread gets a CPU as soon as the
            // stack is in memory, so the whole wait counts as time for the stack.
            let times = scales.times;
            let suspended = times.part_of_wait(times.by(Holder::Suspended));
            let because =
                "When it was readied, its kernel stack or its process was not in memory and had to \
                 be read first."
                    .to_owned();
            scales.explains(&PAGED_OUT, scales.ready_ns - suspended, because)
        }
        Some(false) => {
            let because =
                "When it was readied, its kernel stack and its process were in memory.".to_owned();
            scales.explains(&PAGED_OUT, 0, because)
        }
        None if case.survey.has_ready_events => {
            let because = "It had lost its CPU without waiting, so nothing was paged out.";
            scales.explains(&PAGED_OUT, 0, because.to_owned())
        }
        None => not_recorded(&PAGED_OUT, "The trace has no ready-thread events."),
    }
}

fn frozen(case: &Case<'_>, facts: &Facts, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    if facts.freezes.is_empty() {
        let because = "There are no freeze events: either no process was frozen, or such events were \
            not recorded.";
        return not_recorded(&FROZEN, because);
    }
    let Range { start, end } = &waiter.range;
    let process = case.process(waiter.process_row, waiter.process_id);
    let Some(id) = waiter.process_id else {
        return not_recorded(&FROZEN, "The process of the thread is unknown.");
    };
    let within = format!("least(end_ns, {end}) - greatest(start_ns, {start})");
    let selection = Selection::new(Table::ProcessFreezes)
        .overlapping(std::slice::from_ref(&waiter.range))
        .filter(Condition::is("process_id", id))
        .order(&[Order::ascending("start_ns"), Order::ascending("end_ns")]);
    let mut evidence = Evidence::from_selection(format!("Freezes of {process}"), selection)
        .stored("start_ns", "frozen at", Unit::Moment)
        .stored("end_ns", "thawed at", Unit::Moment)
        .column(
            "within_ns",
            "within the wait",
            Unit::Duration,
            Expression::Formula(within),
        );
    let mut frozen_ns = 0;
    for freeze in &facts.freezes {
        let within = freeze.range.end.min(*end) - freeze.range.start.max(*start);
        if freeze.process_id == id && within > 0 {
            frozen_ns += within;
            let cells = [freeze.range.start, freeze.range.end, within];
            evidence = evidence.row(cells.map(|ns| Some(ns.into())));
        }
    }
    let because = match frozen_ns {
        0 => format!("{process} was not frozen during the wait."),
        ns => format!("{process} was frozen for {} of it.", duration(ns)),
    };
    let mut verdict = scales.explains(&FROZEN, frozen_ns.min(scales.ready_ns), because);
    verdict.evidence.push(evidence);
    verdict
}

fn suspended(case: &Case<'_>, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    let silences = &case.survey.suspend_gaps;
    let within = silences.within(&waiter.range);
    let silent_ns: i64 = within.map(|silence| silence.end - silence.start).sum();
    if silent_ns == 0 {
        let because = format!(
            "CPUs logged events throughout: there is no gap of {} or more.",
            duration(silences.at_least_ns)
        );
        return scales.explains(&SUSPENDED, 0, because);
    }
    let because = format!("No CPU logged an event for {}.", duration(silent_ns));
    let mut verdict = scales.explains(&SUSPENDED, silent_ns, because);
    verdict.evidence.push(silences.evidence(&waiter.range));
    verdict
}
