//! Start, end and rundown of threads.

use super::cursor::Cursor;
use crate::text::Utf16;

/// Thread Start, End, DCStart and DCEnd: opcodes 1 to 4 of the thread class.
///
/// A field is `None` if the event's version does not have it or the payload ends before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread<'a> {
    /// Id of the thread's process.
    pub process_id: u32,
    /// Id of the thread.
    pub thread_id: u32,
    /// Start address of the kernel stack. This field and the next three fields are present since version 1.
    pub stack_base: Option<u64>,
    /// End address of the kernel stack.
    pub stack_limit: Option<u64>,
    /// Start address of the user stack.
    pub user_stack_base: Option<u64>,
    /// End address of the user stack.
    pub user_stack_limit: Option<u64>,
    /// Address at which the kernel started the thread. Only versions 1 and 2 have this field.
    pub start_address: Option<u64>,
    /// Bit mask of the CPUs on which the thread may run, within the thread's processor group. Present since
    /// version 3.
    pub affinity: Option<u64>,
    /// Address of the thread's start routine. Present since version 1.
    pub win32_start_address: Option<u64>,
    /// Address of the thread's environment block. Present since version 2.
    pub teb: Option<u64>,
    /// Tag of the service for which the thread works. The `Service` event with the same tag gives the name of
    /// the service. Present since version 2.
    pub sub_process_tag: Option<u32>,
    /// Base priority, 0 to 31. Present since version 3.
    pub base_priority: Option<u8>,
    /// Memory priority, 0 to 7. Present since version 3.
    pub page_priority: Option<u8>,
    /// I/O priority. Present since version 3.
    pub io_priority: Option<u8>,
    /// Flags of the thread. Flag 1 means that the thread waits for registry notifications. Present since
    /// version 3.
    pub flags: Option<u8>,
    /// Name of the thread. It is often empty. Present since Windows 10, although Windows 10 still writes
    /// version 3.
    pub name: Option<Utf16<'a>>,
}

impl<'a> Thread<'a> {
    /// Reads the payload. Returns `None` if the payload is too short for the ids.
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
        // Some events (such as End of version 1) have only the ids and no addresses.
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

/// SetName, hook 0x0548: a thread received a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadName<'a> {
    /// Id of the thread's process.
    pub process_id: u32,
    /// Id of the thread.
    pub thread_id: u32,
    /// New name of the thread.
    pub name: Utf16<'a>,
}

impl<'a> ThreadName<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ThreadName {
            process_id: cursor.u32()?,
            thread_id: cursor.u32()?,
            name: cursor.utf16()?,
        })
    }
}
