//! Samples of the code that CPUs execute.

use super::cursor::Cursor;

/// SampledProfile, hook 0x0F2E. A CPU was executing code when the profile interrupt occurred. The event has
/// the address of this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Address of the interrupted instruction.
    pub instruction_pointer: u64,
    /// Thread that ran on the CPU; 0 is the CPU's idle thread.
    pub thread_id: u32,
    /// Number of profile interrupts for which the event was logged.
    pub count: u16,
    /// Bit set of all flags. The functions below return single flags. Present since version 2. The flags are
    /// always 0 before Windows 8.
    pub flags: Option<u8>,
    /// Rank of the thread in its scheduling group. Present since version 2. The rank is always 0 before
    /// Windows 8.
    pub rank: Option<u8>,
}

impl Sample {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 1.
    #[inline]
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        if version == 0 {
            return None;
        }
        let mut sample = Sample {
            instruction_pointer: cursor.pointer()?,
            thread_id: cursor.u32()?,
            count: cursor.u16()?,
            flags: None,
            rank: None,
        };
        if version >= 2 {
            sample.flags = Some(cursor.u8()?);
            sample.rank = Some(cursor.u8()?);
        }
        Some(sample)
    }

    /// Returns true if the CPU was executing a DPC.
    pub fn in_dpc(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 1 != 0)
    }

    /// Returns true if the CPU was executing an interrupt service routine.
    pub fn in_isr(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 2 != 0)
    }

    /// Returns the priority of the thread, 0 to 31. Returns `None` if the version is below 2. Returns 0 for
    /// Windows versions before 8, because they do not log the priority.
    pub fn priority(&self) -> Option<u8> {
        self.flags.map(|flags| flags >> 3)
    }
}

/// PmcCounterProfile, hook 0x0F2F. A CPU was executing code when a hardware counter reached its sampling
/// interval. The event has the address of this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSample {
    /// Address of the interrupted instruction.
    pub instruction_pointer: u64,
    /// Thread that ran on the CPU; 0 is the CPU's idle thread.
    pub thread_id: u32,
    /// Hardware counter; see [`super::profile_source`].
    pub source: u16,
}

impl CounterSample {
    /// Reads the payload. Returns `None` if the payload is too short.
    #[inline]
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(CounterSample {
            instruction_pointer: cursor.pointer()?,
            thread_id: cursor.u32()?,
            source: cursor.u16()?,
        })
    }
}
