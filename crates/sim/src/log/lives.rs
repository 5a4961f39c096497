//! Processes, threads and images: their beginnings, their ends, and that they are there.

use std::io::{Seek, Write};

use etl::write::{ImageId, Injected, Rsds};

use super::modules::Module;
use super::payload::Payload;
use super::{EventKind, Log, Who};
use crate::time::Time;
use crate::windows::Windows;

/// Exit status of what has not exited (`STATUS_PENDING`).
const STILL_RUNNING: u32 = 0x103;

/// Which event of a life it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It begins.
    Start,
    /// It ends.
    End,
    /// It is there when the trace begins.
    RundownStart,
    /// It is there when the trace ends.
    RundownEnd,
}

/// Whose a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum User {
    /// The person at the machine.
    #[default]
    Person,
    /// The system itself, S-1-5-18.
    LocalSystem,
    /// A service with few rights, S-1-5-19.
    LocalService,
    /// A service that uses the network, S-1-5-20.
    NetworkService,
}

impl User {
    /// Sub-authorities of the SID under the NT authority.
    fn sub_authorities(self) -> &'static [u32] {
        match self {
            User::Person => &[21, 1_004_336_348, 1_177_238_915, 682_003_330, 1_001],
            User::LocalSystem => &[18],
            User::LocalService => &[19],
            User::NetworkService => &[20],
        }
    }
}

/// A process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process<'a> {
    /// Its id.
    pub(crate) id: u32,
    /// The process that created it.
    pub(crate) parent: u32,
    /// Its terminal session; 0xFFFF_FFFF for the system's own.
    pub(crate) session: u32,
    /// Whose it is.
    pub(crate) user: User,
    /// File name of its image.
    pub(crate) image: &'a str,
    /// Its command line.
    pub(crate) command_line: &'a str,
    /// Full name of its package, empty if it has none; logged since Windows 8.
    pub(crate) package: &'a str,
}

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thread<'a> {
    /// Its process and its id.
    pub(crate) who: Who,
    /// Base priority, 0 to 31.
    pub(crate) base_priority: u8,
    /// Processors of its group that it may run on.
    pub(crate) affinity: u64,
    /// Where its own code begins.
    pub(crate) start_address: u64,
    /// The service that it works for; 0 for none.
    pub(crate) service_tag: u32,
    /// Its name, often empty; logged since Windows 10.
    pub(crate) name: &'a str,
}

impl<W: Write + Seek> Log<W> {
    /// Logs an event of a process's life; a start or an end is logged by `by`.
    pub(crate) fn process(
        &mut self,
        cpu: u16,
        time: Time,
        life: Life,
        process: &Process<'_>,
        by: Who,
    ) {
        let kind = match life {
            Life::Start => EventKind::ProcessStart,
            Life::End => EventKind::ProcessEnd,
            Life::RundownStart => EventKind::ProcessRundownStart,
            Life::RundownEnd => EventKind::ProcessRundownEnd,
        };
        let has_package = !process.package.is_empty();
        let mut payload = Vec::with_capacity(256);
        payload
            .u64(object_address(process.id))
            .u32(process.id)
            .u32(process.parent)
            .u32(process.session)
            .u32(if life == Life::End { 0 } else { STILL_RUNNING })
            // Made up: where its page tables are.
            .u64(u64::from(process.id) << 16);
        let since_eight = self.computer.windows > Windows::Seven;
        if since_eight {
            // 1: it has an application id; 8: it is packaged.
            payload.u32(if has_package { 1 | 8 } else { 0 });
        }
        put_user(&mut payload, process);
        payload.narrow(process.image).wide(process.command_line);
        if since_eight {
            payload
                .wide(process.package)
                .wide(if has_package { "App" } else { "" });
        }
        let who = self.header_of(life, by);
        self.kernel(kind, cpu, time, who, &payload, None);
    }

    /// Logs an event of a thread's life; a start or an end is logged by `by`.
    pub(crate) fn thread(
        &mut self,
        cpu: u16,
        time: Time,
        life: Life,
        thread: &Thread<'_>,
        by: Who,
    ) {
        let kind = match life {
            Life::Start => EventKind::ThreadStart,
            Life::End => EventKind::ThreadEnd,
            Life::RundownStart => EventKind::ThreadRundownStart,
            Life::RundownEnd => EventKind::ThreadRundownEnd,
        };
        let id = u64::from(thread.who.thread);
        let kernel_stack = 0xFFFF_F880_0000_0000 + id * 0x1_0000;
        // Threads of the idle process and of System have no user part.
        let is_user = !matches!(thread.who.process, 0 | 4);
        let user = |address: u64| if is_user { address } else { 0 };
        let user_stack = 0x10_0000_0000 + id * 0x10_0000;
        let mut payload = Vec::with_capacity(128);
        payload
            .u32(thread.who.process)
            .u32(thread.who.thread)
            .u64(kernel_stack)
            .u64(kernel_stack - 0x6000)
            .u64(user(user_stack))
            .u64(user(user_stack - 0x1_0000))
            .u64(thread.affinity)
            .u64(thread.start_address)
            // Where its environment block is.
            .u64(user(0x20_0000_0000 + id * 0x2000))
            .u32(thread.service_tag)
            .u8(thread.base_priority)
            // Priorities of its memory and I/O, as threads usually have them, and no flags.
            .u8(5)
            .u8(2)
            .u8(0);
        if self.computer.windows > Windows::Seven {
            payload.wide(thread.name);
        }
        let who = match life {
            Life::Start | Life::End => by,
            Life::RundownStart | Life::RundownEnd => Who::NOBODY,
        };
        self.kernel(kind, cpu, time, Some(who), &payload, None);
    }

    /// Logs an event of all images that a process has mapped (process 0: the kernel's), with what
    /// identifies them where they begin. A start or an end is logged by `by`.
    pub(crate) fn images(&mut self, cpu: u16, time: Time, life: Life, process: u32, by: Who) {
        let kind = match life {
            Life::Start => EventKind::ImageLoad,
            Life::End => EventKind::ImageUnload,
            Life::RundownStart => EventKind::ImageRundownStart,
            Life::RundownEnd => EventKind::ImageRundownEnd,
        };
        if !self.records(kind) {
            return;
        }
        let windows = self.computer.windows;
        let events = |module: &Module| {
            (
                image(module, process, windows),
                image_id(module, process),
                pdb_id(module, process),
            )
        };
        let events: Vec<_> = match process {
            0 => self.modules.of_kernel().map(events).collect(),
            _ => self.modules.of_process(process).map(events).collect(),
        };
        let who = self.header_of(life, by);
        let id_who = who.unwrap_or(Who::NOBODY);
        for (image, image_id, pdb_id) in events {
            self.kernel(kind, cpu, time, who, &image, None);
            if matches!(life, Life::Start | Life::RundownStart) {
                let id = EventKind::ImageId;
                self.injected(id, &image_id, cpu, time, id_who);
                self.injected(id, &pdb_id, cpu, time, id_who);
            }
        }
    }

    /// Who stands in the header: rundown events have none since Windows 8.
    fn header_of(&self, life: Life, by: Who) -> Option<Who> {
        match (life, self.computer.windows) {
            (Life::Start | Life::End, _) => Some(by),
            (_, Windows::Seven) => Some(Who::NOBODY),
            _ => None,
        }
    }
}

/// Made up: where the kernel's object of a process is.
fn object_address(process: u32) -> u64 {
    0xFFFF_A000_0000_0000 + (u64::from(process) << 12)
}

/// The process's SID behind the image of a `TOKEN_USER`.
fn put_user(payload: &mut Vec<u8>, process: &Process<'_>) {
    let parts = process.user.sub_authorities();
    payload
        .u64(object_address(process.id) + 0x4A0)
        .u64(0)
        // Revision 1, so many sub-authorities, of authority 5.
        .bytes(&[1, parts.len() as u8, 0, 0, 0, 0, 0, 5]);
    for part in parts {
        payload.u32(*part);
    }
}

fn image(module: &Module, process: u32, windows: Windows) -> Vec<u8> {
    // Signed as a part of Windows is, by a catalog; three bytes unused before Windows 8.
    let signature = match windows {
        Windows::Seven => [0; 4],
        _ => [12, 3, 0, 0],
    };
    let mut payload = Vec::with_capacity(256);
    payload
        .u64(module.base)
        .u64(module.size.into())
        .u32(process)
        .u32(module.checksum)
        .u32(module.time_date_stamp)
        .bytes(&signature)
        .u64(module.base)
        .bytes(&[0; 16])
        .wide(&module.path);
    payload
}

fn image_id(module: &Module, process: u32) -> Injected {
    ImageId {
        base: module.base,
        size: module.size.into(),
        process_id: process,
        time_stamp: module.time_date_stamp,
        file_name: &module.file,
    }
    .event()
}

fn pdb_id(module: &Module, process: u32) -> Injected {
    Rsds {
        base: module.base,
        process_id: process,
        guid: module.pdb_guid,
        age: module.pdb_age,
        pdb: &module.pdb_file,
    }
    .event()
}
