//! Ids of the events that belong to the file format itself. The crate `events` adds all others.

/// Class GUIDs of classic events that a session or a merge adds to a trace.
pub mod class {
    use crate::guid::Guid;

    /// Class of events with which a real-time session reports lost events, buffers and files
    /// (`RTLostEvent` and similar).
    pub const LOST_EVENT: Guid = Guid::from_u128(0x6a399ae0_4bc6_4de9_870b_3657f8947e7e);
    /// Class of events that state the file, PDB and version of an image. The merge of a trace adds
    /// them.
    pub const IMAGE_ID: Guid = Guid::from_u128(0xb3e675d7_2554_4f18_830b_2762732560de);
    /// Class of events that describe manifest events. The merge of a trace adds them.
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
    /// Groups of kernel events that are enabled in a kernel session, logged when it stops.
    pub const END_EXTENSION: u16 = 0x0020;
    /// Text that names the build of Windows.
    pub const BUILD_LAB: u16 = 0x0042;
    /// Partition or container in which the session ran.
    pub const PARTITION_INFO: u16 = 0x0050;
    /// Time of the last event that was dropped on each CPU.
    pub const LAST_DROPPED_TIMES: u16 = 0x0052;
}
