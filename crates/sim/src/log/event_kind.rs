//! The kinds of events that a log holds: what each is called, which session records it, and how
//! each release of Windows logs it.

use super::recording::{Keyword, Provider, Recording, StackWalk};
use crate::windows::Windows;

/// Why a kind of event is in a log.
#[derive(Clone, Copy, Debug)]
enum Needs {
    /// It is in every log.
    Nothing,
    /// Any of these keywords.
    AnyOf(&'static [Keyword]),
    Provider(Provider),
}

macro_rules! event_kinds {
    ($($kind:ident $name:literal $hook:literal $needs:expr, $stack:expr;)+) => {
        /// A kind of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum EventKind {
            $(#[doc = $name] $kind,)+
        }

        impl EventKind {
            /// Every kind.
            pub(crate) const ALL: [EventKind; [$(EventKind::$kind),+].len()] =
                [$(EventKind::$kind),+];

            /// Its name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(EventKind::$kind => $name,)+
                }
            }

            /// The hook of a kernel event; 0 for others.
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

const NOTHING: Needs = Needs::Nothing;
const PROCESSES: Needs = Needs::AnyOf(&[Keyword::ProcThread]);
const IMAGES: Needs = Needs::AnyOf(&[Keyword::Loader]);
const DISKS: Needs = Needs::AnyOf(&[Keyword::DiskIo]);
const DISK_STARTS: Needs = Needs::AnyOf(&[Keyword::DiskIoInit]);
const NETWORK: Needs = Needs::AnyOf(&[Keyword::NetworkTrace]);

event_kinds! {
    Extension "Extension" 0x0005 NOTHING, None;
    SystemConfig "SystemConfig" 0x0000 NOTHING, None;
    SysConfigEx "SysConfigEx" 0x0000 NOTHING, None;
    EventMetadata "EventMetadata" 0x0000 NOTHING, None;
    Mark "Mark" 0x0F22 NOTHING, None;
    SamplingInterval "SampledProfileInterval" 0x0000 Needs::AnyOf(&[Keyword::Profile]), None;
    Stack "Stack" 0x1820 NOTHING, None;
    ProcessStart "Process Start" 0x0301 PROCESSES, None;
    ProcessEnd "Process End" 0x0302 PROCESSES, None;
    ProcessRundownStart "Process DCStart" 0x0303 PROCESSES, None;
    ProcessRundownEnd "Process DCEnd" 0x0304 PROCESSES, None;
    ThreadStart "Thread Start" 0x0501 PROCESSES, None;
    ThreadEnd "Thread End" 0x0502 PROCESSES, None;
    ThreadRundownStart "Thread DCStart" 0x0503 PROCESSES, None;
    ThreadRundownEnd "Thread DCEnd" 0x0504 PROCESSES, None;
    ImageLoad "Image Load" 0x030A IMAGES, None;
    ImageUnload "Image Unload" 0x1402 IMAGES, None;
    ImageRundownStart "Image DCStart" 0x1403 IMAGES, None;
    ImageRundownEnd "Image DCEnd" 0x1404 IMAGES, None;
    ImageId "ImageID" 0x0000 IMAGES, None;
    ContextSwitch "CSwitch" 0x0524 Needs::AnyOf(&[Keyword::CSwitch]), Some(StackWalk::CSwitch);
    ReadyThread "ReadyThread" 0x0532 Needs::AnyOf(&[Keyword::Dispatcher]),
        Some(StackWalk::ReadyThread);
    SetPriority "ThreadSetPriority" 0x0530 Needs::AnyOf(&[Keyword::Priority]),
        Some(StackWalk::ThreadSetPriority);
    AntiStarvation "AntiStarvationBoost" 0x053C Needs::AnyOf(&[Keyword::AntiStarvation]), None;
    Sample "SampledProfile" 0x0F2E Needs::AnyOf(&[Keyword::Profile]), Some(StackWalk::Profile);
    Dpc "DPC" 0x0F44 Needs::AnyOf(&[Keyword::Dpc]), None;
    ThreadedDpc "ThreadedDPC" 0x0F42 Needs::AnyOf(&[Keyword::Dpc]), None;
    TimerDpc "TimerDPC" 0x0F45 Needs::AnyOf(&[Keyword::Dpc]), None;
    Isr "ISR" 0x0F43 Needs::AnyOf(&[Keyword::Interrupt]), None;
    MessageIsr "ISR-MSI" 0x0F32 Needs::AnyOf(&[Keyword::Interrupt]), None;
    HardFault "HardFault" 0x0220 Needs::AnyOf(&[Keyword::HardFaults]), Some(StackWalk::HardFault);
    DiskRead "DiskIo Read" 0x010A DISKS, None;
    DiskWrite "DiskIo Write" 0x010B DISKS, None;
    DiskReadInit "DiskIo ReadInit" 0x010C DISK_STARTS, Some(StackWalk::DiskReadInit);
    DiskWriteInit "DiskIo WriteInit" 0x010D DISK_STARTS, Some(StackWalk::DiskWriteInit);
    DiskFlush "DiskIo FlushBuffers" 0x010E DISKS, None;
    DiskFlushInit "DiskIo FlushInit" 0x010F DISK_STARTS, Some(StackWalk::DiskFlushInit);
    FileName "FileIo FileRundown" 0x0424 Needs::AnyOf(&[Keyword::FileName]), None;
    TcpSend4 "TcpIp SendIPV4" 0x060A NETWORK, None;
    TcpReceive4 "TcpIp RecvIPV4" 0x060B NETWORK, None;
    TcpSend6 "TcpIp SendIPV6" 0x061A NETWORK, None;
    TcpReceive6 "TcpIp RecvIPV6" 0x061B NETWORK, None;
    UdpSend4 "UdpIp SendIPV4" 0x080A NETWORK, None;
    UdpReceive4 "UdpIp RecvIPV4" 0x080B NETWORK, None;
    UdpSend6 "UdpIp SendIPV6" 0x081A NETWORK, None;
    UdpReceive6 "UdpIp RecvIPV6" 0x081B NETWORK, None;
    Focus "FocusedProcessChange" 0x0000 Needs::Provider(Provider::Win32k), None;
    Freeze "ProcessFreeze" 0x0000 Needs::Provider(Provider::KernelProcess), None;
    TimerRequest "SystemTimeResolutionChange" 0x0000 Needs::Provider(Provider::KernelPower), None;
    TimerResolution "SystemTimeResolutionUpdate" 0x0000
        Needs::Provider(Provider::KernelPower), None;
    Sleep "Sleep and resume" 0x0000 Needs::Provider(Provider::KernelPower), None;
    Packet "PacketFragment" 0x0000 Needs::Provider(Provider::PacketCapture), None;
    KeyDown "KeyDown" 0x0000 Needs::Provider(Provider::Input), None;
}

impl EventKind {
    /// Version of the layout in which a release logs the kind: the highest seen in real traces of
    /// it, or that of the nearest release seen. Anything else than version 2 is named here.
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
            // Windows 10 appended the thread's name and kept the version.
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

/// A set of kinds.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindSet(u64);

// Every kind has its bit.
const _: () = assert!(EventKind::ALL.len() <= 64);

impl KindSet {
    /// The kinds that a recording holds.
    pub(super) fn recorded(recording: &Recording) -> KindSet {
        KindSet::of(|kind| match kind.needs() {
            Needs::Nothing => true,
            Needs::AnyOf(keywords) => keywords.iter().any(|k| recording.has(*k)),
            Needs::Provider(provider) => recording.providers.contains(&provider),
        })
    }

    /// The kinds whose stacks a recording holds.
    pub(super) fn walked(recording: &Recording) -> KindSet {
        let recorded = KindSet::recorded(recording);
        KindSet::of(|kind| {
            recorded.contains(kind) && kind.stack_walk().is_some_and(|s| recording.walks(s))
        })
    }

    fn of(belongs: impl Fn(EventKind) -> bool) -> KindSet {
        let bits = EventKind::ALL
            .iter()
            .filter(|kind| belongs(**kind))
            .map(|kind| 1 << *kind as u32);
        KindSet(bits.fold(0, |set, bit: u64| set | bit))
    }

    /// Whether the kind belongs to the set.
    #[inline]
    pub(super) fn contains(self, kind: EventKind) -> bool {
        self.0 >> kind as u32 & 1 != 0
    }
}
