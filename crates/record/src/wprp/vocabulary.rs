//! The names that profiles may use: of the kernel's keywords, of the events whose stacks it walks, and
//! of what is added when traces are merged.
//!
//! Sources: the enumerations of `WPRControlProfiles.xsd` as Microsoft Learn published it in 2017
//! ("WPRControlProfiles Schema"), which are complete here; of newer names, what the later text of that
//! page, xperf's list of stacks and public profiles show; UIforETW's `StackWalkFlags.txt` for what a
//! stack needs.

/// Since when WPR knows a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// The published schema has it: every release of WPR does.
    Classic,
    /// Only newer releases do.
    Newer,
}

/// Keywords of the kernel's session that every release knows.
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

/// Those of newer releases.
#[rustfmt::skip]
pub(super) const NEWER_KEYWORDS: [&str; 15] = [
    "CacheFlush", "DPCQueue", "HiberRundown", "HvHypercalls", "IdealProcessor", "KeClock",
    "NonTradeableMemory", "PmcProfile", "RegistryNotify", "Session", "VAMap", "WakeDrop",
    "WakeEvent", "WDFDPC", "WDFInterrupt",
];

/// Events whose stacks every release can walk, each with the keywords of which it needs one; none
/// where public sources do not say.
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

/// Those of newer releases.
pub(super) const NEWER_STACKS: [&str; 7] = [
    "PageAccessEx",
    "PagefileMappedSectionObjectCreate",
    "PagefileMappedSectionObjectDelete",
    "PageRemovedfromWorkingSet",
    "PmcInterrupt",
    "RegistryChangeNotify",
    "ThreadSetIdealProcessor",
];

/// What is added to a trace when it is merged.
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

/// Since when a keyword of the kernel's session is known, if it is.
pub(super) fn keyword(name: &str) -> Option<Since> {
    match () {
        () if CLASSIC_KEYWORDS.contains(&name) => Some(Since::Classic),
        () if NEWER_KEYWORDS.contains(&name) => Some(Since::Newer),
        () => None,
    }
}

/// Since when a stack is known, if it is, and the keywords of which it needs one.
pub(super) fn stack(name: &str) -> Option<(Since, &'static [&'static str])> {
    let mut classic = CLASSIC_STACKS.iter();
    let found = classic.find(|(stack, _)| *stack == name);
    match found {
        Some((_, needs)) => Some((Since::Classic, needs)),
        None if NEWER_STACKS.contains(&name) => Some((Since::Newer, NOT_KNOWN)),
        None => None,
    }
}

/// The known name that is most like a wrong one, if any is.
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
    fn each_name_is_there_once() {
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
    fn stacks_need_keywords_that_are_known() {
        for (stack, needs) in CLASSIC_STACKS {
            for needed in needs {
                assert!(keyword(needed).is_some(), "{stack}: {needed}");
            }
        }
    }

    #[test]
    fn what_laglab_uses_is_classic_and_needs_the_same() {
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
    fn a_slip_is_recognised() {
        let known = || CLASSIC_KEYWORDS.into_iter();
        assert_eq!(nearest("DiskIOInitialization", known()), Some("DiskIOInit"));
        assert_eq!(nearest("cswitch", known()), Some("CSwitch"));
        assert_eq!(nearest("Zzz", known()), None);
    }
}
