//! Names of the numbers in kernel payloads.
//!
//! Sources: the Windows SDK and WDK, Microsoft's ETW reference, System Informer's `ntwmi.h` and
//! `ntkeapi.h`, TraceEvent.

use std::sync::Arc;

use crate::schema::ValueMap;

/// Defines one function for each enumeration. The function returns the name of a number. Also defines the function
/// `value_map`, which returns a whole enumeration. Layouts refer to an enumeration by the name of its function.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($ty:ty) $kind:ident { $($value:literal $text:literal,)* })*) => {
        $(names!(@$kind $(#[$doc])* $name($ty) { $($value $text,)* });)*

        /// Returns the enumeration `name` as a value map for a field.
        pub(super) fn value_map(name: &str) -> Option<ValueMap> {
            let (is_bitmap, entries): (bool, &[(u64, &str)]) = match name {
                $(stringify!($name) => (stringify!($kind) == "bits", &[$(($value, $text),)*]),)*
                _ => return shared(name),
            };
            let entries = entries.iter().map(|(value, text)| (*value, Arc::from(*text))).collect();
            Some(ValueMap { name: name.into(), is_bitmap, entries })
        }
    };
    (@values $(#[$doc:meta])* $name:ident($ty:ty) { $($value:literal $text:literal,)* }) => {
        $(#[$doc])*
        pub fn $name(value: $ty) -> Option<&'static str> {
            Some(match value {
                $($value => $text,)*
                _ => return None,
            })
        }
    };
    (@bits $(#[$doc:meta])* $name:ident($ty:ty) { $($value:literal $text:literal,)* }) => {
        $(#[$doc])*
        ///
        /// Returns the names of the set bits, starting with the lowest bit. Omits bits without a
        /// name.
        pub fn $name(bits: $ty) -> impl Iterator<Item = &'static str> {
            const NAMES: &[($ty, &str)] = &[$(($value, $text),)*];
            NAMES.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| *name)
        }
    };
}

names! {
    /// Mode in which a thread waits (`KPROCESSOR_MODE`).
    wait_mode(u8) values { 0 "KernelMode", 1 "UserMode", }

    /// Reason for a priority change by the scheduler (`ADJUST_REASON`). The scheduler adjusts the priority of
    /// a thread that becomes ready.
    adjust_reason(u8) values { 0 "None", 1 "Unwait", 2 "Boost", }

    /// Quality of service of a thread (`KTHREAD_QOS_LEVEL`). The names of the numbers 3 and above differ
    /// between builds of Windows. The number 6 occurs only for idle threads. So show the number next to the
    /// name.
    qos_level(u8) values {
        0 "High", 1 "Medium", 2 "Low", 3 "Multimedia", 4 "Deadline", 5 "Dynamic",
    }

    /// Importance of a DPC (`KDPC_IMPORTANCE`). The importance decides the position of the DPC in the queue.
    dpc_importance(u8) values { 0 "Low", 1 "Medium", 2 "High", 3 "MediumHigh", }

    /// Request that one CPU sends to another with an inter-processor interrupt.
    ipi_request(u32) values { 1 "Apc", 2 "Dpc", }

    /// Flags of a process event.
    process_flags(u32) bits { 1 "PackageId", 2 "Wow64", 4 "Protected", 8 "Packaged", }

    /// Signature level of an image (`SE_SIGNING_LEVEL`).
    signature_level(u8) values {
        0 "Unchecked", 1 "Unsigned", 2 "Enterprise", 4 "Authenticode", 6 "Store",
        8 "Antimalware", 12 "Windows", 14 "WindowsTcb",
    }

    /// Location of an image's signature (`SE_IMAGE_SIGNATURE_TYPE`).
    signature_type(u8) values {
        0 "None", 1 "Embedded", 2 "Cached", 3 "CatalogCached", 4 "CatalogNotCached",
        5 "CatalogHint", 6 "PackageCatalog",
    }

    /// Flags of an I/O request packet. Bits 17 to 19 are the priority of the packet; see [`io_priority`].
    irp_flags(u32) bits {
        0x1 "NoCache", 0x2 "PagingIo", 0x4 "SynchronousApi", 0x8 "AssociatedIrp",
        0x10 "BufferedIo", 0x20 "DeallocateBuffer", 0x40 "SynchronousPagingIo", 0x80 "Create",
        0x100 "Read", 0x200 "Write", 0x400 "Close", 0x800 "DeferCompletion",
        0x1000 "ObQueryName", 0x2000 "HoldDeviceQueue",
    }

    /// Priority of an I/O request. The number is `IO_PRIORITY_HINT` plus 1, and 0 means "not set".
    io_priority(u8) values {
        0 "NotSet", 1 "VeryLow", 2 "Low", 3 "Normal", 4 "High", 5 "Critical",
    }

    /// Operation on a range of virtual memory.
    virtual_alloc_flags(u32) bits {
        0x1000 "Commit", 0x2000 "Reserve", 0x4000 "Decommit", 0x8000 "Release",
    }

    /// Source of a sample (`KPROFILE_SOURCE`). The meaning of other, higher numbers depends on the machine.
    /// The trace contains events about sample intervals (SampledProfileSetInterval and others). These events
    /// name the higher numbers.
    profile_source(u32) values {
        0 "Timer", 1 "AlignmentFixup", 2 "TotalIssues", 6 "BranchInstructions", 10 "CacheMisses",
        11 "BranchMispredictions", 19 "TotalCycles",
    }

    /// Allocator that allocated a heap block.
    heap_source(u32) values {
        1 "LookAside", 2 "LowFragmentation", 3 "MainPath", 4 "SlowC", 5 "Invalid",
        6 "SegmentHeap",
    }
}

/// Returns an enumeration whose names other rooms also use.
fn shared(name: &str) -> Option<ValueMap> {
    let entries = match name {
        "thread_state" => rules::names::THREAD_STATES,
        "wait_reason" => rules::names::WAIT_REASONS,
        _ => return None,
    };
    let entries = entries.iter();
    Some(ValueMap {
        name: name.into(),
        is_bitmap: false,
        entries: (entries.map(|(value, text)| (u64::from(*value), Arc::from(*text)))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_names() {
        assert_eq!(qos_level(5), Some("Dynamic"));
        assert_eq!(qos_level(6), None);
        assert_eq!(
            irp_flags(0x43).collect::<Vec<_>>(),
            ["NoCache", "PagingIo", "SynchronousPagingIo"]
        );
        let map = value_map("irp_flags").unwrap();
        assert!(map.is_bitmap && map.entries.len() == 14);
        let map = value_map("wait_reason").unwrap();
        assert!(!map.is_bitmap && map.entries.contains(&(15, "WrQueue".into())));
        assert_eq!(value_map("nothing"), None);
    }
}
