//! Description of a Windows machine. Unsafe code is allowed for reading a version and registry
//! values, because the system writes at most the passed size into local variables.
#![allow(unsafe_code)]

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;
use windows_sys::core::{PCWSTR, s, w};

use super::Machine;

pub(super) fn describe() -> Machine {
    let is_wine = is_wine();
    let wine = if is_wine { " (Wine)" } else { "" };
    Machine {
        name: text(
            w!(r"SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName"),
            w!("ComputerName"),
        ),
        cpu: text(
            w!(r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"),
            w!("ProcessorNameString"),
        ),
        kernel: version().map(|version| format!("Windows {version}{wine}")),
        is_real_time: Some(false),
        is_wine,
        ..Machine::default()
    }
}

/// Returns the major, minor and build number of Windows.
fn version() -> Option<String> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32,
        ..OSVERSIONINFOW::default()
    };
    // SAFETY: the structure contains its size and outlives the call.
    let status = unsafe { RtlGetVersion(&mut version) };
    (status >= 0).then(|| {
        format!(
            "{}.{}.{}",
            version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber
        )
    })
}

/// Returns true if the program runs under Wine. Only Wine's ntdll exports the function that is looked up
/// here.
fn is_wine() -> bool {
    // SAFETY: the names are constants that end with 0. The function is only looked up, not called.
    unsafe {
        let ntdll = GetModuleHandleW(w!("ntdll.dll"));
        !ntdll.is_null() && GetProcAddress(ntdll, s!("wine_get_version")).is_some()
    }
}

/// Reads a text value below HKEY_LOCAL_MACHINE.
fn text(key: PCWSTR, name: PCWSTR) -> Option<String> {
    let mut text = [0u16; 256];
    let mut bytes = size_of_val(&text) as u32;
    // SAFETY: the call writes at most the passed size, and all arguments outlive the call.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key,
            name,
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &mut bytes,
        )
    };
    let units = text.split(|unit| *unit == 0).next().unwrap_or_default();
    let text = String::from_utf16_lossy(units);
    let text = text.trim();
    (status == ERROR_SUCCESS && !text.is_empty()).then(|| text.to_owned())
}
