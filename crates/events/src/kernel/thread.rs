//! Threads start, end, and exist.

use super::cursor::Cursor;
use crate::text::Utf16;

/// Thread Start, End, DCStart and DCEnd: opcodes 1 to 4 of the thread class.
///
/// What a version does not say is `None`; what the payload is too short for, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread<'a> {
    /// Its process.
    pub process_id: u32,
    /// The thread.
    pub thread_id: u32,
    /// Where its kernel stack begins. Since version 1, as all addresses.
    pub stack_base: Option<u64>,
    /// Where its kernel stack ends.
    pub stack_limit: Option<u64>,
    /// Where its user stack begins.
    pub user_stack_base: Option<u64>,
    /// Where its user stack ends.
    pub user_stack_limit: Option<u64>,
    /// Where the kernel started it. Versions 1 and 2.
    pub start_address: Option<u64>,
    /// The CPUs of its group that it may run on. Since version 3.
    pub affinity: Option<u64>,
    /// Where its own code begins.
    pub win32_start_address: Option<u64>,
    /// Its environment block. Since version 2.
    pub teb: Option<u64>,
    /// The service it works for; see the service's configuration event. Since version 2.
    pub sub_process_tag: Option<u32>,
    /// Its base priority, 0 to 31. Since version 3.
    pub base_priority: Option<u8>,
    /// Priority of its memory, 0 to 7. Since version 3.
    pub page_priority: Option<u8>,
    /// Priority of its I/O. Since version 3.
    pub io_priority: Option<u8>,
    /// 1: it waits for registry notifications. Since version 3.
    pub flags: Option<u8>,
    /// Its name, often empty. Since Windows 10, which kept version 3.
    pub name: Option<Utf16<'a>>,
}

impl<'a> Thread<'a> {
    /// Reads the payload; `None` if it is too short for the ids.
    pub fn read(payload: &'a [u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (first, second) = (cursor.u32()?, cursor.u32()?);
        if version == 0 {
            return Some(Thread {
                thread_id: first,
                process_id: second,
                ..Thread::default()
            });
        }
        let mut thread = Thread {
            process_id: first,
            thread_id: second,
            ..Thread::default()
        };
        // Some events end after the ids (End of version 1); no address is then known.
        thread.read_rest(&mut cursor, version);
        Some(thread)
    }

    fn read_rest(&mut self, cursor: &mut Cursor<'a>, version: u8) -> Option<()> {
        self.stack_base = Some(cursor.pointer()?);
        self.stack_limit = Some(cursor.pointer()?);
        self.user_stack_base = Some(cursor.pointer()?);
        self.user_stack_limit = Some(cursor.pointer()?);
        let address = Some(cursor.pointer()?);
        match version {
            1 | 2 => self.start_address = address,
            _ => self.affinity = address,
        }
        self.win32_start_address = Some(cursor.pointer()?);
        if version >= 2 {
            self.teb = Some(cursor.pointer()?);
            self.sub_process_tag = Some(cursor.u32()?);
        }
        if version >= 3 {
            self.base_priority = Some(cursor.u8()?);
            self.page_priority = Some(cursor.u8()?);
            self.io_priority = Some(cursor.u8()?);
            self.flags = Some(cursor.u8()?);
            self.name = Some(cursor.utf16()?);
        }
        Some(())
    }
}

/// SetName, hook 0x0548: a thread was given a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadName<'a> {
    /// Its process.
    pub process_id: u32,
    /// The thread.
    pub thread_id: u32,
    /// Its name from now on.
    pub name: Utf16<'a>,
}

impl<'a> ThreadName<'a> {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ThreadName {
            process_id: cursor.u32()?,
            thread_id: cursor.u32()?,
            name: cursor.utf16()?,
        })
    }
}
