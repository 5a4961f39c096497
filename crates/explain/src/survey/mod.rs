//! What more than one theory needs, summed up in one pass over the runs of threads.

mod clock_offsets;
mod clock_skew;
mod complete;
mod doubtful;
mod interrupt_use;
mod interrupted;
mod load;
mod longest_waits;
mod noticed_waits;
mod ranks;
mod spread;
mod use_of_cpus;
mod wakes;
mod wanted;

use std::ops::Range;

use tables::{CpuRunsView, StoreError, Table};

use crate::{Case, Silences};
pub use clock_skew::{ClockSkew, Pair};
pub use complete::Complete;
pub use doubtful::Doubtful;
pub(crate) use interrupt_use::{COLUMNS as INTERRUPT_COLUMNS, Routines};
pub use interrupt_use::{InterruptUse, Locked, RoutineUse, limit_ns};
pub(crate) use interrupted::{Interrupted, query as interrupted_runs};
pub use load::Load;
use longest_waits::LongestWaits;
pub use longest_waits::Wait;
pub use noticed_waits::{NOTICED_NS, NoticedWaits};
pub use ranks::RankUse;
use ranks::Ranks;
pub use spread::Spread;
use use_of_cpus::UseOfCpus;
pub use use_of_cpus::{CpuUse, ProcessUse};
pub(crate) use wanted::Wanted;

/// Sums over the runs of threads on CPUs.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// From the first to the last run, in nanoseconds since the trace's start.
    pub span: Range<i64>,
    /// The CPUs that ran anything, by their numbers.
    pub cpus: Vec<CpuUse>,
    /// Use by the rows of `processes`; threads of no known process are the last.
    pub processes: Vec<ProcessUse>,
    /// Time that threads of each priority ran, from 0 to 31, idle threads left out; of runs whose
    /// priority is known.
    pub priorities_ns: [i64; 32],
    /// How busy the CPUs were over time.
    pub load: Load,
    /// When no CPU logged anything: the machine slept.
    pub silences: Silences,
    /// Use by process and rank, of ranks other than 0.
    pub ranks: Vec<RankUse>,
    /// Runs whose rank is known.
    pub runs_with_rank: u64,
    /// How long ready threads waited for a CPU.
    pub ready_waits: Spread,
    /// The longest of these waits, the longest first; of threads and processes asked for more.
    pub longest_waits: Vec<Wait>,
    /// Those that people notice, by process.
    pub noticed_waits: Vec<NoticedWaits>,
    /// Runs that began when another thread was announced: switches before them are missing.
    pub contradictions: u64,
    /// How long these runs were, in nanoseconds.
    pub contradicted_ns: i64,
    /// Runs that are not believed: they are in none of the sums of CPU time here.
    pub doubtful: Doubtful,
    /// What DPCs and service routines had of the CPUs.
    pub interrupts: InterruptUse,
    /// When all CPUs are recorded.
    pub complete: Complete,
    /// Processors whose clocks disagree with others'.
    pub clock_skews: Vec<ClockSkew>,
    /// Whether events of threads made ready are in the trace: without them only the waits of threads
    /// that lost their CPU are known.
    pub has_ready_events: bool,
}

/// The columns that are read; a [`Wait`] is made of them.
pub(crate) const COLUMNS: [&str; 31] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "thread_id",
    "thread_row",
    "process_id",
    "process_row",
    "planned_thread_id",
    "previous_out_ns",
    "readied_ns",
    "ready_ns",
    "waits_ns",
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
    "rank_out",
    "previous_state",
    "previous_wait_reason",
    "previous_rank",
    "ideal_processor",
    "stack_id",
    "readying_stack_id",
];

impl Survey {
    /// The tables that are read.
    pub(crate) const TABLES: [Table; 6] = [
        Table::CpuRuns,
        Table::ReadyThreads,
        Table::Samples,
        InterruptUse::TABLE,
        Complete::TABLE,
        Table::Damages,
    ];

    pub(crate) fn read(case: &Case<'_>) -> Result<Survey, StoreError> {
        let complete = Complete::read(case)?;
        let ((interrupts, clock_skews), survey) = rayon::join(
            || {
                let clock_skews = || clock_skew::read(case, &complete);
                rayon::join(|| InterruptUse::read(case), clock_skews)
            },
            || Survey::of_runs(case, &complete),
        );
        let survey = survey?;
        Ok(Survey {
            interrupts: interrupts?,
            clock_skews: clock_skews?,
            silences: Silences::read(case, &survey.load.gaps, survey.all_cpus_ns())?,
            complete,
            ..survey
        })
    }

    /// All but what interrupts had and what clocks are.
    fn of_runs(case: &Case<'_>, complete: &Complete) -> Result<Survey, StoreError> {
        let runs = case.table(Table::CpuRuns)?;
        let mut survey = Survey {
            has_ready_events: case.has(Table::ReadyThreads)?,
            doubtful: Doubtful::read(case)?,
            ..Survey::default()
        };
        let chunks = runs.chunks();
        let ends = chunks.first().zip(chunks.last());
        let mut load = Load::new(ends.map_or(0..0, |(first, last)| first.first.min(0)..last.last));
        let mut uses = UseOfCpus::new(case.names.process_rows());
        let mut ranks = Ranks::default();
        let wanted = Wanted::new(case, complete);
        let (mut longest, mut noticed) =
            (LongestWaits::default(), noticed_waits::ByProcess::default());
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut is_doubtful = Vec::new();
        let mut interrupted = Interrupted::new(case, i64::MIN..i64::MAX)?;
        let mut inside_ns = Vec::new();
        for batch in case.batches(&runs, i64::MIN..i64::MAX, &COLUMNS) {
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            is_doubtful.clear();
            is_doubtful.extend((0..view.len()).map(|row| survey.doubtful.is(&view, row)));
            inside_ns.clear();
            for (row, is_doubtful) in is_doubtful.iter().enumerate() {
                let (cpu, end, cpu_ns) = (view.cpu[row], view.end_ns[row], view.cpu_ns[row]);
                inside_ns.push(interrupted.of_run(cpu, end, cpu_ns)?);
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
            ranks.add(&view);
            longest.add(&view, &wanted);
            noticed.add(&view, &wanted);
            survey.ready_waits.add(&view);
        }
        survey.span = match first <= last {
            true => first..last,
            false => 0..0,
        };
        (survey.cpus, survey.processes, survey.priorities_ns) = uses.finish();
        survey.load = load;
        (survey.ranks, survey.runs_with_rank) = ranks.finish();
        survey.longest_waits = longest.finish();
        survey.noticed_waits = noticed.finish();
        Ok(survey)
    }

    /// How far apart two processors' clocks may be, in nanoseconds; 0 if they agree. By how much one
    /// is off is known from below only: twice as much is allowed for.
    pub(crate) fn clocks_apart_ns(&self) -> i64 {
        let most_ns = self.clock_skews.iter().map(|skew| skew.most_ns);
        most_ns.max().unwrap_or(0).saturating_mul(2)
    }

    /// How long the survey's span is.
    pub fn span_ns(&self) -> i64 {
        self.span.end.saturating_sub(self.span.start)
    }

    /// The time of all CPUs together.
    pub fn all_cpus_ns(&self) -> i64 {
        self.span_ns().saturating_mul(self.cpus.len() as i64)
    }

    /// The time of all CPUs together within a range while the machine was awake.
    pub(crate) fn awake_cpus_ns(&self, range: &Range<i64>) -> i64 {
        let range_ns = range.end.saturating_sub(range.start);
        let awake_ns = range_ns - self.silences.asleep_ns(range);
        awake_ns.saturating_mul(self.cpus.len() as i64)
    }

    /// Of what a share of that time is one.
    pub(crate) fn of_their_time(&self, range: &Range<i64>) -> &'static str {
        match self.silences.asleep_ns(range) {
            0 => "of their time",
            _ => "of the time that the machine was awake",
        }
    }
}
