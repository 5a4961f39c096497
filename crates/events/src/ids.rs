//! Ids of events, event classes and providers that the program's code refers to.
//!
//! A hook id identifies a kind of kernel event. The upper byte of the hook id is the event's group. The lower
//! byte is the opcode. The names of the events are from `data/kernel-events.txt`.

/// Class GUIDs of classic events that have no kernel group.
pub mod class {
    use etl::Guid;
    pub use etl::ids::class::*;

    /// Configuration of the machine (volumes, build, …). These events are added when a trace is merged.
    pub const SYS_CONFIG_EX: Guid = Guid::from_u128(0x9b79ee91_b5fd_41c0_a243_4248e266e9d0);
    /// Results of Windows' performance assessment (WinSAT). These events are added when a trace is merged.
    pub const WINSAT: Guid = Guid::from_u128(0xed54dff8_c409_4cf6_bf83_05e1e61a09c4);
}

/// GUIDs of providers.
pub mod provider {
    use etl::Guid;

    /// Microsoft-Windows-Win32k.
    pub const WIN32K: Guid = Guid::from_u128(0x8c416c79_d49b_4f01_a467_e56d3aa8234c);
    /// Microsoft-Windows-Kernel-Process.
    pub const KERNEL_PROCESS: Guid = Guid::from_u128(0x22fb2cd6_0e7b_422b_a0c7_2fad1fd0e716);
    /// Microsoft-Windows-Kernel-Power.
    pub const KERNEL_POWER: Guid = Guid::from_u128(0x331c3b3a_2005_44c2_ac5e_77220c37d6b4);
    /// Microsoft-Windows-Kernel-Network.
    pub const KERNEL_NETWORK: Guid = Guid::from_u128(0x7dd42a49_5329_4832_8dfd_43d979153a88);
    /// Microsoft-Windows-DotNETRuntime.
    pub const DOTNET_RUNTIME: Guid = Guid::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);
    /// Microsoft-Windows-NDIS-PacketCapture.
    pub const NDIS_PACKET_CAPTURE: Guid = Guid::from_u128(0x2ed6006e_4729_4609_b423_3ee7bcd678ef);
    /// Microsoft-Windows-PktMon.
    pub const PKTMON: Guid = Guid::from_u128(0x4d4f80d9_c8bd_4d73_bb5b_19c90402c5ac);
    /// Provider `Multi-Main` of UIforETW's manifest.
    pub const MULTI_MAIN: Guid = Guid::from_u128(0x231cf54b_22a0_49e4_a59a_47052a30ffed);
    /// Provider `Multi-Worker` of UIforETW's manifest.
    pub const MULTI_WORKER: Guid = Guid::from_u128(0xe9c3da11_e2a5_48fd_9cd3_17e7c764d303);
    /// Provider `Multi-Input` of UIforETW's manifest.
    pub const MULTI_INPUT: Guid = Guid::from_u128(0x70e2503b_c6f3_4780_b323_bd8ed0c61bf8);
    /// Provider `Laglab-Input`, whose events `laglab record input` writes. The GUID is computed from the
    /// provider's name, as in TraceLogging.
    pub const LAGLAB_INPUT: Guid = Guid::from_u128(0xcc034ed5_a9f4_5c52_dfab_c2b323286686);
    /// Provider `Laglab-Simulator`, whose event marks a trace as simulated. The GUID is computed from the
    /// provider's name, as in TraceLogging.
    pub const LAGLAB_SIMULATOR: Guid = Guid::from_u128(0xe375a590_30ff_59b0_572d_7a384fba8342);
}

macro_rules! hooks {
    ($($constant:ident = $hook:literal $name:literal;)+) => {
        /// Hook ids of kernel events.
        pub mod hook {
            pub use etl::ids::hook::*;

            $(
                #[doc = concat!("Hook of `", $name, "`.")]
                pub const $constant: u16 = $hook;
            )+
        }

        #[cfg(test)]
        const HOOKS: &[(u16, &str)] = &[$(($hook, $name)),+];
    };
}

hooks! {
    DISK_READ = 0x010A "DiskIo/Read";
    DISK_WRITE = 0x010B "DiskIo/Write";
    DISK_READ_INIT = 0x010C "DiskIo/ReadInit";
    DISK_WRITE_INIT = 0x010D "DiskIo/WriteInit";
    DISK_FLUSH = 0x010E "DiskIo/FlushBuffers";
    DISK_FLUSH_INIT = 0x010F "DiskIo/FlushInit";
    OPTICAL_READ = 0x0137 "DiskIo/OpticalRead";
    OPTICAL_READ_INIT = 0x013A "DiskIo/OpticalReadInit";
    OPTICAL_FLUSH_INIT = 0x013C "DiskIo/OpticalFlushInit";

    HARD_FAULT = 0x0220 "PageFault/HardFault";

    PROCESS_START = 0x0301 "Process/Start";
    PROCESS_END = 0x0302 "Process/End";
    PROCESS_DC_START = 0x0303 "Process/DCStart";
    PROCESS_DC_END = 0x0304 "Process/DCEnd";
    PROCESS_LOAD_IMAGE = 0x030A "Image/Load";
    PROCESS_TERMINATE = 0x030B "Process/Terminate";
    PROCESS_DEFUNCT = 0x0327 "Process/Defunct";

    FILE_NAME = 0x0400 "FileIo/Name";
    FILE_NAME_CREATE = 0x0420 "FileIo/FileCreate";
    FILE_NAME_DELETE = 0x0423 "FileIo/FileDelete";
    FILE_NAME_RUNDOWN = 0x0424 "FileIo/FileRundown";
    FILE_CREATE = 0x0440 "FileIo/Create";
    FILE_SET_LINK_PATH = 0x0451 "FileIo/SetLinkPath";

    THREAD_START = 0x0501 "Thread/Start";
    THREAD_END = 0x0502 "Thread/End";
    THREAD_DC_START = 0x0503 "Thread/DCStart";
    THREAD_DC_END = 0x0504 "Thread/DCEnd";
    CONTEXT_SWITCH = 0x0524 "Thread/CSwitch";
    COMPACT_CONTEXT_SWITCH = 0x0525 "Thread/CompactCSwitch";
    SET_PRIORITY = 0x0530 "Thread/SetPriority";
    SET_BASE_PRIORITY = 0x0531 "Thread/SetBasePriority";
    READY_THREAD = 0x0532 "Thread/ReadyThread";
    SET_PAGE_PRIORITY = 0x0533 "Thread/SetPagePriority";
    SET_IO_PRIORITY = 0x0534 "Thread/SetIoPriority";
    SET_AFFINITY = 0x0535 "Thread/SetAffinity";
    ANTI_STARVATION_BOOST = 0x053C "Thread/AntiStarvationBoost";
    THREAD_MIGRATION = 0x053D "Thread/ThreadMigration";
    AUTO_BOOST_SET_FLOOR = 0x0542 "Thread/AutoBoostSetFloor";
    AUTO_BOOST_CLEAR_FLOOR = 0x0543 "Thread/AutoBoostClearFloor";
    THREAD_SET_NAME = 0x0548 "Thread/SetName";

    // The opcode of an IPv6 event is 16 higher than the opcode of the same IPv4 event.
    TCP_SEND_IPV4 = 0x060A "TcpIp/SendIPV4";
    TCP_RECEIVE_IPV4 = 0x060B "TcpIp/RecvIPV4";
    TCP_RECONNECT_IPV4 = 0x0610 "TcpIp/ReconnectIPV4";
    TCP_COPY_IPV4 = 0x0612 "TcpIp/TCPCopyIPV4";
    TCP_SEND_IPV6 = 0x061A "TcpIp/SendIPV6";
    TCP_RECEIVE_IPV6 = 0x061B "TcpIp/RecvIPV6";
    TCP_RECONNECT_IPV6 = 0x0620 "TcpIp/ReconnectIPV6";
    TCP_COPY_IPV6 = 0x0622 "TcpIp/TCPCopyIPV6";

    UDP_SEND_IPV4 = 0x080A "UdpIp/SendIPV4";
    UDP_RECEIVE_IPV4 = 0x080B "UdpIp/RecvIPV4";
    UDP_SEND_IPV6 = 0x081A "UdpIp/SendIPV6";
    UDP_RECEIVE_IPV6 = 0x081B "UdpIp/RecvIPV6";

    CPU = 0x0B0A "SystemConfig/CPU";
    SERVICE = 0x0B0F "SystemConfig/Services";
    NUMA_NODE = 0x0B18 "SystemConfig/NumaNode";
    PLATFORM = 0x0B19 "SystemConfig/Platform";
    PROCESSOR_GROUP = 0x0B1A "SystemConfig/ProcessorGroup";
    PROCESSOR_NUMBER = 0x0B1B "SystemConfig/ProcessorNumber";
    PROCESSORS = 0x0B23 "SystemConfig/Processors";
    VIRTUALIZATION = 0x0B24 "SystemConfig/Virtualization";

    MARK = 0x0F22 "PerfInfo/Mark";
    SAMPLE = 0x0F2E "PerfInfo/SampledProfile";
    MESSAGE_ISR = 0x0F32 "PerfInfo/ISR-MSI";
    THREADED_DPC = 0x0F42 "PerfInfo/ThreadedDPC";
    ISR = 0x0F43 "PerfInfo/ISR";
    DPC = 0x0F44 "PerfInfo/DPC";
    TIMER_DPC = 0x0F45 "PerfInfo/TimerDPC";
    IO_TIMER = 0x0F46 "PerfInfo/IoTimer";
    SAMPLE_SET_INTERVAL = 0x0F48 "PerfInfo/SampledProfileSetInterval";
    SAMPLE_DC_START = 0x0F49 "PerfInfo/SampledProfileDCStart";
    SAMPLE_DC_END = 0x0F4A "PerfInfo/SampledProfileDCEnd";
    PASSIVE_ISR = 0x0F5F "PerfInfo/ISR-Passive";

    IMAGE_UNLOAD = 0x1402 "Image/Unload";
    IMAGE_DC_START = 0x1403 "Image/DCStart";
    IMAGE_DC_END = 0x1404 "Image/DCEnd";
    IMAGE_LOAD = 0x140A "Image/Load";

    STACK = 0x1820 "StackWalk/Stack";
    STACK_KEY_CREATE = 0x1822 "StackWalk/KeyCreate";
    STACK_KEY_DELETE = 0x1823 "StackWalk/KeyDelete";
    STACK_KEY_RUNDOWN = 0x1824 "StackWalk/KeyRundown";
    STACK_KEY_KERNEL = 0x1825 "StackWalk/StackKeyKernel";
    STACK_KEY_USER = 0x1826 "StackWalk/StackKeyUser";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Class;

    #[test]
    fn ids_and_names_agree_with_the_kernel_table() {
        for (guid, name) in [
            (class::LOST_EVENT, "LostEvent"),
            (class::IMAGE_ID, "ImageId"),
            (class::EVENT_METADATA, "EventMetadata"),
            (class::SYS_CONFIG_EX, "SysConfigEx"),
            (class::WINSAT, "WinSat"),
        ] {
            assert_eq!(Class::of_guid(guid).unwrap().name, name);
        }
        for (hook, name) in HOOKS {
            let (class, opcode) = Class::of_hook(*hook).unwrap();
            let event = class.event_name(opcode).unwrap();
            assert_eq!(format!("{}/{event}", class.name), *name, "{hook:#06X}");
        }
    }
}
