//! Events that change a thread's priority, affinity or CPU.

use super::cursor::Cursor;

/// SetPriority, SetBasePriority, SetPagePriority and SetIoPriority: hooks 0x0530, 0x0531, 0x0533
/// and 0x0534.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetPriority {
    /// Id of the thread.
    pub thread_id: u32,
    /// Old priority. The event's name states the kind of priority.
    pub old: i8,
    /// New priority. The event's name states the kind of priority.
    pub new: i8,
    /// Dynamic priority of the thread. It is meaningful only for SetBasePriority.
    pub dynamic: i8,
}

impl SetPriority {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 2.
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

/// AutoBoostSetFloor, hook 0x0542. A thread holds a lock, and other threads wait for this lock. So the thread
/// gets a minimum priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoBoostSetFloor {
    /// Address of the lock.
    pub lock: u64,
    /// Id of the thread.
    pub thread_id: u32,
    /// Minimum CPU priority that the thread gets.
    pub new_cpu_floor: i8,
    /// Priority before the boost.
    pub old_cpu_priority: i8,
    /// Minimum I/O priority that the thread gets.
    pub new_io_floor: u8,
    /// I/O priority before the boost.
    pub old_io_priority: u8,
    /// Flags of the boost. Flag 1 means that a DPC was executing. Flag 2 means that the thread was boosted
    /// when it was woken. Flag 4 means that the outstanding I/O requests of the thread were boosted too.
    pub flags: u8,
}

impl AutoBoostSetFloor {
    /// Reads the payload. Returns `None` if the payload is too short.
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

/// AutoBoostClearFloor, hook 0x0543. A thread had a minimum priority because of a lock. This minimum priority
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoBoostClearFloor {
    /// Address of the lock.
    pub lock: u64,
    /// Id of the thread.
    pub thread_id: u32,
    /// Boosts that end. Bit 0 is the boost of the I/O priority. The other bits are boosts of the CPU
    /// priority.
    pub boosts: u16,
}

impl AutoBoostClearFloor {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(AutoBoostClearFloor {
            lock: cursor.pointer()?,
            thread_id: cursor.u32()?,
            boosts: cursor.u16()?,
        })
    }
}

/// AntiStarvationBoost, hook 0x053C. A thread was ready for a long time but did not run. So the thread gets a
/// higher priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AntiStarvationBoost {
    /// Id of the thread.
    pub thread_id: u32,
    /// System-wide index of the CPU.
    pub cpu: u16,
    /// Priority before the boost.
    pub old_priority: i8,
}

impl AntiStarvationBoost {
    /// Reads the payload. Returns `None` if the payload is too short.
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
    /// Id of the thread.
    pub thread_id: u32,
    /// System-wide index of the old CPU.
    pub source_cpu: u16,
    /// System-wide index of the new CPU.
    pub target_cpu: u16,
    /// Priority of the thread.
    pub priority: u8,
    /// True if the thread's ideal processor also changed.
    pub ideal_processor_adjusted: bool,
    /// System-wide index of the old ideal processor.
    pub old_ideal_cpu: u16,
}

impl ThreadMigration {
    /// Reads the payload. Returns `None` if the payload is too short.
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

/// SetAffinity, hook 0x0535: the set of CPUs on which a thread may run changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetAffinity {
    /// Bit mask of the CPUs in `group` on which the thread may run.
    pub affinity: u64,
    /// Id of the thread.
    pub thread_id: u32,
    /// Processor group of the CPUs in `affinity`.
    pub group: u16,
}

impl SetAffinity {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(SetAffinity {
            affinity: cursor.pointer()?,
            thread_id: cursor.u32()?,
            group: cursor.u16()?,
        })
    }
}
