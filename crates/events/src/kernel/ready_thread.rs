//! A thread becomes ready to run.

use super::cursor::Cursor;

/// ReadyThread, hook 0x0532: something made a waiting thread ready. Who did is not in the payload:
/// it is the thread that ran on the event's CPU, or a DPC if [`ReadyThread::by_dpc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyThread {
    /// The thread that became ready.
    pub thread_id: u32,
    /// Why its priority is adjusted; see [`super::adjust_reason`].
    pub adjust_reason: u8,
    /// By how much its priority is raised.
    pub adjust_increment: i8,
    /// All flags.
    pub flags: u8,
}

impl ReadyThread {
    /// Reads the payload; `None` if it is too short.
    #[inline]
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ReadyThread {
            thread_id: cursor.u32()?,
            adjust_reason: cursor.u8()?,
            adjust_increment: cursor.i8()?,
            flags: cursor.u8()?,
        })
    }

    /// A DPC readied the thread, not the thread that ran on the CPU.
    pub fn by_dpc(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The thread's kernel stack is paged out and must be read first.
    pub fn kernel_stack_not_resident(&self) -> bool {
        self.flags & 2 != 0
    }

    /// The thread's process is swapped out and must be brought in first.
    pub fn process_out_of_memory(&self) -> bool {
        self.flags & 4 != 0
    }

    /// The readying thread tried to hand its CPU over directly.
    pub fn direct_switch_attempt(&self) -> bool {
        self.flags & 8 != 0
    }
}
