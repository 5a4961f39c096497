//! Threads that were ready without a CPU, and their priorities and affinities.

use std::ops::Range;
use std::slice;

use rustc_hash::FxHashMap;
use tables::{CpusView, PrioritiesView, StoreError, Table, ThreadsView};

use crate::thresholds::{STARVATION_NS, STARVED_NS};
use crate::{Case, Evidence, Wait};

/// Thread that was ready without a CPU, and its wait.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    /// Time range of the wait.
    pub(crate) range: Range<i64>,
    pub(crate) thread_id: u32,
    pub(crate) thread_row: Option<u32>,
    pub(crate) process_id: Option<u32>,
    pub(crate) process_row: Option<u32>,
    pub(crate) rank: Option<u8>,
    /// Priority of the thread during the wait. Each entry has a part of the time range and the priority in
    /// this part; `None` if the priority is unknown.
    pub(crate) priorities: Vec<(Range<i64>, Option<i8>)>,
    /// True if the thread was starved: Windows raised its priority at the end of the wait, because the thread
    /// had no CPU for long.
    pub(crate) is_starved: bool,
    /// CPU on which the thread ran after the wait or, if the wait has not ended, before the wait.
    pub(crate) cpu: Option<u16>,
    /// CPUs that the thread may use; `None` if it may use all CPUs.
    pub(crate) limited_to: Option<Vec<u16>>,
    /// CPU in whose queue the thread waited; `None` if it is unknown. Linux has a queue for each CPU. The queue of a
    /// fair thread is known in two cases: the thread ran on the same CPU before and after the wait; or it lost a CPU
    /// and did not run again. The queue of a real-time thread whose affinity is not recorded is known in the same
    /// cases. Always `None` on Windows, where a ready thread may take any of its CPUs.
    pub(crate) queue: Option<u16>,
    /// True if the trace records the thread's affinity.
    pub(crate) affinity_is_known: bool,
    /// True if the thread of Linux has the policy SCHED_IDLE: it gives way to all others, so its waits are intended.
    pub(crate) has_idle_policy: bool,
    /// True if the thread's kernel stack was paged out, or its process swapped out, when the thread
    /// was readied.
    pub(crate) is_paged_out: Option<bool>,
    pub(crate) ran_unseen: bool,
    /// Evidence that the thread cannot have run unseen since the start of `range`. It is set if `range` was
    /// shortened.
    pub(crate) certain: Option<Evidence>,
    /// Low eight bits of the number of the thread's ideal processor. Windows records them when a thread leaves its CPU.
    /// They are from the end of the run after the wait or, if the wait has not ended, from the end of the run before
    /// the wait.
    pub(crate) ideal_processor: Option<u8>,
    /// Row of `cpu_runs` that ended the wait; `None` if the thread still waits when the trace ends.
    pub(crate) wait: Option<Wait>,
    /// Number of clock ticks that the kernel counted before the wait ended. It is set if the thread was
    /// already ready when the recording began. In this case, `range` begins at the start of the recording.
    pub(crate) ticks_before: Option<u32>,
}

impl Waiter {
    pub(crate) fn new(wait: &Wait) -> Waiter {
        let paged_out = [wait.kernel_stack_not_resident, wait.process_out_of_memory];
        Waiter {
            range: wait.range(),
            thread_id: wait.thread_id,
            thread_row: wait.thread_row,
            process_id: wait.process_id,
            process_row: wait.process_row,
            rank: wait.rank,
            priorities: vec![(wait.range(), wait.priority)],
            is_starved: false,
            cpu: Some(wait.cpu),
            limited_to: None,
            queue: None,
            affinity_is_known: false,
            has_idle_policy: false,
            is_paged_out: paged_out.into_iter().flatten().reduce(|a, b| a || b),
            ran_unseen: wait.ran_unseen,
            certain: None,
            ideal_processor: wait.ideal_processor,
            wait: Some(*wait),
            ticks_before: None,
        }
    }

    /// Returns true if both ends of the wait are recorded.
    pub(crate) fn is_whole(&self) -> bool {
        self.wait.is_some() && self.ticks_before.is_none()
    }

    pub(crate) fn ready_ns(&self) -> i64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Returns the priority of the thread at the start of the wait.
    pub(crate) fn priority(&self) -> Option<i8> {
        self.priorities.first().and_then(|(_, priority)| *priority)
    }

    /// Sets the priority of the wait if no event records changes of the thread's priority. The thread usually waited
    /// with the priority that it has in the run after the wait. But if Windows raised the priority before the run, the
    /// thread waited with a lower priority.
    fn guess_priority(&mut self, base_priority: Option<u8>, is_linux: bool) {
        let Some(wait) = &self.wait else {
            return;
        };
        // Linux does not raise the priority of a thread that got no CPU for long.
        let may_be_starved = !is_linux && self.ready_ns() >= STARVATION_NS;
        let was_preempted = wait.readied_ns.is_none();
        let before = wait.previous_priority;
        let priority = if wait.priority == Some(STARVED) && may_be_starved {
            let base = base_priority.and_then(|base| i8::try_from(base).ok());
            // If the base priority of the thread is 15, the priority was not raised.
            let was_raised = base != Some(STARVED);
            let lower = base.or(before).filter(|p| !was_raised || *p < STARVED);
            self.is_starved = was_raised && (lower.is_some() || self.ready_ns() >= STARVED_NS);
            lower
        } else if was_preempted && before.is_some() && before != wait.priority {
            None
        } else {
            wait.priority
        };
        self.priorities = vec![(self.range.clone(), priority)];
    }

    /// Returns the CPUs for which the thread waited: the CPU in whose queue it was, or the CPUs that it may use.
    /// Returns `None` if it waited for any CPU.
    pub(crate) fn its_cpus(&self) -> Option<&[u16]> {
        let queue = self.queue.as_ref().map(slice::from_ref);
        queue.or(self.limited_to.as_deref())
    }

    /// Returns true if the thread waited for this CPU, perhaps among others.
    pub(crate) fn waited_for(&self, cpu: u16) -> bool {
        self.its_cpus().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Returns words for the CPUs for which the thread waited.
    pub(crate) fn cpus_in_words(&self) -> String {
        match (self.queue, &self.limited_to) {
            (Some(cpu), _) => format!("CPU {cpu}, in whose queue it waited"),
            (None, Some(_)) => "the CPUs allowed to the waiting thread".to_owned(),
            (None, None) => "the CPUs".to_owned(),
        }
    }

    /// Returns words for the time of the CPUs for which the thread waited.
    pub(crate) fn time_in_words(&self) -> String {
        match self.its_cpus() {
            Some(_) => format!("the time of {}", self.cpus_in_words()),
            None => "the CPU time".to_owned(),
        }
    }

    /// Returns an SQL condition for the CPUs for which the thread waited. It starts with `AND`, because
    /// it follows other conditions. It is empty if the thread waited for any CPU.
    pub(crate) fn and_on_its_cpus(&self) -> String {
        let list = |cpus: &[u16]| {
            let cpus: Vec<String> = cpus.iter().map(u16::to_string).collect();
            format!(" AND cpu IN ({})", cpus.join(", "))
        };
        self.its_cpus().map_or_else(String::new, list)
    }

    /// Sets the priorities during the wait and the CPUs that the thread may use.
    fn complete(
        &mut self,
        of_thread: &ThreadChanges,
        known: ThreadFacts,
        cpus: &Numbers,
        clocks_apart_ns: i64,
    ) {
        let range = self.range.clone();
        let mut rest = range.clone();
        let mut now = self.priority();
        let mut priorities = Vec::new();
        let within = of_thread.priorities.iter();
        for (time, old, new) in
            within.filter(|change| range.start < change.0 && change.0 < range.end)
        {
            priorities.push((rest.start..*time, Some(*old)));
            (rest.start, now) = (*time, Some(*new));
        }
        priorities.push((rest, now));
        priorities.retain(|(range, _)| !range.is_empty());
        // The priority may be raised at the end of the wait. In this case, the thread waited with the old
        // priority.
        let at_end = range.end..=range.end.saturating_add(clocks_apart_ns);
        let last = of_thread
            .priorities
            .iter()
            .find(|change| at_end.contains(&change.0));
        if let (Some((_, old, _)), Some(part)) = (last, priorities.last_mut()) {
            part.1 = Some(*old);
        }
        self.priorities = priorities;
        let mut affinity = known.affinity;
        for (time, mask) in &of_thread.affinities {
            if *time <= range.start {
                affinity = Some(*mask);
            }
        }
        self.affinity_is_known = affinity.is_some();
        self.limited_to = affinity.and_then(|mask| cpus.within(mask, self.cpu));
    }

    /// Sets the queue in which a thread of Linux waited.
    fn find_queue(&mut self) {
        // A fair thread waits in the queue of one CPU. The scheduler moves a ready real-time thread to any of its CPUs
        // that runs a thread of lower priority. So a real-time thread that came back to its CPU probably may not use
        // the others, unless its affinity says that it may.
        let is_fair = self.priority().is_some_and(|priority| priority <= 0);
        let has_queue = is_fair || self.priority().is_some() && !self.affinity_is_known;
        let queue = match &self.wait {
            Some(wait) => wait.previous_cpu.filter(|cpu| *cpu == wait.cpu),
            None => self.queue,
        };
        let is_only = |cpu: &u16| self.limited_to.as_deref() == Some(slice::from_ref(cpu));
        self.queue = queue.filter(|cpu| has_queue && !is_only(cpu));
    }
}

/// Looks up the priorities and affinities of waiting threads.
pub(crate) fn look_up(case: &Case<'_>, waiters: &mut [Waiter]) -> Result<(), StoreError> {
    let changes = Changes::read(case, waiters)?;
    let known = thread_facts(case, waiters)?;
    let cpus = Numbers::read(case)?;
    for waiter in waiters {
        let of_thread = waiter.thread_row.and_then(|row| changes.threads.get(&row));
        let known = waiter.thread_row.and_then(|row| known.get(&row).copied());
        let known = known.unwrap_or_default();
        waiter.has_idle_policy = known.has_idle_policy;
        if !changes.are_recorded || of_thread.is_none() {
            waiter.guess_priority(known.base_priority, case.is_linux());
        }
        if let Some(of_thread) = of_thread {
            waiter.complete(of_thread, known, &cpus, case.survey.clocks_apart_ns());
        }
        if case.is_linux() {
            waiter.find_queue();
        }
    }
    Ok(())
}

/// Changes of a thread's priority (time, old value, new value) and of its affinity (time, mask), in order of
/// time.
#[derive(Clone, Default)]
struct ThreadChanges {
    priorities: Vec<(i64, i8, i8)>,
    affinities: Vec<(i64, u64)>,
}

/// Priority to which Windows raises a ready thread that got no CPU for long. Windows looks for such
/// threads once a second and, as documented, raises the threads that waited for about four seconds.
const STARVED: i8 = 15;

/// Changes of priorities and affinities, by row of the table `threads`.
struct Changes {
    threads: FxHashMap<u32, ThreadChanges>,
    /// True if the trace records changes of priorities.
    are_recorded: bool,
}

impl Changes {
    fn read(case: &Case<'_>, waiters: &[Waiter]) -> Result<Changes, StoreError> {
        let rows = waiters.iter().filter_map(|waiter| waiter.thread_row);
        let mut changes = Changes {
            threads: rows.map(|row| (row, ThreadChanges::default())).collect(),
            are_recorded: false,
        };
        let table = case.table(Table::Priorities)?;
        let columns = [
            "time_ns",
            "kind",
            "thread_row",
            "old_priority",
            "new_priority",
            "affinity",
        ];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = PrioritiesView::new(&batch)?;
            for row in 0..view.len() {
                changes.are_recorded |= view.kind.get(row) == Some("priority");
                let thread = view.thread_row.get(row);
                let threads = &mut changes.threads;
                let Some(of_thread) = thread.and_then(|row| threads.get_mut(&row)) else {
                    continue;
                };
                let time = view.time_ns[row];
                match view.kind.get(row) {
                    Some("priority") => {
                        let change = view.old_priority.get(row).zip(view.new_priority.get(row));
                        let change = change.map(|(old, new)| (time, old, new));
                        of_thread.priorities.extend(change);
                    }
                    Some("affinity") => {
                        let change = view.affinity.get(row).map(|mask| (time, mask));
                        of_thread.affinities.extend(change);
                    }
                    _ => {}
                }
            }
        }
        Ok(changes)
    }
}

/// Facts about a thread from the table `threads`.
#[derive(Clone, Copy, Default)]
struct ThreadFacts {
    affinity: Option<u64>,
    base_priority: Option<u8>,
    has_idle_policy: bool,
}

/// Reads facts about waiting threads, by row of the table `threads`.
fn thread_facts(
    case: &Case<'_>,
    waiters: &[Waiter],
) -> Result<FxHashMap<u32, ThreadFacts>, StoreError> {
    let table = case.table(Table::Threads)?;
    let mut known = FxHashMap::default();
    let mut first = 0;
    let columns = ["first_seen_ns", "affinity", "base_priority", "policy"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = ThreadsView::new(&batch)?;
        for row in waiters.iter().filter_map(|waiter| waiter.thread_row) {
            let place = (row as usize).checked_sub(first);
            if let Some(place) = place.filter(|place| *place < view.len()) {
                let of_thread = ThreadFacts {
                    affinity: view.affinity.get(place),
                    base_priority: view.base_priority.get(place),
                    has_idle_policy: view.policy.get(place) == Some("idle"),
                };
                known.insert(row, of_thread);
            }
        }
        first += view.len();
    }
    Ok(known)
}

/// CPUs, each with its index, its processor group and its number in the group.
struct Numbers(Vec<(u16, u16, u8)>);

impl Numbers {
    fn read(case: &Case<'_>) -> Result<Numbers, StoreError> {
        let table = case.table(Table::Cpus)?;
        let mut numbers = Vec::new();
        let columns = ["first_seen_ns", "cpu", "processor_group", "number"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = CpusView::new(&batch)?;
            for row in 0..view.len() {
                let cpu = view.cpu[row];
                let group = view.processor_group.get(row).unwrap_or(0);
                let number = view.number.get(row).or(u8::try_from(cpu).ok());
                numbers.extend(number.map(|number| (cpu, group, number)));
            }
        }
        Ok(Numbers(numbers))
    }

    /// Returns the CPUs that an affinity mask selects. The mask applies to the processor group of `cpu`, on which the
    /// thread ran. Returns `None` if the mask contains all CPUs of the group or none of them.
    fn within(&self, mask: u64, cpu: Option<u16>) -> Option<Vec<u16>> {
        let ran_on = self.0.iter().find(|(other, ..)| Some(*other) == cpu);
        let group = ran_on.or(self.0.first())?.1;
        let of_group = self.0.iter().filter(|(_, other, _)| *other == group);
        let (within, beyond): (Vec<&(u16, u16, u8)>, Vec<_>) =
            of_group.partition(|(_, _, number)| *number < 64 && mask >> *number & 1 == 1);
        let cpus: Vec<u16> = within.iter().map(|(cpu, ..)| *cpu).collect();
        (!beyond.is_empty() && !cpus.is_empty()).then_some(cpus)
    }
}
