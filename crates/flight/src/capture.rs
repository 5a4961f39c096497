//! Records that a recorder has in memory at one moment, and the cost of the recording.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use crate::MissingEvent;
use crate::build_ids::BuildId;
use crate::perf_data::{Contents, FINISHED_ROUND, Machine, RecordedEvent};
use crate::tracefs::DescribedTracepoint;

/// Records that the recorder moved to memory together. All records of a round are older than the records of later
/// rounds, except records that the kernel wrote during the move.
#[derive(Debug)]
pub(crate) struct Round {
    /// Range of the recording's clock in which the records were written, in nanoseconds.
    pub(crate) range: Range<u64>,
    /// Records by CPU. CPUs without records are left out.
    pub(crate) of_cpus: Vec<Vec<u8>>,
}

impl Round {
    pub(crate) fn bytes(&self) -> usize {
        self.of_cpus.iter().map(Vec::len).sum()
    }

    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// Parts of a recording that stay the same until its end.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) tracepoints: Vec<DescribedTracepoint>,
    pub(crate) pages: [Vec<u8>; 2],
    pub(crate) machine: Machine,
    pub(crate) left: Vec<MissingEvent>,
}

/// Cost of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Length of the recording in nanoseconds.
    pub recorded_ns: u64,
    /// CPU time in nanoseconds of the thread that moves records to memory. The kernel writes the records during the
    /// time of the recorded threads, so the time for writing is not included.
    pub cpu_ns: u64,
    /// Number of records that the kernel wrote.
    pub records: u64,
    /// Number of events that the kernel could not write because its buffers were full.
    pub lost: u64,
    /// Size of all records in bytes.
    pub bytes: u64,
    /// Size in bytes of the records that were dropped early because the memory was full.
    pub dropped_bytes: u64,
}

impl Cost {
    /// Returns the number of records per second.
    pub fn per_second(&self) -> f64 {
        self.records as f64 * 1e9 / (self.recorded_ns.max(1) as f64)
    }

    /// Returns the share of a CPU that the thread of the recorder used, from 0 to 1.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_ns as f64 / (self.recorded_ns.max(1) as f64)
    }
}

/// Records that a recorder has in memory at one moment.
#[derive(Clone, Debug)]
pub struct Capture {
    pub(crate) setup: Arc<Setup>,
    pub(crate) rounds: Vec<Arc<Round>>,
    /// Records about the existing threads and mapped files. These records have no time.
    pub(crate) threads: Arc<Vec<u8>>,
    pub(crate) build_ids: Arc<Vec<BuildId>>,
    pub(crate) facts: Arc<String>,
    pub(crate) cost: Cost,
}

impl Capture {
    /// Writes the records as `perf.data`. Returns the size of the file in bytes.
    ///
    /// # Errors
    /// Returns the first error of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<u64> {
        let mut records: Vec<&[u8]> = vec![&self.threads];
        for round in &self.rounds {
            records.extend(round.of_cpus.iter().map(Vec::as_slice));
            records.push(&FINISHED_ROUND);
        }
        let contents = Contents {
            events: &self.setup.events,
            tracepoints: &self.setup.tracepoints,
            pages: &self.setup.pages,
            machine: &self.setup.machine,
            build_ids: &self.build_ids,
            records: &records,
        };
        contents.write(out)
    }

    /// Returns the facts that the events do not contain, for the file `FILE.proc` next to the recording `FILE`.
    pub fn facts(&self) -> &str {
        &self.facts
    }

    /// Returns a capture with the rounds that overlap a range of the recording's clock, in nanoseconds. The rounds may
    /// also contain records from outside of the range.
    #[must_use]
    pub fn within(&self, range: &Range<u64>) -> Capture {
        let rounds = self.rounds.iter().filter(|round| round.overlaps(range));
        Capture {
            rounds: rounds.cloned().collect(),
            ..self.clone()
        }
    }

    /// Returns the range of the recording's clock that the records cover, in nanoseconds. Records may be missing within
    /// the range. Returns `None` if there are no records.
    pub fn range(&self) -> Option<Range<u64>> {
        let (first, last) = (self.rounds.first()?, self.rounds.last()?);
        Some(first.range.start..last.range.end)
    }

    /// Returns the cost of the recording so far.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the events that this machine cannot record, with the reasons.
    pub fn left_out(&self) -> &[MissingEvent] {
        &self.setup.left
    }
}
