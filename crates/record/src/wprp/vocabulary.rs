//! Names that profiles may use: kernel keywords, events with stacks, and events that merging adds.
//!
//! Sources: for all classic names, the enumerations of `WPRControlProfiles.xsd` that Microsoft Learn
//! published in 2017 ("WPRControlProfiles Schema"). For newer names, later versions of this page, xperf's
//! list of stacks, and public profiles. For the keywords that a stack needs, `StackWalkFlags.txt` of
//! UIforETW.

/// Releases of WPR that accept a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Every release accepts the name, which is in the published schema.
    Classic,
    /// The name is accepted only by newer releases.
    Newer,
}

/// Kernel keywords that every release accepts.
#[rustfmt::skip]
pub(super) const CLASSIC_KEYWORDS: [&str; 56] = [
    "AllFaults", "Alpc", "AntiStarvation", "CC", "ClockInterrupt", "ClusterOff", "CompactCSwitch",
    "ContiguousMemorygeneration", "CpuConfig", "CSwitch", "DiskIO", "DiskIOInit", "DPC", "Drivers",
    "FileIO", "FileIOInit", "Filename", "FilterIO", "FilterIOFailure", "FilterIOFastIO",
    "FilterIOInit", "FootPrint", "HalClock", "Handle", "HardFaults", "IdleStates",
    "InterProcessorInterrupt", "Interrupt", "KernelQueue", "LoadBalancer", "Loader", "Memory",
    "MemoryInfo", "MemoryInfoWS", "NetworkTrace", "Object", "OpticalIO", "OpticalIOInit", "Pool",
    "Power", "ProcessCounter", "ProcessFreeze", "ProcessThread", "ReadyThread", "ReferenceSet",
    "Registry", "RegistryHive", "SampledProfile", "SpinLock", "SplitIO", "SynchronizationObjects",
    "SystemCall", "ThreadPriority", "Timer", "VirtualAllocation", "WakeCounter",
];

/// Kernel keywords that only newer releases accept.
#[rustfmt::skip]
pub(super) const NEWER_KEYWORDS: [&str; 15] = [
    "CacheFlush", "DPCQueue", "HiberRundown", "HvHypercalls", "IdealProcessor", "KeClock",
    "NonTradeableMemory", "PmcProfile", "RegistryNotify", "Session", "VAMap", "WakeDrop",
    "WakeEvent", "WDFDPC", "WDFInterrupt",
];

/// Events whose stacks every release can record. Each event has a list of keywords, and a profile needs one
/// of them. The list is empty if public sources name no keyword.
#[rustfmt::skip]
pub(super) const CLASSIC_STACKS: [(&str, &[&str]); 158] = [
    ("AlpcClosePort", ALPC), ("AlpcConnectFail", ALPC), ("AlpcConnectRequest", ALPC),
    ("AlpcConnectSuccess", ALPC), ("AlpcReceiveMessage", ALPC), ("AlpcSendMessage", ALPC),
    ("AlpcUnwait", ALPC), ("AlpcWaitForNewMessage", ALPC), ("AlpcWaitForReply", ALPC),
    ("CcCanIWriteFail", CACHE), ("CcFlushCache", CACHE), ("CcFlushSection", CACHE),
    ("CcLazyWriteScan", CACHE), ("CcReadAhead", CACHE), ("CcWorkitemComplete", CACHE),
    ("CcWorkitemDequeue", CACHE), ("CcWorkitemEnqueue", CACHE), ("CcWriteBehind", CACHE),
    ("ChargeWakeCounterDevice", NOT_KNOWN), ("ChargeWakeCounterKernel", NOT_KNOWN),
    ("ChargeWakeCounterPower", NOT_KNOWN), ("ChargeWakeCounterUser", NOT_KNOWN),
    ("ContiguousMemoryGeneration", NOT_KNOWN), ("CSwitch", &["CSwitch", "CompactCSwitch"]),
    ("DiskFlushInit", DISK_INIT), ("DiskReadInit", DISK_INIT), ("DiskWriteInit", DISK_INIT),
    ("ExecutiveResource", NOT_KNOWN), ("FileCleanup", FILE), ("FileClose", FILE),
    ("FileCreate", FILE), ("FileDelete", FILE), ("FileDirEnum", FILE), ("FileDirNotify", FILE),
    ("FileFlush", FILE), ("FileFSCTL", FILE), ("FileOpEnd", FILE), ("FileQueryInformation", FILE),
    ("FileRead", FILE), ("FileRename", FILE), ("FileSetInformation", FILE), ("FileWrite", FILE),
    ("HandleClose", &["Handle"]), ("HandleCreate", &["Handle"]), ("HandleDuplicate", &["Handle"]),
    ("HardFault", &["HardFaults", "AllFaults"]), ("HeapAllocation", NOT_KNOWN),
    ("HeapCreate", NOT_KNOWN), ("HeapDestroy", NOT_KNOWN), ("HeapFree", NOT_KNOWN),
    ("HeapRangeCreate", NOT_KNOWN), ("HeapRangeDestroy", NOT_KNOWN),
    ("HeapRangeRelease", NOT_KNOWN), ("HeapRangeReserve", NOT_KNOWN),
    ("HeapReallocation", NOT_KNOWN), ("ImageLoad", LOADER), ("ImageUnload", LOADER),
    ("KernelQueueDequeue", QUEUE), ("KernelQueueEnqueue", QUEUE), ("KernelSignal", NOT_KNOWN),
    ("KernelSignalInit", NOT_KNOWN), ("KernelSync", NOT_KNOWN), ("KernelSyncAll", NOT_KNOWN),
    ("KernelWaitSync", NOT_KNOWN), ("KernelWaitSyncAll", NOT_KNOWN), ("MapFile", NOT_KNOWN),
    ("Mark", NOT_KNOWN), ("MiniFilterPostOpInit", NOT_KNOWN), ("MiniFilterPreOpInit", NOT_KNOWN),
    ("ObjectCreate", &["Object"]), ("ObjectDelete", &["Object"]), ("ObjectReference", &["Object"]),
    ("PageAccess", NOT_KNOWN), ("PagefaultAV", FAULTS), ("PagefaultCopyOnWrite", FAULTS),
    ("PagefaultDemandZero", FAULTS), ("PagefaultGuard", FAULTS), ("PagefaultHard", FAULTS),
    ("PagefaultTransition", FAULTS), ("PagefileBackedImageMapping", NOT_KNOWN),
    ("PagefileMappedSectionCreate", NOT_KNOWN), ("PagefileMappedSectionDelete", NOT_KNOWN),
    ("PageRangeAccess", NOT_KNOWN), ("PageRangeRelease", NOT_KNOWN), ("PageRelease", NOT_KNOWN),
    ("PoolAllocation", NOT_KNOWN), ("PoolAllocationSession", NOT_KNOWN), ("PoolFree", NOT_KNOWN),
    ("PoolFreeSession", NOT_KNOWN), ("PowerDeviceNotify", NOT_KNOWN),
    ("PowerDeviceNotifyComplete", NOT_KNOWN), ("PowerIdleStateChange", NOT_KNOWN),
    ("PowerPerfStateChange", NOT_KNOWN), ("PowerPostSleep", NOT_KNOWN),
    ("PowerPreSleep", NOT_KNOWN), ("PowerSessionCallout", NOT_KNOWN),
    ("PowerSessionCalloutReturn", NOT_KNOWN), ("PowerSetDevicesState", NOT_KNOWN),
    ("PowerSetDevicesStateReturn", NOT_KNOWN), ("PowerSetPowerAction", NOT_KNOWN),
    ("PowerSetPowerActionReturn", NOT_KNOWN), ("PowerThermalConstraint", NOT_KNOWN),
    ("ProcessCreate", PROCESS), ("ProcessDelete", PROCESS), ("ProcessFreeze", NOT_KNOWN),
    ("ProcessResume", NOT_KNOWN), ("ReadyThread", &["ReadyThread"]), ("RegHiveDestroy", HIVE),
    ("RegHiveDirty", HIVE), ("RegHiveInit", HIVE), ("RegHiveLink", HIVE),
    ("RegistryCloseKey", REGISTRY), ("RegistryCreateKey", REGISTRY),
    ("RegistryDeleteKey", REGISTRY), ("RegistryDeleteValue", REGISTRY),
    ("RegistryEnumerateKey", REGISTRY), ("RegistryEnumerateValueKey", REGISTRY),
    ("RegistryFlush", REGISTRY), ("RegistryKcbCreate", REGISTRY), ("RegistryKcbDelete", REGISTRY),
    ("RegistryOpenKey", REGISTRY), ("RegistryQueryKey", REGISTRY),
    ("RegistryQueryMultipleValue", REGISTRY), ("RegistryQuerySecurity", REGISTRY),
    ("RegistryQueryValue", REGISTRY), ("RegistrySetInformation", REGISTRY),
    ("RegistrySetSecurity", REGISTRY), ("RegistrySetValue", REGISTRY),
    ("RegistryVirtualize", REGISTRY), ("ReleaseWakeCounterDevice", NOT_KNOWN),
    ("ReleaseWakeCounterKernel", NOT_KNOWN), ("ReleaseWakeCounterPower", NOT_KNOWN),
    ("ReleaseWakeCounterUser", NOT_KNOWN), ("SampledProfile", &["SampledProfile"]),
    ("SampledProfileSetInterval", NOT_KNOWN), ("SplitIO", &["SplitIO"]),
    ("SystemCallEnter", &["SystemCall"]), ("SystemCallExit", &["SystemCall"]),
    ("ThreadCreate", PROCESS), ("ThreadDCEnd", PROCESS), ("ThreadDCStart", PROCESS),
    ("ThreadDelete", PROCESS), ("ThreadPoolCallbackCancel", NOT_KNOWN),
    ("ThreadPoolCallbackDequeue", NOT_KNOWN), ("ThreadPoolCallbackEnqueue", NOT_KNOWN),
    ("ThreadPoolCallbackStart", NOT_KNOWN), ("ThreadPoolCallbackStop", NOT_KNOWN),
    ("ThreadPoolClose", NOT_KNOWN), ("ThreadPoolCreate", NOT_KNOWN),
    ("ThreadPoolSetMaxThreads", NOT_KNOWN), ("ThreadPoolSetMinThreads", NOT_KNOWN),
    ("ThreadSetBasePriority", PRIORITY), ("ThreadSetPriority", PRIORITY),
    ("TimerOneShot", NOT_KNOWN), ("TimerPeriodic", NOT_KNOWN), ("UnMapFile", NOT_KNOWN),
    ("VirtualAllocation", &["VirtualAllocation"]), ("VirtualFree", &["VirtualAllocation"]),
];

const NOT_KNOWN: &[&str] = &[];
const ALPC: &[&str] = &["Alpc"];
const CACHE: &[&str] = &["CC"];
const DISK_INIT: &[&str] = &["DiskIOInit"];
const FAULTS: &[&str] = &["AllFaults", "HardFaults"];
const FILE: &[&str] = &["FileIO", "FileIOInit"];
const HIVE: &[&str] = &["RegistryHive", "Registry"];
const LOADER: &[&str] = &["Loader"];
const PRIORITY: &[&str] = &["ReadyThread", "ThreadPriority"];
const PROCESS: &[&str] = &["ProcessThread"];
const QUEUE: &[&str] = &["KernelQueue"];
const REGISTRY: &[&str] = &["Registry", "RegistryNotify"];

/// Events whose stacks only newer releases can record.
pub(super) const NEWER_STACKS: [&str; 7] = [
    "PageAccessEx",
    "PagefileMappedSectionObjectCreate",
    "PagefileMappedSectionObjectDelete",
    "PageRemovedfromWorkingSet",
    "PmcInterrupt",
    "RegistryChangeNotify",
    "ThreadSetIdealProcessor",
];

/// Events that WPR can add to a trace when it merges files.
pub(super) const CUSTOM_EVENTS: [&str; 8] = [
    "None",
    "ImageId",
    "BuildInfo",
    "VolumeMapping",
    "EventMetadata",
    "PerfTrackMetadata",
    "WinSAT",
    "NetworkInterface",
];

/// Returns the releases that accept a kernel keyword; `None` if the keyword is unknown.
pub(super) fn keyword(name: &str) -> Option<Since> {
    match () {
        () if CLASSIC_KEYWORDS.contains(&name) => Some(Since::Classic),
        () if NEWER_KEYWORDS.contains(&name) => Some(Since::Newer),
        () => None,
    }
}

/// Returns the releases that can record the stacks of an event, and a list of keywords. A profile needs one of
/// these keywords. Returns `None` if the event is unknown.
pub(super) fn stack(name: &str) -> Option<(Since, &'static [&'static str])> {
    let mut classic = CLASSIC_STACKS.iter();
    let entry = classic.find(|(stack, _)| *stack == name);
    match entry {
        Some((_, needs)) => Some((Since::Classic, needs)),
        None if NEWER_STACKS.contains(&name) => Some((Since::Newer, NOT_KNOWN)),
        None => None,
    }
}

/// Returns the known name that is most similar to a wrong name, if any is similar enough.
pub(super) fn nearest<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let alike = |name: &str| strsim::jaro_winkler(&wrong.to_lowercase(), &name.to_lowercase());
    let (name, likeness) = known
        .map(|name| (name, alike(name)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (likeness > 0.85).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Keyword, StackWalk};

    #[test]
    fn names_are_unique() {
        let keywords = CLASSIC_KEYWORDS.iter().chain(&NEWER_KEYWORDS);
        assert_eq!(
            keywords.collect::<BTreeSet<_>>().len(),
            CLASSIC_KEYWORDS.len() + NEWER_KEYWORDS.len()
        );
        let stacks = CLASSIC_STACKS.iter().map(|(name, _)| name);
        let all: BTreeSet<_> = stacks.chain(&NEWER_STACKS).collect();
        assert_eq!(all.len(), CLASSIC_STACKS.len() + NEWER_STACKS.len());
    }

    #[test]
    fn keywords_of_stacks_are_known() {
        for (stack, needs) in CLASSIC_STACKS {
            for needed in needs {
                assert!(keyword(needed).is_some(), "{stack}: {needed}");
            }
        }
    }

    #[test]
    fn kernel_names_are_classic() {
        for known in Keyword::ALL {
            assert_eq!(keyword(known.wpr()), Some(Since::Classic), "{known:?}");
        }
        for walk in StackWalk::ALL {
            let (since, needs) = stack(walk.wpr()).unwrap();
            assert_eq!(since, Since::Classic);
            assert!(needs.contains(&walk.needs().wpr()), "{walk:?}");
        }
    }

    #[test]
    fn typos_get_a_suggestion() {
        let known = || CLASSIC_KEYWORDS.into_iter();
        assert_eq!(nearest("DiskIOInitialization", known()), Some("DiskIOInit"));
        assert_eq!(nearest("cswitch", known()), Some("CSwitch"));
        assert_eq!(nearest("Zzz", known()), None);
    }
}
