//! What a CPU was doing at a moment.

use super::cursor::Cursor;

/// SampledProfile, hook 0x0F2E: the address that a CPU was executing when the profile interrupt
/// came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Address of the interrupted instruction.
    pub instruction_pointer: u64,
    /// The thread that ran; 0 is the CPU's idle thread.
    pub thread_id: u32,
    /// How many profile interrupts the event stands for.
    pub count: u16,
    /// All flags. Since version 2; 0 before Windows 8.
    pub flags: Option<u8>,
    /// Rank of the thread in its scheduling group. Since version 2; 0 before Windows 8.
    pub rank: Option<u8>,
}

impl Sample {
    /// Reads the payload; `None` if it is too short or older than version 1.
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

    /// The CPU was executing a DPC.
    pub fn in_dpc(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 1 != 0)
    }

    /// The CPU was executing an interrupt's service routine.
    pub fn in_isr(&self) -> bool {
        self.flags.is_some_and(|flags| flags & 2 != 0)
    }

    /// Priority of the thread, 0 to 31. Since version 2; 0 before Windows 8, which did not write
    /// it.
    pub fn priority(&self) -> Option<u8> {
        self.flags.map(|flags| flags >> 3)
    }
}

/// PmcCounterProfile, hook 0x0F2F: the address that a CPU was executing when a hardware counter
/// had counted so many events as its interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSample {
    /// Address of the interrupted instruction.
    pub instruction_pointer: u64,
    /// The thread that ran; 0 is the CPU's idle thread.
    pub thread_id: u32,
    /// Which counter; see [`super::profile_source`].
    pub source: u16,
}

impl CounterSample {
    /// Reads the payload; `None` if it is too short.
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
