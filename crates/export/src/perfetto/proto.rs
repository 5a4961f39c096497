//! Messages of Perfetto's file format, limited to the fields that the export writes.
//!
//! Names and numbers are from `protos/perfetto/trace` in Perfetto's sources (Apache-2.0).

use prost::Message;

/// Message `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "2")]
    pub(super) process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    /// Time in nanoseconds on the boot-time clock.
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "95")]
    pub(super) etw_events: Option<EtwTraceEventBundle>,
}

/// Flag of `TracePacket.SequenceFlags`: earlier interned names are no longer valid.
pub(super) const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// Flag of `TracePacket.SequenceFlags`: the packet refers to interned names.
pub(super) const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// Message `ProcessTree`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<TreeProcess>,
    #[prost(message, repeated, tag = "2")]
    pub(super) threads: Vec<TreeThread>,
}

/// Message `ProcessTree.Process`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TreeProcess {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) ppid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub(super) cmdline: Vec<String>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) process_start_from_boot: Option<u64>,
}

/// Message `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TreeThread {
    #[prost(int32, optional, tag = "1")]
    pub(super) tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub(super) tgid: Option<i32>,
}

/// Message `ClockSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

/// Message `ClockSnapshot.Clock`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

/// Number of a `BuiltinClock`: nanoseconds since 1970 UTC.
pub(super) const CLOCK_REALTIME: u32 = 1;
/// Number of a `BuiltinClock`: the time line of a trace.
pub(super) const CLOCK_BOOTTIME: u32 = 6;

/// Message `EtwTraceEventBundle`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EtwTraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<EtwTraceEvent>,
}

/// Message `EtwTraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EtwTraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    #[prost(message, optional, tag = "2")]
    pub(super) c_switch: Option<CSwitch>,
    #[prost(message, optional, tag = "3")]
    pub(super) ready_thread: Option<ReadyThread>,
    /// Thread that woke another thread.
    #[prost(uint32, optional, tag = "5")]
    pub(super) thread_id: Option<u32>,
}

/// Message `CSwitchEtwEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CSwitch {
    #[prost(uint32, optional, tag = "1")]
    pub(super) new_thread_id: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) old_thread_id: Option<u32>,
    #[prost(sint32, optional, tag = "3")]
    pub(super) new_thread_priority: Option<i32>,
    #[prost(sint32, optional, tag = "4")]
    pub(super) old_thread_priority: Option<i32>,
    /// State of the old thread as an `OldThreadState`, for states up to 7.
    #[prost(int32, optional, tag = "8")]
    pub(super) old_thread_state: Option<i32>,
    #[prost(int32, optional, tag = "11")]
    pub(super) old_thread_wait_reason_int: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) old_thread_wait_mode_int: Option<i32>,
    /// State of the old thread as any number. If it is present, it is used instead of `old_thread_state`.
    #[prost(sint32, optional, tag = "13")]
    pub(super) old_thread_state_int: Option<i32>,
}

/// Message `ReadyThreadEtwEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadyThread {
    #[prost(uint32, optional, tag = "1")]
    pub(super) t_thread_id: Option<u32>,
    #[prost(sint32, optional, tag = "3")]
    pub(super) adjust_increment: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(super) adjust_reason_int: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    pub(super) flag_int: Option<i32>,
}

/// Message `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(int32, optional, tag = "11")]
    pub(super) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) sibling_order_rank: Option<i32>,
}

/// Value of `TrackDescriptor.ChildTracksOrdering`: tracks are ordered by `sibling_order_rank`.
pub(super) const ORDERING_EXPLICIT: i32 = 3;

/// Message `ThreadDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(super) tid: Option<i32>,
}

/// Message `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    pub(super) category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(super) kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    /// Name of the event, if the name is not interned. Then it is used instead of `name_iid`.
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
}

/// Value of `TrackEvent.Type`: start of a slice.
pub(super) const SLICE_BEGIN: i32 = 1;
/// Value of `TrackEvent.Type`: end of a slice.
pub(super) const SLICE_END: i32 = 2;
/// Value of `TrackEvent.Type`: event without a duration.
pub(super) const INSTANT: i32 = 3;

/// Message `DebugAnnotation`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}

/// Message `InternedData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<InternedName>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<InternedName>,
}

/// Messages `EventCategory` and `EventName`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
}
