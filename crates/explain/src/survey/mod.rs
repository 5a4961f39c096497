//! Sums that several theories share, computed in one pass over the runs of threads.

mod clock_offsets;
mod clock_skew;
mod complete;
mod damage;
mod doubtful;
mod interrupt_reader;
mod interrupt_use;
mod load;
mod longest_waits;
mod noticed_waits;
mod ranks;
mod responses;
mod spread;
mod thread_waits;
mod use_of_cpus;
mod wait_filter;
mod wakes;

use std::ops::Range;

use tables::{CpuRunsView, StoreError, Table};

use crate::{Reader, Scope, SuspendGaps};
pub use clock_skew::{ClockSkew, Pair};
pub use complete::Complete;
pub(crate) use complete::cpu_names;
pub use damage::Damage;
pub(crate) use damage::Effect;
pub use doubtful::Doubtful;
pub use interrupt_reader::{InterruptReader, own_runs};
pub(crate) use interrupt_reader::{query as interrupted_runs, selection as selected_runs, totals};
pub(crate) use interrupt_use::{
    COLUMNS as INTERRUPT_COLUMNS, Routines, blocking_kinds, blocks_thread, is_inside_routine,
    kind_name,
};
pub use interrupt_use::{InterruptUse, LockedRange, RoutineUse, SampledLock, limit_ns};
pub use load::Load;
use longest_waits::LongestWaits;
pub use longest_waits::Wait;
pub use noticed_waits::NoticedWaits;
pub use ranks::RankUse;
use ranks::Ranks;
pub use responses::Response;
pub(crate) use responses::{MESSAGES, without_sent};
pub use spread::Spread;
pub(crate) use thread_waits::RATE_CONTROL;
pub use thread_waits::{LostSecond, ThreadWaits};
use use_of_cpus::UseOfCpus;
pub use use_of_cpus::{CpuUse, ProcessUse};
pub(crate) use wait_filter::WaitFilter;

/// Sums over the runs of all threads.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Time range from the start of the first run to the end of the last run, in nanoseconds since the trace's start.
    pub span: Range<i64>,
    /// CPUs that have runs, sorted by number. A CPU that never switched threads has one run. CPUs
    /// without recorded events are not in this list; `complete` lists them.
    pub cpus: Vec<CpuUse>,
    /// CPU use of each process, by row in the table `processes`. The last entry is for threads of
    /// unknown processes.
    pub processes: Vec<ProcessUse>,
    /// CPU load over time.
    pub load: Load,
    /// Times during which the machine was suspended, so that no CPU logged an event.
    pub suspend_gaps: SuspendGaps,
    /// CPU use by process and rank, without rank 0.
    pub ranks: Vec<RankUse>,
    /// Number of runs whose rank is known.
    pub runs_with_rank: u64,
    /// Distribution of the lengths of waits for a CPU.
    pub ready_waits: Spread,
    /// Longest waits in scope, the longest first.
    pub longest_waits: Vec<Wait>,
    /// Noticeable waits in scope, by process.
    pub noticed_waits: Vec<NoticedWaits>,
    /// Waits of each thread for something other than a CPU, and its many short waits for a CPU.
    pub threads: Vec<ThreadWaits>,
    /// Number of contradicted runs. A run is contradicted if the context switch before it names another thread as the
    /// next one. In this case, context switches are missing.
    pub contradictions: u64,
    /// Total length of the contradicted runs, in nanoseconds.
    pub contradicted_ns: i64,
    /// Doubtful runs. The sums of CPU time by CPU, by process and by rank do not include them.
    pub doubtful: Doubtful,
    /// CPU time of DPCs and service routines.
    pub interrupts: InterruptUse,
    /// Time during which all CPUs are recorded.
    pub complete: Complete,
    /// Damage of the file.
    pub damage: Damage,
    /// Processors whose clocks disagree with others.
    pub clock_skews: Vec<ClockSkew>,
    /// True if the trace records when threads were readied. Without these events only the waits of
    /// preempted threads are known.
    pub has_ready_events: bool,
}

/// Columns of `cpu_runs` that the survey reads. A [`Wait`] consists of such columns.
pub(crate) const COLUMNS: [&str; 38] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_id",
    "process_row",
    "planned_thread_id",
    "previous_cpu",
    "previous_out_ns",
    "readied_ns",
    "ready_ns",
    "waits_ns",
    "wait_kind",
    "wait_ticks",
    "since_last_ns",
    "ran_unseen",
    "readying_thread_id",
    "readying_thread_row",
    "readying_process_id",
    "readying_process_row",
    "readying_cpu",
    "readied_by_dpc",
    "kernel_stack_not_resident",
    "process_out_of_memory",
    "priority",
    "nice",
    "rank_out",
    "previous_state",
    "previous_wait_reason",
    "previous_rank",
    "previous_priority_out",
    "ideal_processor",
    "stack_id",
    "readying_stack_id",
    "state_out",
    "wait_reason_out",
];

impl Survey {
    /// Tables that the survey reads.
    pub(crate) const TABLES: [Table; 6] = [
        Table::CpuRuns,
        Table::ReadyThreads,
        Table::Samples,
        InterruptUse::TABLE,
        Complete::TABLE,
        Damage::TABLE,
    ];

    pub(crate) fn read(reader: &Reader<'_>, scope: &Scope) -> Result<Survey, StoreError> {
        let complete = Complete::read(reader)?;
        let damage = Damage::read(reader)?;
        let ((interrupts, clock_skews), survey) = rayon::join(
            || {
                let clock_skews = || clock_skew::read(reader, &complete);
                rayon::join(|| InterruptUse::read(reader), clock_skews)
            },
            || Survey::of_runs(reader, scope, &complete, damage),
        );
        let survey = survey?;
        let damage = Damage {
            is_any: damage.is_any || survey.contradictions > 0,
            ..damage
        };
        let mut clock_skews = clock_skews?;
        clock_skews.retain(|skew| skew.is_shown_by_most || !damage.is_any);
        Ok(Survey {
            interrupts: interrupts?,
            clock_skews,
            suspend_gaps: SuspendGaps::read(
                reader,
                &survey.load.gaps,
                survey.all_cpus_ns(),
                damage.lacks_events,
            )?,
            complete,
            damage,
            ..survey
        })
    }

    /// Computes all sums except the sums of interrupts, clocks and suspend gaps.
    fn of_runs(
        reader: &Reader<'_>,
        scope: &Scope,
        complete: &Complete,
        damage: Damage,
    ) -> Result<Survey, StoreError> {
        let runs = reader.table(Table::CpuRuns)?;
        let mut survey = Survey {
            has_ready_events: reader.has(Table::ReadyThreads)?,
            doubtful: Doubtful::read(reader)?,
            ..Survey::default()
        };
        let chunks = runs.chunks();
        let ends = chunks.first().zip(chunks.last());
        let mut load = Load::new(ends.map_or(0..0, |(first, last)| first.first.min(0)..last.last));
        let mut uses = UseOfCpus::new(reader.names.process_rows());
        let mut ranks = Ranks::default();
        let wanted = WaitFilter::new(&reader.names, scope, complete, damage);
        let (mut longest, mut noticed) =
            (LongestWaits::default(), noticed_waits::ByProcess::default());
        let mut threads = thread_waits::WaitsByThread::new(reader, scope);
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut is_doubtful = Vec::new();
        let mut interrupted = InterruptReader::new(reader, i64::MIN..i64::MAX)?;
        let mut inside_ns = Vec::new();
        for batch in reader.batches(&runs, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            is_doubtful.clear();
            is_doubtful.extend((0..view.len()).map(|row| survey.doubtful.is(&view, row)));
            inside_ns.clear();
            for (row, is_doubtful) in is_doubtful.iter().enumerate() {
                let (cpu, end, cpu_ns) = (view.cpu[row], view.end_ns[row], view.cpu_ns[row]);
                let is_idle = view.thread_id[row] == 0 && !is_doubtful;
                let inside = interrupted.of_run(cpu, end, cpu_ns, |at_ns, ns| {
                    if is_idle {
                        load.interrupted_idle(at_ns, ns);
                    }
                })?;
                inside_ns.push(inside);
                if *is_doubtful {
                    survey.doubtful.count(view.cpu_ns[row]);
                }
                first = first.min(view.start_ns[row]);
                last = last.max(view.end_ns[row]);
                if view.planned_thread_id.get(row).is_some() {
                    survey.contradictions += 1;
                    survey.contradicted_ns =
                        survey.contradicted_ns.saturating_add(view.cpu_ns[row]);
                }
            }
            uses.add(&view, &is_doubtful, &inside_ns);
            load.add(&view, &is_doubtful);
            ranks.add(&view, &is_doubtful);
            longest.add(&view, &wanted);
            noticed.add(&view, &wanted);
            survey.ready_waits.add(&view);
            threads.add(&view, &is_doubtful, &inside_ns);
        }
        survey.span = if first <= last { first..last } else { 0..0 };
        (survey.cpus, survey.processes) = uses.finish();
        survey.load = load;
        (survey.ranks, survey.runs_with_rank) = ranks.finish();
        survey.longest_waits = longest.finish();
        survey.noticed_waits = noticed.finish();
        let recorded_until_ns = complete.until(survey.span.end);
        survey.threads = threads.finish(recorded_until_ns, damage);
        Ok(survey)
    }

    /// Returns the largest difference between two clocks that is possible, in nanoseconds; 0 if the clocks agree. It is
    /// twice the largest known offset, because a known offset is only a lower bound.
    pub(crate) fn clocks_apart_ns(&self) -> i64 {
        let most_ns = self.clock_skews.iter().map(|skew| skew.most_ns);
        most_ns.max().unwrap_or(0).saturating_mul(2)
    }

    /// Returns the CPU time of all threads in nanoseconds, without doubtful runs and idle threads.
    pub fn kept_ns(&self) -> i64 {
        self.cpus.iter().map(|cpu| cpu.busy_ns).sum()
    }

    /// Returns true if most CPU time is in doubtful runs, because switches are missing in the whole trace. An
    /// example is a part of a trace that contains only the events of one program.
    pub fn lacks_switches(&self) -> bool {
        self.doubtful.cpu_ns > self.kept_ns()
    }

    /// Returns a reason for the answer “not recorded” if the processes of most threads are unknown.
    pub(crate) fn lacks_processes(&self) -> Option<&'static str> {
        let known = self
            .threads
            .iter()
            .filter(|thread| thread.process_row.is_some());
        let lacks = known.count() * 2 < self.threads.len();
        lacks.then_some("the trace does not record the processes of its threads")
    }

    /// Returns the length of the trace's time span in nanoseconds.
    pub fn span_ns(&self) -> i64 {
        self.span.end.saturating_sub(self.span.start)
    }

    /// Returns the busy time of all CPUs together, in nanoseconds. It is the time of threads, plus the time
    /// of DPCs and service routines that interrupted idle threads.
    pub fn busy_ns(&self) -> i64 {
        let cpus = self.cpus.iter();
        cpus.map(|cpu| cpu.busy_ns.saturating_add(cpu.idle_interrupts_ns))
            .fold(0, i64::saturating_add)
    }

    /// Returns the time for which DPCs and service routines interrupted idle threads, in
    /// nanoseconds.
    pub(crate) fn idle_interrupts_ns(&self) -> i64 {
        self.cpus.iter().map(|cpu| cpu.idle_interrupts_ns).sum()
    }

    /// Returns the time of all recorded CPUs together in nanoseconds.
    pub fn all_cpus_ns(&self) -> i64 {
        self.span_ns().saturating_mul(self.cpus.len() as i64)
    }

    /// Returns the time of all CPUs together within a range, in nanoseconds. Suspend gaps are left out.
    pub(crate) fn awake_cpus_ns(&self, range: &Range<i64>) -> i64 {
        let range_ns = range.end.saturating_sub(range.start);
        let awake_ns = range_ns - self.suspend_gaps.asleep_ns(range);
        awake_ns.saturating_mul(self.cpus.len() as i64)
    }

    /// Returns the words that follow a percentage of the CPUs' time in a sentence. The whole (100 %) is the time that
    /// `awake_cpus_ns` returns.
    pub(crate) fn of_their_time(&self, range: &Range<i64>) -> &'static str {
        match self.suspend_gaps.asleep_ns(range) {
            0 => "of their time",
            _ => "of the time without suspend gaps",
        }
    }
}
