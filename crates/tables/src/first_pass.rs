//! Result of the first pass over a recording. The first pass collects data that is later joined with rows of events, such
//! as processes, threads, images, files and stacks. It also makes the tables of the whole recording.

use crate::in_memory::Tables;
use crate::recorded_times::RecordedTimes;
use crate::stack_index::StackIndex;
use crate::trackers::FileTracker;
use crate::wait_kind::StackWait;

/// Result of the first pass: data that is joined with rows of events, and tables of the whole recording.
#[derive(Default)]
pub struct FirstPass {
    /// Tables of the whole recording.
    pub tables: Tables,
    /// Stacks by time and thread.
    pub stacks: StackIndex,
    /// Parts of the kinds of waits that stacks show, by stack id. It is empty if no stack shows any.
    pub stack_waits: Vec<StackWait>,
    /// Paths of files by key and time.
    pub files: FileTracker,
    /// Time ranges in which all events of a CPU were recorded.
    pub recorded: RecordedTimes,
    /// Time between two samples of a CPU in nanoseconds.
    pub sampling_interval_ns: Option<i64>,
    /// Time from the trace's start to its end. `None` if the headers and buffers of the trace do not give an
    /// end.
    pub length_ns: Option<i64>,
}
