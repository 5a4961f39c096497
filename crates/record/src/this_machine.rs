//! Detection of the properties of this machine. Unsafe code is allowed because functions of Windows write
//! numbers to their arguments.
#![cfg_attr(windows, allow(unsafe_code))]

use crate::Machine;

impl Machine {
    /// Returns the properties of this machine.
    #[cfg(windows)]
    pub fn detect() -> Option<Machine> {
        use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
        use windows_sys::Win32::System::Threading::{
            ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetNumaHighestNodeNumber,
        };

        // SAFETY: the structure holds only numbers, for which zero is valid.
        let mut memory: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
        memory.dwLength = size_of::<MEMORYSTATUSEX>() as u32;
        let mut highest = 0_u32;
        // SAFETY: `dwLength` is the size of the structure. The other two functions take a number and a valid
        // pointer.
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

    /// Returns `None`, because traces are recorded only on Windows.
    #[cfg(not(windows))]
    pub fn detect() -> Option<Machine> {
        None
    }
}
