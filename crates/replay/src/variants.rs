//! Variants of a replay: assumptions that the record does not decide, and other times of arrivals.

use std::sync::Arc;

use rules::quantum::TABLE_DOUBTED_FROM;
use sim::replay::{self, Machine, Options, ProcessorUse, RunError, Step, Wait, Windows, Workload};
use statistics::random::Random;

use crate::recorded_workload::{Note, RecordedWorkload};

/// Win32PrioritySeparation with the long, fixed quanta of a server.
const LONG_FIXED: u32 = 0x18;
/// Win32PrioritySeparation with the short, variable quanta of a client.
const SHORT_VARIABLE: u32 = 0x26;
/// First build whose threads have short time slices in the model.
const SHORT_SLICES_FROM: u32 = Windows::Eleven25H2.build();
/// Maximum time between interrupts of a processor that move together when arrivals are varied, in nanoseconds.
const TOGETHER_NS: u64 = 100_000;

/// Settings of a replay. The default is the replay as recorded.
#[derive(Debug, Default)]
pub(crate) struct Variant {
    /// Assumption that differs from the default.
    pub(crate) assumption: Option<&'static str>,
    edit: Option<fn(&mut Machine)>,
    closed: bool,
    /// Seed of other times of arrivals. `None` for the recorded times.
    seed: Option<u64>,
}

impl Variant {
    /// Returns the default, a variant for each assumption that the record does not decide, and `replays` variants with
    /// other times of arrivals.
    pub(crate) fn all(recorded: &RecordedWorkload, replays: usize) -> Vec<Variant> {
        let workload = &recorded.workload;
        let machine = &workload.machine;
        let mut all = vec![Variant::default()];
        let is_open = |step: &Step| matches!(step, Step::Wait(Wait::Event(_)));
        let mut threads = workload.threads.iter();
        if threads.any(|thread| thread.steps.iter().skip(1).any(is_open)) {
            all.push(Variant {
                assumption: Some("whether packets, input and devices wait for the programs"),
                closed: true,
                ..Variant::default()
            });
        }
        let cores = machine.nodes.max(1).saturating_mul(other_core(machine));
        if machine.cpus > 2 && machine.cpus.is_multiple_of(cores) {
            all.push(Variant::new(
                "the number of processors of a core",
                |machine| machine.threads_per_core = other_core(machine),
            ));
        }
        if machine.build >= TABLE_DOUBTED_FROM {
            all.push(Variant::new(
                "the short time slice of recent builds",
                |machine| {
                    if machine.build >= SHORT_SLICES_FROM {
                        machine.short_slice_ns = Some(u64::MAX >> 20)
                    } else {
                        machine.build = SHORT_SLICES_FROM
                    }
                },
            ));
        }
        if recorded.notes.contains(&Note::QuantaUnknown) {
            all.push(Variant::new("quanta, which no event shows", |machine| {
                machine.priority_separation = if machine.server {
                    SHORT_VARIABLE
                } else {
                    LONG_FIXED
                };
            }));
        }
        all.extend((1..=replays as u64).map(|seed| Variant {
            seed: Some(seed),
            ..Variant::default()
        }));
        all
    }

    fn new(assumption: &'static str, edit: fn(&mut Machine)) -> Variant {
        Variant {
            assumption: Some(assumption),
            edit: Some(edit),
            ..Variant::default()
        }
    }

    /// Replays a workload. Returns the use of the processors by each thread within the measured time.
    pub(crate) fn replay(
        &self,
        workload: &Arc<Workload>,
        measured: Option<(u64, u64)>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<ProcessorUse>, RunError> {
        let mut workload = Arc::clone(workload);
        if let Some(edit) = self.edit {
            edit(&mut Arc::make_mut(&mut workload).machine);
        }
        let options = Options {
            measured: measured.map(|(from, to)| from..to),
            starts: self.seed.map(|seed| vary_starts(&workload, seed)),
            closed: self.closed,
        };
        let replayed = replay::run(&workload, &options, |_| go_on())?;
        Ok(replayed.threads)
    }
}

/// Returns the number of processors of a core that the machine is not assumed to have: 1 or 2.
fn other_core(machine: &Machine) -> u16 {
    3 - machine.threads_per_core.clamp(1, 2)
}

/// Returns varied starts of the interrupts. Each group of neighbouring interrupts of a processor moves by up to half of
/// the time to the next group.
fn vary_starts(workload: &Workload, seed: u64) -> Vec<Option<u64>> {
    let mut random = Random::new(seed);
    let mut starts: Vec<Option<u64>> = workload
        .interrupts
        .iter()
        .map(|interrupt| interrupt.at_ns)
        .collect();
    let cpus = usize::from(workload.machine.cpus);
    let mut by_cpu: Vec<Vec<(u64, usize)>> = vec![Vec::new(); cpus];
    for (n, interrupt) in workload.interrupts.iter().enumerate() {
        if let (Some(at), Some(list)) =
            (interrupt.at_ns, by_cpu.get_mut(usize::from(interrupt.cpu)))
        {
            list.push((at, n));
        }
    }
    for list in &mut by_cpu {
        list.sort_unstable();
        let groups = list.chunk_by(|(a, _), (b, _)| b - a < TOGETHER_NS);
        let groups: Vec<_> = groups
            .map(|group| (group[0].0..group[group.len() - 1].0, group))
            .collect();
        for (n, (span, group)) in groups.iter().enumerate() {
            let before = n.checked_sub(1).map_or(0, |n| groups[n].0.end);
            let after = groups
                .get(n + 1)
                .map_or(workload.duration_ns, |(span, _)| span.start);
            let room = (span.start - before).min(after.saturating_sub(span.end)) / 2;
            let shift = random.bits() % (2 * room).max(1);
            for (at, interrupt) in *group {
                starts[*interrupt] = Some((at + shift).saturating_sub(room));
            }
        }
    }
    starts
}
