//! What a trace says of itself and its machine, at its beginning and at its end.

use std::io::{Seek, Write};

use etl::Guid;
use etl::write::companion::hook;
use etl::write::{self, Injected, companion};

use super::modules::SYSTEM_VOLUME;
use super::payload::Payload;
use super::{EventKind, Log, Recording, Who};
use crate::time::Time;
use crate::windows::Windows;

/// The class of the events with which the merge step describes the machine.
const SYS_CONFIG_EX: Guid = Guid::new(
    0x9B79_EE91,
    0xB5FD,
    0x41C0,
    [0xA2, 0x43, 0x42, 0x48, 0xE2, 0x66, 0xE9, 0xD0],
);
/// `EVENT_TRACE` group masks of a session.
const MASKS: usize = 8;
/// Flag of the last mask but one: the system's configuration.
const SYSTEM_CONFIGURATION: u32 = 0xC000_0001;
/// Flag of the services' configuration.
const SERVICES_CONFIGURATION: u32 = 0xC000_0010;

/// A service.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// The process that runs it.
    pub(crate) process: u32,
    /// The tag that its threads carry.
    pub(crate) tag: u32,
    /// Its short name.
    pub(crate) name: String,
    /// Its name for people.
    pub(crate) display_name: String,
    /// File name of its process's image.
    pub(crate) image: String,
}

impl<W: Write + Seek> Log<W> {
    /// Tells of a service, which is logged when the trace ends.
    pub(crate) fn service(&mut self, service: Service) {
        self.services.push(service);
    }

    /// Logs a mark.
    pub(crate) fn mark(&mut self, cpu: u16, time: Time, text: &str) {
        let mut payload = Vec::new();
        payload.narrow(text);
        self.kernel(EventKind::Mark, cpu, time, None, &payload, None);
    }

    /// Logs what stands at a trace's beginning.
    pub(super) fn begin(&mut self, recording: &Recording) {
        let mut masks = [0u32; MASKS];
        let configuration = [SYSTEM_CONFIGURATION, SERVICES_CONFIGURATION];
        for flags in recording
            .kernel
            .iter()
            .map(|keyword| keyword.group_flags())
            .chain(configuration)
        {
            masks[(flags >> 29) as usize] |= flags & 0x1FFF_FFFF;
        }
        self.group_masks = masks;
        self.extension(hook::EXTENSION, Some(Who::NOBODY), 0);
        self.sampling_interval(0x0F49, 0);
        self.build_info();
        for (device, drive) in [
            (format!(r"{SYSTEM_VOLUME}\"), r"C:\"),
            (r"\SystemRoot\".to_owned(), r"C:\Windows\"),
            (r"\??\".to_owned(), ""),
        ] {
            self.sys_config_ex(35, Vec::new().wide(&device).wide(drive));
        }
    }

    /// Logs what stands at a trace's end.
    pub(super) fn end(&mut self, time: Time) {
        self.sampling_interval(0x0F4A, time);
        self.file_names(time);
        self.describe(time);
        self.processors(time);
        for service in std::mem::take(&mut self.services) {
            let mut payload = Vec::new();
            payload
                .u32(service.process)
                // SERVICE_RUNNING
                .u32(4)
                .u32(service.tag)
                .wide(&service.name)
                .wide(&service.display_name)
                .wide(&service.image)
                // Neither in a load-order group nor in one of svchost's.
                .wide("")
                .wide("");
            self.system_config(0x0B0F, 3, time, Some(Who::NOBODY), &payload);
        }
        self.extension(hook::END_EXTENSION, None, time);
        let complete = (hook::RUNDOWN_COMPLETE, 2);
        self.kernel_hook(EventKind::Extension, complete, 0, time, None, &[], None);
    }

    /// The group masks of the session and the version of the kernel's events.
    fn extension(&mut self, hook: u16, who: Option<Who>, time: Time) {
        let kernel_version = match self.computer.windows {
            Windows::Seven => 42,
            // As of build 19041; what later ones say is not known.
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
            // The timer, not a hardware counter; the new interval and the one before.
            .u32(0)
            .u32(self.sampling_interval)
            .u32(10_000);
        if version >= 3 {
            payload.wide("Timer");
        }
        let who = Some(Who::NOBODY);
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
            // Windows kept the name in the registry from which this is taken.
            (Windows::Eleven23H2, false) => ("22621.ni_release.220506-1250", "Windows 10 Pro"),
            (Windows::Eleven25H2, false) => ("26100.ge_release.240331-1435", "Windows 10 Pro"),
            // The server editions nearest to the builds.
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

    /// Processors, groups and nodes.
    fn processors(&mut self, time: Time) {
        let computer = &self.computer;
        let cpus = computer.cpus.clone();
        let is_seven = computer.windows == Windows::Seven;
        let mut cpu = Vec::with_capacity(1 << 10);
        cpu.u32(computer.cpu_mhz)
            .u32(cpus.len() as u32)
            .u32(computer.memory_mib)
            // A page, and what memory is reserved by.
            .u32(4 << 10)
            .u32(64 << 10)
            .wide_array(&computer.name, 256)
            .wide_array("", 134)
            // Hyper-threading flags.
            .u64(0);
        if !is_seven {
            cpu.u64(0x7FFF_FFFE_FFFF)
                // An AMD64 processor of family 6, model 158, stepping 10.
                .u16(9)
                .u16(6)
                .u16(0x9E0A)
                // Address extensions and no-execute are on; speed of the memory.
                .u8(1)
                .u8(1)
                .u32(3_200);
        }
        let mhz = computer.cpu_mhz;
        self.system_config(
            0x0B0A,
            if is_seven { 2 } else { 3 },
            time,
            Some(Who::NOBODY),
            &cpu,
        );

        let nodes = cpus.iter().map(|cpu| cpu.node + 1).max().unwrap_or(0);
        let mut numa = Vec::new();
        numa.u32(nodes.into());
        for node in 0..nodes {
            let of_node = || cpus.iter().filter(move |cpu| cpu.node == node);
            // A node lies in one group.
            let group = of_node().map(|cpu| cpu.group).min().unwrap_or(0);
            let mask = of_node()
                .filter(|cpu| cpu.group == group)
                .fold(0, |mask, cpu| mask | 1 << (cpu.number & 63));
            numa.u64(mask).u16(group).bytes(&[0; 6]);
        }
        self.system_config(0x0B18, 2, time, None, &numa);

        let groups = cpus.iter().map(|cpu| cpu.group + 1).max().unwrap_or(0);
        let mut affinities = Vec::new();
        affinities.u32(groups.into());
        for group in 0..groups {
            let of_group = cpus.iter().filter(|cpu| cpu.group == group);
            affinities.u64(of_group.fold(0, |mask, cpu| mask | 1 << (cpu.number & 63)));
        }
        self.system_config(0x0B1A, 2, time, None, &affinities);

        let mut numbers = Vec::new();
        numbers.u32(cpus.len() as u32);
        for cpu in &cpus {
            numbers.u16(cpu.group).u8(cpu.number).u8(0);
        }
        self.system_config(0x0B1B, 2, time, None, &numbers);

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
                self.system_config(0x0B23, 2, time, Some(Who::NOBODY), &processor);
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
        self.injected(EventKind::SysConfigEx, &event, 0, 0, Who::NOBODY);
    }
}
