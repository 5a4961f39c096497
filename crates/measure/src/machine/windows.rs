//! What Windows says of the machine. Its allowance of unsafe code is for reading two texts of the
//! registry and a version: the system writes no more than the bytes of local variables that it is
//! told.
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

/// Major, minor and build number.
fn version() -> Option<String> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32,
        ..OSVERSIONINFOW::default()
    };
    // SAFETY: the structure says its own size, and lives until the call has returned.
    let status = unsafe { RtlGetVersion(&mut version) };
    (status >= 0).then(|| {
        format!(
            "{}.{}.{}",
            version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber
        )
    })
}

/// Wine says so by a function that only its ntdll has.
fn is_wine() -> bool {
    // SAFETY: the names are constants that end with 0; nothing is called.
    unsafe {
        let ntdll = GetModuleHandleW(w!("ntdll.dll"));
        !ntdll.is_null() && GetProcAddress(ntdll, s!("wine_get_version")).is_some()
    }
}

/// A text of the registry's part about the machine.
fn text(key: PCWSTR, name: PCWSTR) -> Option<String> {
    let mut text = [0u16; 256];
    let mut bytes = size_of_val(&text) as u32;
    // SAFETY: no more is written than the bytes given, and all lives until the call has returned.
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
