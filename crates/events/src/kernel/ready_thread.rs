//! Event of a thread that becomes ready to run.

use super::cursor::Cursor;

/// ReadyThread, hook 0x0532: a waiting thread became ready. The payload does not name the readying thread. If
/// [`ReadyThread::by_dpc`] returns true, a DPC made the waiting thread ready. Otherwise, the readying thread is
/// the thread that ran on the event's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyThread {
    /// Thread that became ready.
    pub thread_id: u32,
    /// Reason for the priority adjustment; see [`super::adjust_reason`].
    pub adjust_reason: u8,
    /// Amount by which the priority of the thread is raised.
    pub adjust_increment: i8,
    /// Bit set of all flags. The functions below return single flags.
    pub flags: u8,
}

impl ReadyThread {
    /// Reads the payload. Returns `None` if the payload is too short.
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

    /// Returns true if a DPC made the thread ready. Returns false if another thread made the thread ready: the
    /// thread that ran on the event's CPU.
    pub fn by_dpc(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Returns true if the thread's kernel stack is paged out. The stack must be read from disk before the
    /// thread can run.
    pub fn kernel_stack_not_resident(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Returns true if the thread's process is swapped out. The process must be read from disk before the
    /// thread can run.
    pub fn process_out_of_memory(&self) -> bool {
        self.flags & 4 != 0
    }

    /// Returns true if the readying thread tried to pass its CPU directly to the readied thread.
    pub fn direct_switch_attempt(&self) -> bool {
        self.flags & 8 != 0
    }
}
