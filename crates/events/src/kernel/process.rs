//! Start, end and rundown of processes.

use super::cursor::Cursor;
use crate::text::{Ansi, Utf16};

/// Process Start, End, DCStart, DCEnd and Defunct: opcodes 1 to 4 and 39 of the process class.
///
/// A field is `None` if the event's version does not have it or the payload ends before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'a> {
    /// Address of the kernel's process object. If two processes have the same id, they still have different
    /// addresses. Present since version 2.
    pub unique_key: Option<u64>,
    /// Id of the process.
    pub process_id: u32,
    /// Id of the process that created this process.
    pub parent_id: u32,
    /// Id of the terminal session; 0xFFFF_FFFF for system processes. Present since version 1.
    pub session_id: Option<u32>,
    /// Exit status of the process; 0x103 while the process runs. Present since version 1.
    pub exit_status: Option<i32>,
    /// Physical address of the page tables. Present in version 1 and since version 3.
    pub directory_table_base: Option<u64>,
    /// Flags of the process; see [`super::process_flags`]. Present since version 4.
    pub flags: Option<u32>,
    /// Bytes of the user's SID: revision, count, authority, sub-authorities.
    pub user_sid: Option<&'a [u8]>,
    /// Name of the image file without a path. Old versions cut the name to 14 or 15 characters.
    pub image_name: Ansi<'a>,
    /// Command line. Present since version 2.
    pub command_line: Option<Utf16<'a>>,
    /// Full name of the app package. Present since version 4.
    pub package_full_name: Option<Utf16<'a>>,
    /// Application id in the app package. Present since version 4.
    pub application_id: Option<Utf16<'a>>,
    /// Exit time in units of 100 ns since 1601-01-01 UTC. Only the event Defunct of version 5 has this time.
    pub exit_time: Option<u64>,
}

impl<'a> Process<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let mut process = Process {
            unique_key: None,
            process_id: 0,
            parent_id: 0,
            session_id: None,
            exit_status: None,
            directory_table_base: None,
            flags: None,
            user_sid: None,
            image_name: Ansi::default(),
            command_line: None,
            package_full_name: None,
            application_id: None,
            exit_time: None,
        };
        if version == 0 {
            process.process_id = cursor.wide_id()?;
            process.parent_id = cursor.wide_id()?;
        } else {
            let address = Some(cursor.pointer()?);
            match version {
                1 => process.directory_table_base = address,
                _ => process.unique_key = address,
            }
            process.process_id = cursor.u32()?;
            process.parent_id = cursor.u32()?;
            process.session_id = Some(cursor.u32()?);
            process.exit_status = Some(cursor.i32()?);
        }
        if version >= 3 {
            process.directory_table_base = Some(cursor.pointer()?);
        }
        if version >= 4 {
            process.flags = Some(cursor.u32()?);
        }
        process.user_sid = cursor.sid()?;
        process.image_name = cursor.ansi()?;
        if version >= 2 {
            process.command_line = cursor.utf16();
        }
        if version >= 4 {
            process.package_full_name = cursor.utf16();
            process.application_id = cursor.utf16();
        }
        if version >= 5 {
            process.exit_time = cursor.u64();
        }
        Some(process)
    }
}

/// Terminate, hook 0x030B: the last thread of a process exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTerminate {
    /// Id of the process.
    pub process_id: u32,
}

impl ProcessTerminate {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        Some(ProcessTerminate {
            process_id: Cursor::new(payload, pointer_size).u32()?,
        })
    }
}
