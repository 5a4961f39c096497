//! Meaning of recorded events that are not tracepoints.

use linux::{Attribute, Recording};

/// Types of events (`PERF_TYPE_…`).
mod kind {
    pub(crate) const HARDWARE: u32 = 0;
    pub(crate) const SOFTWARE: u32 = 1;
}

/// `PERF_COUNT_HW_CPU_CYCLES`.
const CYCLES: u64 = 0;
/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];
/// `PERF_COUNT_SW_PAGE_FAULTS_MAJ`.
const MAJOR_FAULTS: u64 = 6;

/// Meaning of the events of a recording.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Meanings of events, by their index in [`Recording::attributes`].
    meanings: Vec<SampleMeaning>,
}

/// Meaning of an event that is not a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleMeaning {
    /// Sample of the code that runs.
    Code(Weight),
    /// A page was read from a disk.
    HardFault,
    /// Another event.
    Other,
}

/// Time that a sample represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Period of the sample in nanoseconds. If the sample has no period, the value of this variant is used.
    Period(Option<i64>),
    /// Fixed time in nanoseconds, equal for all samples; `None` if the time is unknown.
    Fixed(Option<i64>),
}

impl Weight {
    /// Returns the time in nanoseconds that a sample with this period represents.
    pub(crate) fn weigh(self, period: Option<u64>) -> Option<i64> {
        match self {
            Weight::Period(fixed) => period.and_then(|ns| i64::try_from(ns).ok()).or(fixed),
            Weight::Fixed(ns) => ns,
        }
    }
}

impl Sampling {
    pub(crate) fn new(recording: &Recording) -> Sampling {
        let attributes = recording.attributes();
        // If several events of a recording sample code, only one of them is used. Otherwise, sums of the samples would
        // be too large.
        let clock = attributes.iter().find(|it| is_clock(it));
        let code = clock.or_else(|| attributes.iter().find(|it| is_cycles(it)));
        let meanings = attributes.iter().map(|attribute| {
            let is_same =
                |code: &Attribute| (code.kind, code.config) == (attribute.kind, attribute.config);
            match code {
                Some(code) if is_same(code) => SampleMeaning::Code(weight(attribute)),
                _ if (attribute.kind, attribute.config) == (kind::SOFTWARE, MAJOR_FAULTS) => {
                    SampleMeaning::HardFault
                }
                _ => SampleMeaning::Other,
            }
        });
        Sampling {
            meanings: meanings.collect(),
        }
    }

    /// Returns the meaning of the event with this index in [`Recording::attributes`].
    pub(crate) fn sampled(&self, attribute: usize) -> SampleMeaning {
        self.meanings
            .get(attribute)
            .copied()
            .unwrap_or(SampleMeaning::Other)
    }
}

fn is_clock(attribute: &Attribute) -> bool {
    attribute.kind == kind::SOFTWARE && CLOCKS.contains(&attribute.config)
}

fn is_cycles(attribute: &Attribute) -> bool {
    (attribute.kind, attribute.config) == (kind::HARDWARE, CYCLES)
}

fn weight(attribute: &Attribute) -> Weight {
    let number = i64::try_from(attribute.period_or_frequency).ok();
    let number = number.filter(|number| *number > 0);
    let between = number.filter(|_| attribute.is_frequency);
    let between = between.map(|per_second| 1_000_000_000 / per_second);
    match is_clock(attribute) {
        // The period of a clock event is in nanoseconds.
        true if attribute.is_frequency => Weight::Period(between),
        true => Weight::Period(number),
        false => Weight::Fixed(between),
    }
}
