//! Kinds of events in a log. Each has a name, the recording option that enables it, and a layout
//! version in each release of Windows.

use events::ids::hook;
use record::{Keyword, Provider, StackWalk};

use super::recording::Recording;
use crate::windows::Windows;

/// Condition under which a log contains a kind of event.
#[derive(Clone, Copy, Debug)]
enum Needs {
    /// Every log contains this kind of event, because no keyword enables it.
    Nothing,
    /// A log contains this kind of event if any of these keywords is enabled.
    AnyOf(&'static [Keyword]),
    Provider(Provider),
}

macro_rules! event_kinds {
    ($($kind:ident $name:literal $hook:path, $needs:expr, $stack:expr;)+) => {
        /// A kind of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum EventKind {
            $(#[doc = $name] $kind,)+
        }

        impl EventKind {
            /// All kinds.
            pub(crate) const ALL: [EventKind; [$(EventKind::$kind),+].len()] =
                [$(EventKind::$kind),+];

            /// Returns the name of the kind.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)+
                }
            }

            /// Returns the hook id, the number that identifies a kind of kernel event; 0 for other
            /// events.
            #[inline]
            pub(super) fn hook(self) -> u16 {
                match self {
                    $(EventKind::$kind => $hook,)+
                }
            }

            fn needs(self) -> Needs {
                match self {
                    $(EventKind::$kind => $needs,)+
                }
            }

            fn stack_walk(self) -> Option<StackWalk> {
                match self {
                    $(EventKind::$kind => $stack,)+
                }
            }
        }
    };
}

/// Hook id of the kinds that are not kernel events.
const NO_HOOK: u16 = 0;
const NOTHING: Needs = Needs::Nothing;
const PROCESSES: Needs = Needs::AnyOf(&[Keyword::ProcessThread]);
const IMAGES: Needs = Needs::AnyOf(&[Keyword::Loader]);
const DISKS: Needs = Needs::AnyOf(&[Keyword::DiskIo]);
const DISK_STARTS: Needs = Needs::AnyOf(&[Keyword::DiskIoInit]);
const NETWORK: Needs = Needs::AnyOf(&[Keyword::NetworkTrace]);

event_kinds! {
    Extension "Extension" hook::EXTENSION, NOTHING, None;
    SystemConfig "SystemConfig" NO_HOOK, NOTHING, None;
    SysConfigEx "SysConfigEx" NO_HOOK, NOTHING, None;
    EventMetadata "EventMetadata" NO_HOOK, NOTHING, None;
    Simulated "SimulatedTrace" NO_HOOK, NOTHING, None;
    Mark "Mark" hook::MARK, NOTHING, None;
    SamplingInterval "SampledProfileInterval" NO_HOOK, Needs::AnyOf(&[Keyword::SampledProfile]), None;
    Stack "Stack" hook::STACK, NOTHING, None;
    ProcessStart "Process Start" hook::PROCESS_START, PROCESSES, None;
    ProcessEnd "Process End" hook::PROCESS_END, PROCESSES, None;
    ProcessRundownStart "Process DCStart" hook::PROCESS_DC_START, PROCESSES, None;
    ProcessRundownEnd "Process DCEnd" hook::PROCESS_DC_END, PROCESSES, None;
    ThreadStart "Thread Start" hook::THREAD_START, PROCESSES, None;
    ThreadEnd "Thread End" hook::THREAD_END, PROCESSES, None;
    ThreadRundownStart "Thread DCStart" hook::THREAD_DC_START, PROCESSES, None;
    ThreadRundownEnd "Thread DCEnd" hook::THREAD_DC_END, PROCESSES, None;
    ImageLoad "Image Load" hook::PROCESS_LOAD_IMAGE, IMAGES, None;
    ImageUnload "Image Unload" hook::IMAGE_UNLOAD, IMAGES, None;
    ImageRundownStart "Image DCStart" hook::IMAGE_DC_START, IMAGES, None;
    ImageRundownEnd "Image DCEnd" hook::IMAGE_DC_END, IMAGES, None;
    ImageId "ImageID" NO_HOOK, IMAGES, None;
    ContextSwitch "CSwitch" hook::CONTEXT_SWITCH, Needs::AnyOf(&[Keyword::CSwitch]), Some(StackWalk::CSwitch);
    ReadyThread "ReadyThread" hook::READY_THREAD, Needs::AnyOf(&[Keyword::ReadyThread]),
        Some(StackWalk::ReadyThread);
    SetPriority "ThreadSetPriority" hook::SET_PRIORITY, Needs::AnyOf(&[Keyword::ThreadPriority]),
        Some(StackWalk::ThreadSetPriority);
    AntiStarvation "AntiStarvationBoost" hook::ANTI_STARVATION_BOOST, Needs::AnyOf(&[Keyword::AntiStarvation]), None;
    Sample "SampledProfile" hook::SAMPLE, Needs::AnyOf(&[Keyword::SampledProfile]), Some(StackWalk::SampledProfile);
    Dpc "DPC" hook::DPC, Needs::AnyOf(&[Keyword::Dpc]), None;
    ThreadedDpc "ThreadedDPC" hook::THREADED_DPC, Needs::AnyOf(&[Keyword::Dpc]), None;
    TimerDpc "TimerDPC" hook::TIMER_DPC, Needs::AnyOf(&[Keyword::Dpc]), None;
    Isr "ISR" hook::ISR, Needs::AnyOf(&[Keyword::Interrupt]), None;
    MessageIsr "ISR-MSI" hook::MESSAGE_ISR, Needs::AnyOf(&[Keyword::Interrupt]), None;
    HardFault "HardFault" hook::HARD_FAULT, Needs::AnyOf(&[Keyword::HardFaults]), Some(StackWalk::HardFault);
    DiskRead "DiskIo Read" hook::DISK_READ, DISKS, None;
    DiskWrite "DiskIo Write" hook::DISK_WRITE, DISKS, None;
    DiskReadInit "DiskIo ReadInit" hook::DISK_READ_INIT, DISK_STARTS, Some(StackWalk::DiskReadInit);
    DiskWriteInit "DiskIo WriteInit" hook::DISK_WRITE_INIT, DISK_STARTS, Some(StackWalk::DiskWriteInit);
    DiskFlush "DiskIo FlushBuffers" hook::DISK_FLUSH, DISKS, None;
    DiskFlushInit "DiskIo FlushInit" hook::DISK_FLUSH_INIT, DISK_STARTS, Some(StackWalk::DiskFlushInit);
    FileName "FileIo FileRundown" hook::FILE_NAME_RUNDOWN, Needs::AnyOf(&[Keyword::FileName]), None;
    TcpSend4 "TcpIp SendIPV4" hook::TCP_SEND_IPV4, NETWORK, None;
    TcpReceive4 "TcpIp RecvIPV4" hook::TCP_RECEIVE_IPV4, NETWORK, None;
    TcpSend6 "TcpIp SendIPV6" hook::TCP_SEND_IPV6, NETWORK, None;
    TcpReceive6 "TcpIp RecvIPV6" hook::TCP_RECEIVE_IPV6, NETWORK, None;
    UdpSend4 "UdpIp SendIPV4" hook::UDP_SEND_IPV4, NETWORK, None;
    UdpReceive4 "UdpIp RecvIPV4" hook::UDP_RECEIVE_IPV4, NETWORK, None;
    UdpSend6 "UdpIp SendIPV6" hook::UDP_SEND_IPV6, NETWORK, None;
    UdpReceive6 "UdpIp RecvIPV6" hook::UDP_RECEIVE_IPV6, NETWORK, None;
    Focus "FocusedProcessChange" NO_HOOK, Needs::Provider(Provider::Win32k), None;
    Freeze "ProcessFreeze" NO_HOOK, Needs::Provider(Provider::KernelProcess), None;
    TimerRequest "SystemTimeResolutionChange" NO_HOOK, Needs::Provider(Provider::KernelPower), None;
    TimerResolution "SystemTimeResolutionUpdate" NO_HOOK,
        Needs::Provider(Provider::KernelPower), None;
    Sleep "Sleep and resume" NO_HOOK, Needs::Provider(Provider::KernelPower), None;
    Packet "PacketFragment" NO_HOOK, Needs::Provider(Provider::PacketCapture), None;
    Collection ".NET garbage collection" NO_HOOK, Needs::Provider(Provider::DotNet), None;
    PoolThreads ".NET thread pool" NO_HOOK, Needs::Provider(Provider::DotNet), None;
    KeyDown "KeyDown" NO_HOOK, Needs::Provider(Provider::Input), None;
}

impl EventKind {
    /// Returns the layout version of the kind in a release of Windows. It is the highest version in real traces of the
    /// release. If there are no real traces of the release, it is the highest version in traces of the nearest release.
    /// Kinds that are not listed have version 2.
    pub(super) fn version(self, windows: Windows) -> u8 {
        use EventKind as K;
        let by_release = |seven, ten, latest| match windows {
            Windows::Seven => seven,
            Windows::Ten | Windows::Eleven23H2 => ten,
            Windows::Eleven25H2 => latest,
        };
        match self {
            K::ContextSwitch => by_release(2, 4, 5),
            K::ProcessStart | K::ProcessEnd | K::ProcessRundownStart | K::ProcessRundownEnd => {
                by_release(3, 4, 4)
            }
            // Windows 10 appended the thread's name to the layout, but kept the version number.
            K::ThreadStart | K::ThreadEnd | K::ThreadRundownStart | K::ThreadRundownEnd => 3,
            K::ImageLoad
            | K::ImageUnload
            | K::ImageRundownStart
            | K::ImageRundownEnd
            | K::DiskRead
            | K::DiskWrite
            | K::DiskReadInit
            | K::DiskWriteInit
            | K::DiskFlush
            | K::DiskFlushInit
            | K::SetPriority
            | K::SamplingInterval => by_release(2, 3, 3),
            _ => 2,
        }
    }
}

/// A set of event kinds, one bit for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindSet(u64);

// A set has 64 bits, one for each kind.
const _: () = assert!(EventKind::ALL.len() <= 64);

impl KindSet {
    /// Returns the kinds of events that are logged with these settings.
    pub(super) fn recorded(recording: &Recording) -> KindSet {
        KindSet::select(|kind| match kind.needs() {
            Needs::Nothing => true,
            Needs::AnyOf(keywords) => keywords.iter().any(|k| recording.has(*k)),
            Needs::Provider(provider) => recording.providers.contains(&provider),
        })
    }

    /// Returns the kinds of events that are logged with stacks under these settings.
    pub(super) fn walked(recording: &Recording) -> KindSet {
        let recorded = KindSet::recorded(recording);
        KindSet::select(|kind| {
            recorded.contains(kind) && kind.stack_walk().is_some_and(|s| recording.walks(s))
        })
    }

    fn select(belongs: impl Fn(EventKind) -> bool) -> KindSet {
        let bits = EventKind::ALL
            .iter()
            .filter(|kind| belongs(**kind))
            .map(|kind| 1 << *kind as u32);
        KindSet(bits.fold(0, |set, bit: u64| set | bit))
    }

    /// Returns true if the set contains the kind.
    #[inline]
    pub(super) fn contains(self, kind: EventKind) -> bool {
        self.0 >> kind as u32 & 1 != 0
    }
}
