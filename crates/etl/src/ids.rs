//! Ids of the events that belong to the file format itself. The crate `events` contains the ids of all other
//! events.

/// Class GUIDs of classic events that a session or a merge adds to a trace.
pub mod class {
    use crate::guid::Guid;

    /// Class of loss events (`RTLostEvent` and similar). A real-time session logs such an event when it loses
    /// events, buffers or files.
    pub const LOST_EVENT: Guid = Guid::from_u128(0x6a399ae0_4bc6_4de9_870b_3657f8947e7e);
    /// Class of events that state the file, the PDB and the version of an image. These events are added when
    /// a trace is merged.
    pub const IMAGE_ID: Guid = Guid::from_u128(0xb3e675d7_2554_4f18_830b_2762732560de);
    /// Class of events that describe manifest events. These descriptions are added when a trace is merged.
    pub const EVENT_METADATA: Guid = Guid::from_u128(0xbbccf6c1_6cd1_48c4_80ff_839482e37671);
}

/// Hook ids of a session's own events (kernel group 0).
pub mod hook {
    /// Header of the log.
    pub const HEADER: u16 = 0x0000;
    /// Groups of kernel events that are enabled in a kernel session.
    pub const EXTENSION: u16 = 0x0005;
    /// End of the rundown when a session stops. This event has no payload.
    pub const RUNDOWN_COMPLETE: u16 = 0x0008;
    /// Groups of kernel events that are enabled in a kernel session. This event is logged when the session
    /// stops.
    pub const END_EXTENSION: u16 = 0x0020;
    /// Text that names the build of Windows.
    pub const BUILD_LAB: u16 = 0x0042;
    /// Partition or container in which the session ran.
    pub const PARTITION_INFO: u16 = 0x0050;
    /// Time of the last event that was dropped on each CPU.
    pub const LAST_DROPPED_TIMES: u16 = 0x0052;
}
