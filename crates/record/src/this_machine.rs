//! Detection of the properties of this machine. Unsafe code is allowed because functions of Windows write
//! numbers to their arguments.
#![cfg_attr(windows, allow(unsafe_code))]

use crate::Machine;

impl Machine {
    /// Returns the properties of this machine.
    #[cfg(windows)]
    pub fn detect() -> Option<Machine> {
        use windows_sys::Win32::System::Threading::{
            ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetNumaHighestNodeNumber,
        };

        let memory = memory_status()?;
        let mut highest = 0_u32;
        // SAFETY: the functions take a number and a valid pointer.
        let (cpus, has_nodes) = unsafe {
            (
                GetActiveProcessorCount(ALL_PROCESSOR_GROUPS),
                GetNumaHighestNodeNumber(&mut highest),
            )
        };
        (cpus > 0).then(|| Machine {
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

/// Returns the total and the available memory of this machine.
#[cfg(windows)]
pub(crate) fn memory_status()
-> Option<windows_sys::Win32::System::SystemInformation::MEMORYSTATUSEX> {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

    // SAFETY: the structure holds only numbers, for which zero is valid.
    let mut memory: MEMORYSTATUSEX = unsafe { std::mem::zeroed() };
    memory.dwLength = size_of::<MEMORYSTATUSEX>() as u32;
    // SAFETY: `dwLength` is the size of the structure.
    let done = unsafe { GlobalMemoryStatusEx(&mut memory) };
    (done != 0).then_some(memory)
}
