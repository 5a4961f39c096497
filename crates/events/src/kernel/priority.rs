//! Changes of a thread's priority and of its place.

use super::cursor::Cursor;

/// SetPriority, SetBasePriority, SetPagePriority and SetIoPriority: hooks 0x0530, 0x0531, 0x0533
/// and 0x0534.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetPriority {
    /// The thread.
    pub thread_id: u32,
    /// Its priority of that kind before.
    pub old: i8,
    /// Its priority of that kind now.
    pub new: i8,
    /// Its dynamic priority; meaningful for SetBasePriority only.
    pub dynamic: i8,
}

impl SetPriority {
    /// Reads the payload; `None` if it is too short or older than version 2.
    pub fn read(payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        if version < 2 {
            return None;
        }
        Some(SetPriority {
            thread_id: cursor.u32()?,
            old: cursor.i8()?,
            new: cursor.i8()?,
            dynamic: cursor.i8()?,
        })
    }
}

/// AutoBoostSetFloor, hook 0x0542: a thread that holds a lock others wait for gets a priority
/// that it does not fall below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoBoostSetFloor {
    /// Address of the lock.
    pub lock: u64,
    /// The thread.
    pub thread_id: u32,
    /// The priority that it keeps at least.
    pub new_cpu_floor: i8,
    /// Its priority before.
    pub old_cpu_priority: i8,
    /// The I/O priority that it keeps at least.
    pub new_io_floor: u8,
    /// Its I/O priority before.
    pub old_io_priority: u8,
    /// 1 executing a DPC, 2 boosted when woken, 4 outstanding requests boosted too.
    pub flags: u8,
}

impl AutoBoostSetFloor {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let (lock, thread_id) = (cursor.pointer()?, cursor.u32()?);
        let (new_cpu_floor, old_cpu_priority) = (cursor.i8()?, cursor.i8()?);
        let io = cursor.u8()?;
        Some(AutoBoostSetFloor {
            lock,
            thread_id,
            new_cpu_floor,
            old_cpu_priority,
            new_io_floor: io & 15,
            old_io_priority: io >> 4,
            flags: cursor.u8()?,
        })
    }
}

/// AutoBoostClearFloor, hook 0x0543: the lock no longer holds the thread's priority up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoBoostClearFloor {
    /// Address of the lock.
    pub lock: u64,
    /// The thread.
    pub thread_id: u32,
    /// Bit 0 its I/O boost, the others its CPU boosts.
    pub boosts: u16,
}

impl AutoBoostClearFloor {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(AutoBoostClearFloor {
            lock: cursor.pointer()?,
            thread_id: cursor.u32()?,
            boosts: cursor.u16()?,
        })
    }
}

/// AntiStarvationBoost, hook 0x053C: a thread that was ready for long is raised so that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AntiStarvationBoost {
    /// The thread.
    pub thread_id: u32,
    /// System-wide index of the CPU.
    pub cpu: u16,
    /// Its priority before.
    pub old_priority: i8,
}

impl AntiStarvationBoost {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(AntiStarvationBoost {
            thread_id: cursor.u32()?,
            cpu: cursor.u16()?,
            old_priority: cursor.i8()?,
        })
    }
}

/// ThreadMigration, hook 0x053D: a ready or running thread is moved to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadMigration {
    /// The thread.
    pub thread_id: u32,
    /// System-wide index of the CPU it leaves.
    pub source_cpu: u16,
    /// System-wide index of the CPU it goes to.
    pub target_cpu: u16,
    /// Its priority.
    pub priority: u8,
    /// Its ideal processor changed too.
    pub ideal_processor_adjusted: bool,
    /// System-wide index of its ideal processor before.
    pub old_ideal_cpu: u16,
}

impl ThreadMigration {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(ThreadMigration {
            thread_id: cursor.u32()?,
            source_cpu: cursor.u16()?,
            target_cpu: cursor.u16()?,
            priority: cursor.u8()?,
            ideal_processor_adjusted: cursor.u8()? != 0,
            old_ideal_cpu: cursor.u16()?,
        })
    }
}

/// SetAffinity, hook 0x0535: the CPUs that a thread may run on change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAffinity {
    /// The CPUs of the group, one bit each.
    pub affinity: u64,
    /// The thread.
    pub thread_id: u32,
    /// The processor group.
    pub group: u16,
}

impl SetAffinity {
    /// Reads the payload; `None` if it is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(SetAffinity {
            affinity: cursor.pointer()?,
            thread_id: cursor.u32()?,
            group: cursor.u16()?,
        })
    }
}
