//! Events about the trace and its machine, at the trace's start and end.

use std::io::{Seek, Write};

use etl::write::{self, Injected, ProviderEvent, TraceLogging, companion, provider_traits};
use etl::{Descriptor, Guid, ext_type};
use events::ids::class::SYS_CONFIG_EX;
use events::ids::hook;
use events::ids::provider::LAGLAB_SIMULATOR;

use super::modules::SYSTEM_VOLUME;
use super::payload::Payload;
use super::recording::group_flags;
use super::{EventKind, Log, Recording, Who};
use crate::time::Time;
use crate::windows::Windows;

/// Number of `EVENT_TRACE` group masks of a session.
const MASKS: usize = 8;
/// Group flag that enables events about the system's configuration. The flag belongs to mask 6, the last mask
/// but one.
const SYSTEM_CONFIGURATION: u32 = 0xC000_0001;
/// Group flag that enables events about services. This flag belongs to mask 6, too.
const SERVICES_CONFIGURATION: u32 = 0xC000_0010;

/// A Windows service.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) process: u32,
    /// Tag of the service's threads.
    pub(crate) tag: u32,
    /// Short name.
    pub(crate) name: String,
    pub(crate) display_name: String,
    /// Image name of its process.
    pub(crate) image: String,
}

impl<W: Write + Seek> Log<W> {
    /// Adds a service, which is logged at the trace's end.
    pub(crate) fn service(&mut self, service: Service) {
        self.services.push(service);
    }

    /// Logs a mark, an event that contains a text.
    pub(crate) fn mark(&mut self, cpu: u16, time: Time, text: &str) {
        let mut payload = Vec::new();
        payload.narrow(text);
        self.kernel(EventKind::Mark, cpu, time, None, &payload, None);
    }

    /// Logs the events at a trace's start.
    pub(super) fn begin(&mut self, recording: &Recording) {
        let mut masks = [0u32; MASKS];
        let configuration = [SYSTEM_CONFIGURATION, SERVICES_CONFIGURATION];
        for flags in recording
            .kernel
            .iter()
            .filter_map(|keyword| group_flags(*keyword))
            .chain(configuration)
        {
            masks[(flags >> 29) as usize] |= flags & 0x1FFF_FFFF;
        }
        self.group_masks = masks;
        self.mark_as_simulated();
        self.extension(hook::EXTENSION, Some(Who::NO_THREAD), 0);
        self.sampling_interval(hook::SAMPLE_DC_START, 0);
        self.build_info();
        for (device, drive) in [
            (format!(r"{SYSTEM_VOLUME}\"), r"C:\"),
            (r"\SystemRoot\".to_owned(), r"C:\Windows\"),
            (r"\??\".to_owned(), ""),
        ] {
            self.sys_config_ex(35, Vec::new().wide(&device).wide(drive));
        }
    }

    /// Logs an event that tells readers that the trace is simulated. This event is never lost.
    fn mark_as_simulated(&mut self) {
        let event = TraceLogging::new(EventKind::Simulated.name());
        let traits = provider_traits("Laglab-Simulator", None);
        let header = ProviderEvent {
            provider: LAGLAB_SIMULATOR,
            descriptor: Descriptor {
                channel: 11,
                level: 4,
                ..Descriptor::default()
            },
            time: self.raw(0, 0),
            thread_id: Who::NO_THREAD.thread,
            process_id: Who::NO_THREAD.process,
            activity: Guid::ZERO,
            extended: &[
                (ext_type::TRACELOGGING_SCHEMA, &event.schema()),
                (ext_type::PROVIDER_TRAITS, &traits),
            ],
        };
        let result = self.writer.provider(0, header, event.payload());
        self.wrote(EventKind::Simulated, result);
    }

    /// Logs the events at a trace's end.
    pub(super) fn end(&mut self, time: Time) {
        self.sampling_interval(hook::SAMPLE_DC_END, time);
        self.file_names(time);
        self.describe(time);
        self.processors(time);
        for service in std::mem::take(&mut self.services) {
            let mut payload = Vec::new();
            payload
                .u32(service.process)
                // State of the service: `SERVICE_RUNNING`.
                .u32(4)
                .u32(service.tag)
                .wide(&service.name)
                .wide(&service.display_name)
                .wide(&service.image)
                // Names of the load-order group and the svchost group of the service, both empty.
                .wide("")
                .wide("");
            self.system_config(hook::SERVICE, 3, time, Some(Who::NO_THREAD), &payload);
        }
        self.extension(hook::END_EXTENSION, None, time);
        let complete = (hook::RUNDOWN_COMPLETE, 2);
        self.kernel_hook(EventKind::Extension, complete, 0, time, None, &[], None);
    }

    /// Logs the session's group masks and the version of the kernel's events.
    fn extension(&mut self, hook: u16, who: Option<Who>, time: Time) {
        let kernel_version = match self.computer.windows {
            Windows::Seven => 42,
            // 80 is the kernel version of build 19041. The kernel version of later builds is unknown.
            _ => 80,
        };
        let payload = &companion::extension(self.group_masks, kernel_version);
        self.kernel_hook(EventKind::Extension, (hook, 2), 0, time, who, payload, None);
    }

    fn sampling_interval(&mut self, hook: u16, time: Time) {
        let kind = EventKind::SamplingInterval;
        let version = kind.version(self.computer.windows);
        let mut payload = Vec::new();
        payload
            // Source of the samples (0: the timer, not a hardware counter), new interval, previous
            // interval. Intervals are in 100 ns.
            .u32(0)
            .u32(self.sampling_interval)
            .u32(10_000);
        if version >= 3 {
            payload.wide("Timer");
        }
        let who = Some(Who::NO_THREAD);
        self.kernel_hook(kind, (hook, version), 0, time, who, &payload, None);
    }

    fn build_info(&mut self) {
        let windows = self.computer.windows;
        let (lab, product) = match (windows, self.computer.server) {
            (Windows::Seven, false) => ("7601.win7sp1_rtm.101119-1850", "Windows 7 Professional"),
            (Windows::Seven, true) => (
                "7601.win7sp1_rtm.101119-1850",
                "Windows Server 2008 R2 Standard",
            ),
            (Windows::Ten, false) => ("19041.vb_release.191206-1406", "Windows 10 Pro"),
            // The name comes from a registry value that still contains "Windows 10" in Windows 11.
            (Windows::Eleven23H2, false) => ("22621.ni_release.220506-1250", "Windows 10 Pro"),
            (Windows::Eleven25H2, false) => ("26100.ge_release.240331-1435", "Windows 10 Pro"),
            // Names of the server editions with the builds nearest to the simulated builds.
            (Windows::Ten, true) => ("19041.vb_release.191206-1406", "Windows Server"),
            (Windows::Eleven23H2, true) => ("22621.ni_release.220506-1250", "Windows Server"),
            (Windows::Eleven25H2, true) => (
                "26100.ge_release.240331-1435",
                "Windows Server 2025 Standard",
            ),
        };
        let installed = self.computer.boot.saturating_sub(864_000_000_000);
        self.sys_config_ex(32, Vec::new().u64(installed).wide(lab).wide(product));
    }

    /// Logs processors, processor groups and NUMA nodes.
    fn processors(&mut self, time: Time) {
        let computer = &self.computer;
        let cpus = computer.cpus.clone();
        let is_seven = computer.windows == Windows::Seven;
        let mut cpu = Vec::with_capacity(1 << 10);
        cpu.u32(computer.cpu_mhz)
            .u32(cpus.len() as u32)
            .u32(computer.memory_mib)
            // Page size and allocation granularity, in bytes.
            .u32(4 << 10)
            .u32(64 << 10)
            .wide_array(&computer.name, 256)
            .wide_array("", 134)
            // Hyper-threading flags.
            .u64(0);
        if !is_seven {
            cpu.u64(0x7FFF_FFFE_FFFF)
                // Architecture 9 (AMD64), family 6, revision 0x9E0A (model 158, stepping 10).
                .u16(9)
                .u16(6)
                .u16(0x9E0A)
                // Physical address extension on, no-execute on, memory speed.
                .u8(1)
                .u8(1)
                .u32(3_200);
        }
        let mhz = computer.cpu_mhz;
        self.system_config(
            hook::CPU,
            if is_seven { 2 } else { 3 },
            time,
            Some(Who::NO_THREAD),
            &cpu,
        );

        let nodes = cpus.iter().map(|cpu| cpu.node + 1).max().unwrap_or(0);
        let mut numa = Vec::new();
        numa.u32(nodes.into());
        for node in 0..nodes {
            let of_node = || cpus.iter().filter(move |cpu| cpu.node == node);
            // A node is logged with one group, the lowest one.
            let group = of_node().map(|cpu| cpu.group).min().unwrap_or(0);
            let mask = of_node()
                .filter(|cpu| cpu.group == group)
                .fold(0, |mask, cpu| mask | 1 << (cpu.number & 63));
            numa.u64(mask).u16(group).bytes(&[0; 6]);
        }
        self.system_config(hook::NUMA_NODE, 2, time, None, &numa);

        let groups = cpus.iter().map(|cpu| cpu.group + 1).max().unwrap_or(0);
        let mut affinities = Vec::new();
        affinities.u32(groups.into());
        for group in 0..groups {
            let of_group = cpus.iter().filter(|cpu| cpu.group == group);
            affinities.u64(of_group.fold(0, |mask, cpu| mask | 1 << (cpu.number & 63)));
        }
        self.system_config(hook::PROCESSOR_GROUP, 2, time, None, &affinities);

        let mut numbers = Vec::new();
        numbers.u32(cpus.len() as u32);
        for cpu in &cpus {
            numbers.u16(cpu.group).u8(cpu.number).u8(0);
        }
        self.system_config(hook::PROCESSOR_NUMBER, 2, time, None, &numbers);

        if !is_seven {
            for index in 0..cpus.len() as u32 {
                let mut processor = Vec::with_capacity(428);
                processor
                    .u32(index)
                    .u32(0x3D1B_3FFF)
                    .u32(mhz)
                    .wide_array("Simulated processor", 64)
                    .wide_array("Intel64 Family 6 Model 158 Stepping 10", 128)
                    .wide_array("GenuineIntel", 16);
                self.system_config(hook::PROCESSORS, 2, time, Some(Who::NO_THREAD), &processor);
            }
        }
    }

    fn system_config(
        &mut self,
        hook: u16,
        version: u8,
        time: Time,
        who: Option<Who>,
        payload: &[u8],
    ) {
        let kind = EventKind::SystemConfig;
        self.kernel_hook(kind, (hook, version), 0, time, who, payload, None);
    }

    fn sys_config_ex(&mut self, opcode: u8, payload: &[u8]) {
        let mut event = Injected {
            class: SYS_CONFIG_EX,
            opcode,
            version: 0,
            payload: write::Payload::new(),
        };
        event.payload.bytes(payload);
        self.injected(EventKind::SysConfigEx, &event, 0, 0, Who::NO_THREAD);
    }
}
