//! This machine. Its allowance of unsafe code is for Windows calls that write numbers where they are
//! told to.
#![cfg_attr(windows, allow(unsafe_code))]

use crate::Machine;

impl Machine {
    /// This one, if it is one that is recorded on: nothing on other systems than Windows.
    #[cfg(windows)]
    pub fn here() -> Option<Machine> {
        use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
        use windows_sys::Win32::System::Threading::{
            ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetNumaHighestNodeNumber,
        };

        // SAFETY: numbers, for which zeros are a value.
        let mut memory: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
        memory.dwLength = size_of::<MEMORYSTATUSEX>() as u32;
        let mut highest = 0_u32;
        // SAFETY: a structure of the size that it says, a number, and no arguments.
        let (has_memory, cpus, has_nodes) = unsafe {
            (
                GlobalMemoryStatusEx(&mut memory),
                GetActiveProcessorCount(ALL_PROCESSOR_GROUPS),
                GetNumaHighestNodeNumber(&mut highest),
            )
        };
        (has_memory != 0 && cpus > 0).then(|| Machine {
            memory_bytes: memory.ullTotalPhys,
            cpus,
            nodes: if has_nodes != 0 {
                highest.saturating_add(1)
            } else {
                1
            },
        })
    }

    /// This one, if it is one that is recorded on: nothing on other systems than Windows.
    #[cfg(not(windows))]
    pub fn here() -> Option<Machine> {
        None
    }
}
