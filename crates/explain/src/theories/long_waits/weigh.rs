//! What may have kept a thread from running, weighed for one wait.

use std::ops::Range;

use tables::{DamagesView, ProcessFreezesView, StoreError, Table};

use super::held::{self, By, Held, Most, WhoRan};
use super::holders::Holders;
use super::waiter::Waiter;
use crate::{
    About, Case, Column, Evidence, Judgement, Unit, Value, Verdict, duration, grouped, percent,
};

/// What kept a thread from running. Where several explain half of a wait or more, the first of them
/// here is the cause: it is behind the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cause {
    LostEvents,
    Suspended,
    Frozen,
    PagedOut,
    Interrupts,
    Affinity,
    Rank,
    HigherPriority,
    EqualPriority,
    Dispatcher,
}

/// Of a wait that no theory explains half of.
const HALF: f64 = 0.5;
/// What explains less is not counted as a part.
const PART: f64 = 0.1;
/// No idle state of a processor takes longer to leave: firmware states microseconds to some hundred
/// of them.
pub(super) const LONGEST_WAKE_NS: i64 = 1_000_000;

const fn about(id: &'static str, question: &'static str) -> About {
    About {
        id,
        question,
        tables: &[],
        sources: &[],
    }
}

pub(super) static PRIORITY: About = about(
    "higher-priority",
    "Were the CPUs busy with threads of higher priority?",
);
pub(super) static QUANTUM: About = about(
    "equal-priority",
    "Were they busy with threads of the same priority, one quantum after the other?",
);
pub(super) static RANK: About = about(
    "better-rank",
    "Were they busy with threads of better rank, which goes before priority?",
);
pub(super) static DISPATCHER: About = about(
    "dispatcher",
    "Were there CPUs that it could have had, but the dispatcher does not compare it with what they \
     ran?",
);
pub(super) static INTERRUPTS: About = about(
    "interrupted-cpus",
    "Were the CPUs busy with DPCs and service routines?",
);
pub(super) static AFFINITY: About = about("affinity", "Might it run on some CPUs only?");
pub(super) static PAGED_OUT: About = about(
    "stack-paged-out",
    "Was its kernel stack paged out, or its process swapped out?",
);
pub(super) static FROZEN: About = about("process-frozen", "Was its process frozen?");
pub(super) static SUSPENDED: About = about("machine-suspended", "Was the machine suspended?");
pub(super) static LOST: About = about(
    "lost-events",
    "Are events missing or clocks wrong, so that the wait may be none?",
);

/// What else is read of the trace, once for all waits.
pub(super) struct Facts {
    freezes: Vec<Freeze>,
    damage: Vec<Damage>,
    has_interrupts: bool,
    /// How far apart two clocks may be, in nanoseconds; 0 if they agree.
    clocks_apart_ns: i64,
}

struct Freeze {
    range: Range<i64>,
    process_id: u32,
}

struct Damage {
    start_ns: i64,
    end_ns: Option<i64>,
    kind: Option<String>,
    count: Option<u64>,
    cpu: Option<u16>,
}

impl Facts {
    pub(super) fn read(case: &Case<'_>) -> Result<Facts, StoreError> {
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
            damage.extend((0..view.len()).map(|row| Damage {
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

impl Damage {
    fn is_loss(&self) -> bool {
        let kind = self.kind.as_deref();
        kind.is_some_and(|kind| LOSSES.contains(&kind))
    }

    fn may_lie_in(&self, range: &Range<i64>) -> bool {
        self.start_ns < range.end && self.end_ns.is_none_or(|ns| ns > range.start)
    }
}

/// Kinds of damage that are losses.
const LOSSES: [&str; 11] = [
    "events_lost",
    "buffers_lost",
    "buffer_marks_lost_events",
    "buffer_marks_lost_buffers",
    "loss_events",
    "missing_sequence_numbers",
    "truncated",
    "not_a_buffer",
    "decompress",
    "unknown_record",
    "record_too_large",
];

impl Facts {
    /// Whether any wait may be none: something is lost, or clocks disagree.
    pub(super) fn waits_may_be_none(&self) -> bool {
        self.clocks_disagree() || self.lacks_events()
    }

    /// Whether events are lost or broken.
    pub(super) fn lacks_events(&self) -> bool {
        self.damage.iter().any(Damage::is_loss)
    }

    fn clocks_disagree(&self) -> bool {
        self.clocks_apart_ns > 0
    }

    /// Whether what made the thread ready may have led to the run before the wait, had clocks agreed:
    /// it follows that run's end by no more than they are apart.
    fn may_be_of_run_before(&self, waiter: &Waiter) -> bool {
        let wait = waiter.wait.as_ref();
        let readied = wait.and_then(|wait| wait.readied_ns.zip(wait.previous_out_ns));
        self.clocks_disagree()
            && readied.is_some_and(|(readied_ns, out_ns)| {
                readied_ns.saturating_sub(out_ns) <= self.clocks_apart_ns
            })
    }

    /// Whether a wait is likely none: most CPUs that the thread could have had were idle, and events
    /// are lost, clocks disagree, or nothing but one event tells of a wait that is not over when the
    /// trace ends.
    fn may_have_lost(&self, waiter: &Waiter, held: &Held) -> bool {
        waiter.is_paged_out != Some(true)
            && held.by(By::Idle) as f64 >= HALF * held.all_ns as f64
            && (waiter.wait.is_none()
                || self.clocks_disagree()
                || waiter.certain.is_none()
                    && (self.damage.iter()).any(|d| d.is_loss() && d.may_lie_in(&waiter.range)))
    }
}

/// What each theory says of a wait.
pub(super) struct Weighed {
    pub(super) verdicts: Vec<Verdict>,
    /// The cause, if something explains half of it.
    pub(super) cause: Option<Cause>,
    /// How much of the wait nobody lost: the machine was suspended, or the wait may be none.
    pub(super) not_lost_ns: i64,
    /// The process that ran most meanwhile.
    pub(super) most: Option<Most>,
    /// Its ideal processor, if that had hardly anything but DPCs and service routines, and how long
    /// it had these.
    pub(super) locked_ideal: Option<(u16, i64)>,
    pub(super) idle_beyond_ns: Option<i64>,
    /// Threads of its own process took turns with it, each at its priority: its program went on.
    pub(super) is_among_its_own: bool,
    /// What would tell why it did not get CPUs that were idle is not recorded.
    pub(super) is_idle_unexplained: bool,
}

/// Weighs all theories for a wait.
pub(super) fn weigh(
    case: &Case<'_>,
    facts: &Facts,
    waiter: &Waiter,
    held: &Held,
    holders: &Holders,
) -> Weighed {
    let scales = Scales {
        ready_ns: waiter.ready_ns(),
        held,
    };
    let stretch = [waiter.range.clone()];
    let WhoRan { most, own_ns, .. } = held::by_process(case, Some(waiter), &stretch, holders);
    let mut weighed: Vec<(Cause, Verdict)> = Vec::new();

    let its_cpus = match &waiter.limited_to {
        None => "the CPUs",
        Some(_) => "the CPUs that it may use",
    };
    let had = |who: &str, by: &[By]| {
        let ns: i64 = by.iter().map(|by| held.by(*by)).sum();
        format!("{who} had {} of {its_cpus}.", percent(ns, held.all_ns))
    };
    weighed.push((
        Cause::HigherPriority,
        scales.cpu_time(
            &PRIORITY,
            &[By::Priority],
            had("Threads of higher priority", &[By::Priority]),
        ),
    ));
    weighed.push((
        Cause::EqualPriority,
        scales.cpu_time(
            &QUANTUM,
            &[By::EqualPriority],
            had(
                "Threads of the same rank and priority",
                &[By::EqualPriority],
            ),
        ),
    ));
    weighed.push((Cause::Rank, rank(case, waiter, held, &scales, its_cpus)));
    let is_paged_out = waiter.is_paged_out == Some(true);
    // A CPU is idle to the trace, too, if the thread may not use it, or if it served interrupts, and
    // neither is recorded.
    let is_idle_known =
        waiter.affinity_is_known && facts.has_interrupts || waiter.ready_ns() < LONGEST_WAKE_NS;
    // A thread whose stack is on its way cannot be given an idle CPU.
    let not_chosen: &[By] = match is_paged_out || !is_idle_known {
        true => &[By::Dispatcher],
        false => &[By::Dispatcher, By::Idle],
    };
    weighed.push((
        Cause::Dispatcher,
        dispatcher(case, held, not_chosen, &scales, its_cpus),
    ));
    let ideal = AtIdeal::of(case, waiter, holders);
    weighed.push((
        Cause::Interrupts,
        match facts.has_interrupts {
            true => {
                let had = had("DPCs and service routines", &[By::Dpc, By::Isr]);
                interrupts(case, &ideal, &scales, had)
            }
            false => not_recorded(&INTERRUPTS, "The trace has no DPCs and interrupts."),
        },
    ));
    let (affinity, idle_beyond_ns) = affinity(case, waiter, holders, &scales);
    weighed.push((Cause::Affinity, affinity));
    weighed.push((Cause::PagedOut, paged_out(case, waiter, &scales)));
    weighed.push((Cause::Frozen, frozen(case, facts, waiter, &scales)));
    weighed.push((Cause::Suspended, suspended(case, waiter, &scales)));
    let is_doubtful = waiter.ran_unseen
        || facts.may_be_of_run_before(waiter)
        || facts.may_have_lost(waiter, held);
    weighed.push((Cause::LostEvents, lost(facts, waiter, is_doubtful, &scales)));

    let explain_half = weighed.iter().filter(|(_, verdict)| {
        let explains = verdict.explains_ns.unwrap_or(0);
        verdict.judgement == Judgement::For && explains as f64 >= HALF * scales.ready_ns as f64
    });
    let causes: Vec<Cause> = explain_half.map(|(cause, _)| *cause).collect();
    let cause = causes.iter().copied().min();
    let not_lost_ns = match is_doubtful {
        true => scales.ready_ns,
        false => held.part_of_wait(held.by(By::Suspended)),
    };
    Weighed {
        verdicts: weighed.into_iter().map(|(_, verdict)| verdict).collect(),
        cause,
        not_lost_ns,
        most,
        locked_ideal: ideal
            .filter(|ideal| ideal.share() >= HALF)
            .map(|ideal| (ideal.cpu, ideal.interrupts_ns())),
        idle_beyond_ns,
        is_among_its_own: causes.contains(&Cause::EqualPriority)
            && own_ns as f64 >= HALF * held.all_ns as f64,
        is_idle_unexplained: !is_idle_known,
    }
}

/// What shares are taken of.
struct Scales<'h> {
    ready_ns: i64,
    held: &'h Held,
}

impl Scales<'_> {
    /// The verdict on something that had that CPU time.
    fn cpu_time(&self, about: &About, by: &[By], because: String) -> Verdict {
        let ns: i64 = by.iter().map(|by| self.held.by(*by)).sum();
        self.explains(about, self.held.part_of_wait(ns), because)
    }

    /// The verdict on something that explains so much of the wait.
    fn explains(&self, about: &About, explains_ns: i64, because: String) -> Verdict {
        let share = match self.ready_ns {
            0 => 0.0,
            ready => explains_ns as f64 / ready as f64,
        };
        let (judgement, because) = match share {
            HALF.. => (Judgement::For, because),
            PART.. => (Judgement::For, format!("In part: {because}")),
            _ => (Judgement::Against, because),
        };
        let mut verdict = Verdict::new(about, judgement, because);
        verdict.explains_ns = Some(explains_ns);
        verdict
    }
}

fn not_recorded(about: &About, because: &str) -> Verdict {
    Verdict::new(about, Judgement::NotRecorded, because)
}

/// What the ideal processor of a thread had meanwhile: a thread that finds no idle CPU waits in the
/// queue of that one.
struct AtIdeal {
    cpu: u16,
    /// The same wait as if the thread might run there only.
    waiter: Waiter,
    held: Held,
}

impl AtIdeal {
    fn of(case: &Case<'_>, waiter: &Waiter, holders: &Holders) -> Option<AtIdeal> {
        let cpus = &case.survey.cpus;
        // The trace has eight bits of its number.
        let cpu = u16::from(waiter.wait?.ideal_processor?);
        let is_known = cpus.len() <= 256 && cpus.iter().any(|known| known.cpu == cpu);
        if !is_known || !waiter.may_use(cpu) {
            return None;
        }
        let waiter = Waiter {
            limited_to: Some(vec![cpu]),
            ..waiter.clone()
        };
        let held = Held::of(case, &waiter, holders);
        Some(AtIdeal { cpu, waiter, held })
    }

    fn interrupts_ns(&self) -> i64 {
        self.held.by(By::Dpc) + self.held.by(By::Isr)
    }

    fn share(&self) -> f64 {
        match self.held.all_ns {
            0 => 0.0,
            all => self.interrupts_ns() as f64 / all as f64,
        }
    }
}

/// The verdict on DPCs and service routines: on all CPUs that the thread may use, or on its ideal
/// processor, if that had little else.
fn interrupts(
    case: &Case<'_>,
    ideal: &Option<AtIdeal>,
    scales: &Scales<'_>,
    had: String,
) -> Verdict {
    let by = [By::Dpc, By::Isr];
    let Some(ideal) = ideal.as_ref().filter(|ideal| ideal.share() >= HALF) else {
        return scales.cpu_time(&INTERRUPTS, &by, had);
    };
    let because = format!(
        "{had} Of CPU {}, its ideal processor, in whose queue it waited, they had {}.",
        ideal.cpu,
        percent(ideal.interrupts_ns(), ideal.held.all_ns)
    );
    let of_all_ns = by.iter().map(|by| scales.held.by(*by)).sum();
    let explains_ns = (scales.held.part_of_wait(of_all_ns)).max(ideal.interrupts_ns());
    let mut verdict = scales.explains(&INTERRUPTS, explains_ns, because);
    let mut evidence = ideal.held.evidence(&ideal.waiter, &case.survey.silences);
    evidence.title = format!("What had CPU {}, its ideal processor, meanwhile", ideal.cpu);
    verdict.evidence.push(evidence);
    verdict
}

fn rank(
    case: &Case<'_>,
    waiter: &Waiter,
    held: &Held,
    scales: &Scales<'_>,
    its_cpus: &str,
) -> Verdict {
    if case.survey.runs_with_rank == 0 {
        return not_recorded(&RANK, "No context switch carries a rank.");
    }
    let Some(rank) = waiter.rank else {
        return not_recorded(&RANK, "The rank of the thread is not known.");
    };
    let because = match (rank, held.outranked_by) {
        (0, _) => "Its rank was 0: none is better.".to_owned(),
        (rank, None) => format!("Its rank was {rank}, but no thread of better rank ran."),
        (rank, Some(by)) => format!(
            "Its rank was {rank}; threads of better rank and no higher priority ({} to {}) had {} \
             of {its_cpus}.",
            by.priorities.0,
            by.priorities.1,
            percent(held.by(By::Rank), held.all_ns)
        ),
    };
    scales.cpu_time(&RANK, &[By::Rank], because)
}

/// The verdict on CPUs that had threads which go behind it, or nothing to do.
fn dispatcher(
    case: &Case<'_>,
    held: &Held,
    not_chosen: &[By],
    scales: &Scales<'_>,
    its_cpus: &str,
) -> Verdict {
    let had = format!(
        "Threads that go behind it had {} of {its_cpus}, which were idle for {}",
        percent(held.by(By::Dispatcher), held.all_ns),
        percent(held.by(By::Idle), held.all_ns),
    );
    // Before ranks were recorded, threads of lower priority may have had the better one.
    if case.survey.runs_with_rank == 0
        && held.by(By::Dispatcher) as f64 >= HALF * held.all_ns as f64
    {
        let because = format!("{had}, if their ranks were no better: no context switch tells.");
        return not_recorded(&DISPATCHER, &because);
    }
    let because =
        format!("{had}; a ready thread is compared with what its ideal processor runs only.");
    scales.cpu_time(&DISPATCHER, not_chosen, because)
}

fn affinity(
    case: &Case<'_>,
    waiter: &Waiter,
    holders: &Holders,
    scales: &Scales<'_>,
) -> (Verdict, Option<i64>) {
    let Some(cpus) = &waiter.limited_to else {
        let verdict = match waiter.affinity_is_known {
            true => scales.explains(&AFFINITY, 0, "It may run on every CPU.".to_owned()),
            false => not_recorded(&AFFINITY, "Nothing tells on which CPUs it may run."),
        };
        return (verdict, None);
    };
    let list: Vec<String> = cpus.iter().map(u16::to_string).collect();
    let of_all = format!(
        "It may run on {} of {} CPUs: {}",
        cpus.len(),
        case.survey.cpus.len(),
        list.join(", ")
    );
    match held::idle_beyond(case, waiter, holders) {
        None => {
            let because = format!("{of_all}; the others had no time to spare.");
            (scales.explains(&AFFINITY, 0, because), None)
        }
        Some((evidence, longest)) => {
            let because = format!(
                "{of_all}; one of the others was idle for {}.",
                duration(longest)
            );
            let mut verdict = scales.explains(&AFFINITY, longest.min(scales.ready_ns), because);
            verdict.evidence.push(evidence);
            (verdict, Some(longest))
        }
    }
}

fn paged_out(case: &Case<'_>, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    match waiter.is_paged_out {
        Some(true) => {
            // Until when it was, the trace does not tell; a CPU takes it as soon as it can run.
            let suspended = scales.held.part_of_wait(scales.held.by(By::Suspended));
            let because =
                "The event that made it ready says that its kernel stack, or its process, \
                           was not in memory and had to be read first."
                    .to_owned();
            scales.explains(&PAGED_OUT, scales.ready_ns - suspended, because)
        }
        Some(false) => {
            let because = "The event that made it ready says that both were in memory.".to_owned();
            scales.explains(&PAGED_OUT, 0, because)
        }
        None if case.survey.has_ready_events => {
            let because = "It had lost its CPU without waiting: nothing could be paged out.";
            scales.explains(&PAGED_OUT, 0, because.to_owned())
        }
        None => not_recorded(&PAGED_OUT, "The trace has no events of threads made ready."),
    }
}

fn frozen(case: &Case<'_>, facts: &Facts, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    if facts.freezes.is_empty() {
        let because = "There are no events of processes being frozen: none was, or they were not \
                       recorded.";
        return not_recorded(&FROZEN, because);
    }
    let Range { start, end } = &waiter.range;
    let process = case.process(waiter.process_row, waiter.process_id);
    let Some(id) = waiter.process_id else {
        return not_recorded(&FROZEN, "The process of the thread is not known.");
    };
    let columns = [
        Column::new("start_ns", "frozen at", Unit::Moment),
        Column::new("end_ns", "thawed at", Unit::Moment),
        Column::new("within_ns", "within the wait", Unit::Duration),
    ];
    let query = format!(
        "SELECT start_ns, end_ns, least(end_ns, {end}) - greatest(start_ns, {start}) AS within_ns \
         FROM process_freezes WHERE process_id = {id} AND start_ns < {end} AND end_ns > {start} \
         ORDER BY start_ns, end_ns"
    );
    let mut evidence = Evidence::new(format!("When {process} was frozen"), query, &columns);
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
        0 => format!("{process} was not frozen then."),
        ns => format!("{process} was frozen for {} of it.", duration(ns)),
    };
    let mut verdict = scales.explains(&FROZEN, frozen_ns.min(scales.ready_ns), because);
    verdict.evidence.push(evidence);
    verdict
}

fn suspended(case: &Case<'_>, waiter: &Waiter, scales: &Scales<'_>) -> Verdict {
    let silences = &case.survey.silences;
    let within = silences.within(&waiter.range);
    let silent_ns: i64 = within.map(|silence| silence.end - silence.start).sum();
    if silent_ns == 0 {
        let because = format!(
            "CPUs logged something all the time: no silence of {} or more.",
            duration(silences.at_least_ns)
        );
        return scales.explains(&SUSPENDED, 0, because);
    }
    let because = format!("No CPU logged anything for {}.", duration(silent_ns));
    let mut verdict = scales.explains(&SUSPENDED, silent_ns, because);
    verdict.evidence.push(silences.evidence(&waiter.range));
    verdict
}

/// Rows shown of what is damaged.
const SHOWN: usize = 12;

fn lost(facts: &Facts, waiter: &Waiter, is_doubtful: bool, scales: &Scales<'_>) -> Verdict {
    let Range { start, end } = &waiter.range;
    let mut damage: Vec<&Damage> = facts
        .damage
        .iter()
        .filter(|damage| damage.may_lie_in(&waiter.range))
        .collect();
    damage.sort_by_key(|damage| {
        let (end_ns, cpu) = (
            damage.end_ns.unwrap_or(i64::MAX),
            damage.cpu.map_or(u32::MAX, u32::from),
        );
        (
            damage.start_ns,
            damage.kind.clone(),
            end_ns,
            cpu,
            damage.count.unwrap_or(u64::MAX),
        )
    });
    let faults = match damage.len() {
        0 if waiter.ran_unseen || is_doubtful => "No loss or fault is recorded there".to_owned(),
        0 => "The trace is whole there".to_owned(),
        1 => "One loss or fault may lie there".to_owned(),
        n => format!("{} losses or faults may lie there", grouped(n as u64)),
    };
    let (explains_ns, because) = match (waiter.ran_unseen, is_doubtful) {
        (true, _) => (
            scales.ready_ns,
            "switches contradict each other while it waited, or some CPU's are missing: it may have run \
             unseen",
        ),
        (false, true) if facts.may_be_of_run_before(waiter) => (
            scales.ready_ns,
            "clocks disagree by more than lay between its run before and what made it ready: that may \
             have led to that run",
        ),
        (false, true) if facts.clocks_disagree() => (
            scales.ready_ns,
            "CPUs were idle while it waited, and clocks disagree: it likely ran at once",
        ),
        (false, true) if waiter.wait.is_none() => (
            scales.ready_ns,
            "CPUs were idle while it waited: it likely ran, and the trace's end lacks that",
        ),
        (false, true) => (
            scales.ready_ns,
            "CPUs were idle while it waited: it likely ran unseen",
        ),
        (false, false) if waiter.certain.is_some() => (
            0,
            "from the last of them that shows on, switches and samples of all CPUs follow each other",
        ),
        (false, false) => (0, "no switches contradict each other while it waited"),
    };
    let and = match damage.is_empty() && is_doubtful {
        true => "but",
        false => "and",
    };
    let mut verdict = scales.explains(&LOST, explains_ns, format!("{faults}, {and} {because}."));
    if !damage.is_empty() {
        let query = format!(
            "SELECT kind, cpu, start_ns, end_ns, count FROM damage WHERE start_ns < {end} AND \
             (end_ns IS NULL OR end_ns > {start}) ORDER BY start_ns, kind, end_ns, cpu, count LIMIT \
             {SHOWN}"
        );
        let columns = [
            Column::new("kind", "what", Unit::None),
            Column::new("cpu", "CPU", Unit::None),
            Column::new("start_ns", "from", Unit::Moment),
            Column::new("end_ns", "to", Unit::Moment),
            Column::new("count", "how many", Unit::Count),
        ];
        let mut evidence = Evidence::new("What the trace lacks there", query, &columns);
        for damage in damage.iter().take(SHOWN) {
            evidence = evidence.row([
                damage.kind.as_deref().map(Value::from),
                damage.cpu.map(Value::from),
                Some(damage.start_ns.into()),
                damage.end_ns.map(Value::from),
                damage.count.map(Value::from),
            ]);
        }
        verdict.evidence.push(evidence);
    }
    verdict
}
