//! Events about processes, threads and images (loaded modules): start, end and rundown. Rundown
//! events list what exists at the trace's start or end.

use std::io::{Seek, Write};

use etl::write::{ImageId, Injected, Rsds};

use super::modules::Module;
use super::payload::Payload;
use super::{EventKind, Log, Who};
use crate::time::Time;
use crate::windows::Windows;

/// Exit status of a running process (`STATUS_PENDING`).
const STILL_RUNNING: u32 = 0x103;

/// Kind of event about the life of a process, thread or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The process or thread starts, or the image is loaded.
    Start,
    /// The process or thread ends, or the image is unloaded.
    End,
    /// Rundown: the process, thread or image exists at the trace's start.
    RundownStart,
    /// Rundown: the process, thread or image exists at the trace's end.
    RundownEnd,
}

/// Account under which a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum User {
    /// The interactive user.
    #[default]
    Person,
    /// The local system, with SID S-1-5-18.
    LocalSystem,
    /// A service with few rights, with SID S-1-5-19.
    LocalService,
    /// A service with network access, with SID S-1-5-20.
    NetworkService,
}

impl User {
    /// Returns the sub-authorities of the account's SID. They follow the NT authority (`S-1-5`).
    fn sub_authorities(self) -> &'static [u32] {
        match self {
            User::Person => &[21, 1_004_336_348, 1_177_238_915, 682_003_330, 1_001],
            User::LocalSystem => &[18],
            User::LocalService => &[19],
            User::NetworkService => &[20],
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process<'a> {
    pub(crate) id: u32,
    /// Id of the parent process, which created this process.
    pub(crate) parent: u32,
    /// Terminal session; 0xFFFF_FFFF for a system process outside all sessions.
    pub(crate) session: u32,
    /// Account under which the process runs.
    pub(crate) user: User,
    /// Name of the image file.
    pub(crate) image: &'a str,
    pub(crate) command_line: &'a str,
    /// Full name of the process's app package; empty if the process has no package. Logged since Windows 8.
    pub(crate) package: &'a str,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thread<'a> {
    /// Ids of the thread and its process.
    pub(crate) who: Who,
    /// Base priority, 0 to 31.
    pub(crate) base_priority: u8,
    /// Bit mask of the processors on which the thread may run. The bits are the processors of the thread's
    /// group.
    pub(crate) affinity: u64,
    /// Address of the thread's start routine.
    pub(crate) start_address: u64,
    /// Tag of the service to which the thread belongs; 0 if it belongs to no service.
    pub(crate) service_tag: u32,
    /// Name of the thread, often empty. Logged since Windows 10.
    pub(crate) name: &'a str,
}

impl<W: Write + Seek> Log<W> {
    /// Logs a start, end or rundown event of a process. `by` is the thread in the header of a start or end
    /// event.
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
            // Address of the page tables. The value is invented.
            .u64(u64::from(process.id) << 16);
        let since_eight = self.computer.windows > Windows::Seven;
        if since_eight {
            // Flags: 1 if the process has an application id, 8 if it is packaged.
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

    /// Logs a start, end or rundown event of a thread. `by` is the thread in the header of a start or end
    /// event.
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
        // Threads of the idle process (0) and of System (4) have no user-mode stack and no thread
        // environment block.
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
            // Address of the thread environment block. The value is invented.
            .u64(user(0x20_0000_0000 + id * 0x2000))
            .u32(thread.service_tag)
            .u8(thread.base_priority)
            // Usual page priority (5), usual I/O priority (2), and no flags.
            .u8(5)
            .u8(2)
            .u8(0);
        if self.computer.windows > Windows::Seven {
            payload.wide(thread.name);
        }
        let who = match life {
            Life::Start | Life::End => by,
            Life::RundownStart | Life::RundownEnd => Who::NO_THREAD,
        };
        self.kernel(kind, cpu, time, Some(who), &payload, None);
    }

    /// Logs an event for each image in a process. For process 0, these are the images of the kernel. For
    /// `Life::Start` and `Life::RundownStart`, the identities of each image and its PDB follow. `by` is the
    /// thread in the header of a start or end event.
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
        let id_who = who.unwrap_or(Who::NO_THREAD);
        for (image, image_id, pdb_id) in events {
            self.kernel(kind, cpu, time, who, &image, None);
            if matches!(life, Life::Start | Life::RundownStart) {
                let id = EventKind::ImageId;
                self.injected(id, &image_id, cpu, time, id_who);
                self.injected(id, &pdb_id, cpu, time, id_who);
            }
        }
    }

    /// Returns the thread for the header of an event. Since Windows 8, the header of rundown events has no
    /// thread.
    fn header_of(&self, life: Life, by: Who) -> Option<Who> {
        match (life, self.computer.windows) {
            (Life::Start | Life::End, _) => Some(by),
            (_, Windows::Seven) => Some(Who::NO_THREAD),
            _ => None,
        }
    }
}

/// Returns the address of a process's kernel object. The address is invented.
fn object_address(process: u32) -> u64 {
    0xFFFF_A000_0000_0000 + (u64::from(process) << 12)
}

/// Appends a `TOKEN_USER` structure and the SID of the process's account.
fn put_user(payload: &mut Vec<u8>, process: &Process<'_>) {
    let parts = process.user.sub_authorities();
    payload
        .u64(object_address(process.id) + 0x4A0)
        .u64(0)
        // Start of the SID: revision 1, number of sub-authorities, NT authority (5).
        .bytes(&[1, parts.len() as u8, 0, 0, 0, 0, 0, 5]);
    for part in parts {
        payload.u32(*part);
    }
}

fn image(module: &Module, process: u32, windows: Windows) -> Vec<u8> {
    // Since Windows 8, the bytes are: signature level 12 (Windows), signature type 3 (cached catalog), two
    // unused bytes. Before Windows 8, all four bytes are unused.
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
