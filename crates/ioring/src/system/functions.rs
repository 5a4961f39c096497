//! Functions that are looked up in DLLs by name. Unsafe code is allowed because the type of an
//! exported function cannot be checked. The types here follow `ioringapi.h` and, for the NT system
//! calls, published reverse engineering.

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_void};
use std::io;
use std::mem::transmute;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use windows_sys::Win32::Foundation::{HANDLE, HMODULE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLUSH_MODE, FILE_WRITE_FLAGS, HIORING, IORING_BUFFER_INFO, IORING_BUFFER_REF,
    IORING_CAPABILITIES, IORING_CQE, IORING_CREATE_FLAGS, IORING_HANDLE_REF, IORING_INFO,
    IORING_OP_CODE, IORING_SQE_FLAGS, IORING_VERSION,
};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};

use super::nt::{NtCapabilities, NtInfo, NtParameters};
use crate::{Capabilities, Code, Error, Interface};

type Hresult = i32;
type Ntstatus = i32;

/// Functions of `ioringapi.h`. The functions that version 3 added are optional.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelBase {
    pub(super) capabilities: unsafe extern "system" fn(*mut IORING_CAPABILITIES) -> Hresult,
    pub(super) create: unsafe extern "system" fn(
        IORING_VERSION,
        IORING_CREATE_FLAGS,
        u32,
        u32,
        *mut HIORING,
    ) -> Hresult,
    pub(super) info: unsafe extern "system" fn(HIORING, *mut IORING_INFO) -> Hresult,
    pub(super) is_supported: unsafe extern "system" fn(HIORING, IORING_OP_CODE) -> i32,
    pub(super) submit: unsafe extern "system" fn(HIORING, u32, u32, *mut u32) -> Hresult,
    pub(super) pop: unsafe extern "system" fn(HIORING, *mut IORING_CQE) -> Hresult,
    pub(super) close: unsafe extern "system" fn(HIORING) -> Hresult,
    pub(super) read: unsafe extern "system" fn(
        HIORING,
        IORING_HANDLE_REF,
        IORING_BUFFER_REF,
        u32,
        u64,
        usize,
        IORING_SQE_FLAGS,
    ) -> Hresult,
    pub(super) cancel:
        unsafe extern "system" fn(HIORING, IORING_HANDLE_REF, usize, usize) -> Hresult,
    pub(super) register_files:
        unsafe extern "system" fn(HIORING, u32, *const HANDLE, usize) -> Hresult,
    pub(super) register_buffers:
        unsafe extern "system" fn(HIORING, u32, *const IORING_BUFFER_INFO, usize) -> Hresult,
    pub(super) write: Option<
        unsafe extern "system" fn(
            HIORING,
            IORING_HANDLE_REF,
            IORING_BUFFER_REF,
            u32,
            u64,
            FILE_WRITE_FLAGS,
            usize,
            IORING_SQE_FLAGS,
        ) -> Hresult,
    >,
    pub(super) flush: Option<
        unsafe extern "system" fn(
            HIORING,
            IORING_HANDLE_REF,
            FILE_FLUSH_MODE,
            usize,
            IORING_SQE_FLAGS,
        ) -> Hresult,
    >,
}

/// Ring functions of `ntdll.dll` (system calls).
#[derive(Debug, Clone, Copy)]
pub(super) struct Nt {
    pub(super) capabilities: unsafe extern "system" fn(usize, *mut NtCapabilities) -> Ntstatus,
    pub(super) create: unsafe extern "system" fn(
        *mut HANDLE,
        u32,
        *const NtParameters,
        u32,
        *mut NtInfo,
    ) -> Ntstatus,
    pub(super) submit: unsafe extern "system" fn(HANDLE, u32, u32, *const i64) -> Ntstatus,
    pub(super) close: unsafe extern "system" fn(HANDLE) -> Ntstatus,
}

/// Functions of both interfaces. A field is `None` if the DLL does not export the interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    kernel_base: Option<KernelBase>,
    nt: Option<Nt>,
}

impl Functions {
    pub(crate) fn from_system() -> Result<Self, Error> {
        let ntdll = load(OsStr::new("ntdll.dll"), LOAD_LIBRARY_SEARCH_SYSTEM32)?;
        if address(ntdll, c"wine_get_version").is_some() {
            // Wine exports stubs that end the program when called.
            return Err(Error::NotAvailable("Wine does not implement them"));
        }
        let kernel_base = load(OsStr::new("KernelBase.dll"), LOAD_LIBRARY_SEARCH_SYSTEM32)?;
        Self::load(kernel_base, ntdll, "they need Windows 11")
    }

    /// # Safety
    ///
    /// The requirements of [`Library::from_dll`](crate::Library::from_dll) apply.
    pub(crate) unsafe fn from_dll(path: &Path) -> Result<Self, Error> {
        let flags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32;
        let dll = load(path.as_os_str(), flags)?;
        Self::load(dll, dll, "the DLL does not export their functions")
    }

    fn load(kernel_base: HMODULE, ntdll: HMODULE, absent: &'static str) -> Result<Self, Error> {
        let functions = Self {
            kernel_base: find_kernel_base(kernel_base),
            nt: find_nt(ntdll),
        };
        match functions {
            Self {
                kernel_base: None,
                nt: None,
            } => Err(Error::NotAvailable(absent)),
            functions => Ok(functions),
        }
    }

    pub(super) fn kernel_base(&self) -> Result<&KernelBase, Error> {
        self.kernel_base.as_ref().ok_or(Error::NotAvailable(
            "KernelBase.dll does not export their functions",
        ))
    }

    pub(super) fn nt(&self) -> Result<&Nt, Error> {
        self.nt.as_ref().ok_or(Error::NotAvailable(
            "ntdll.dll does not export their functions",
        ))
    }

    pub(crate) fn capabilities(&self, interface: Interface) -> Result<Capabilities, Error> {
        match interface {
            Interface::KernelBase => {
                let mut capabilities = IORING_CAPABILITIES::default();
                // SAFETY: the call writes the passed structure, whose layout is documented.
                let code = unsafe { (self.kernel_base()?.capabilities)(&raw mut capabilities) };
                check("QueryIoRingCapabilities", code)?;
                Ok(Capabilities::new(
                    capabilities.MaxVersion.cast_unsigned(),
                    capabilities.MaxSubmissionQueueSize,
                    capabilities.MaxCompletionQueueSize,
                    capabilities.FeatureFlags.cast_unsigned(),
                ))
            }
            Interface::Nt => {
                let mut capabilities = NtCapabilities::default();
                let size = size_of::<NtCapabilities>();
                // SAFETY: the call writes at most the passed size.
                let code = unsafe { (self.nt()?.capabilities)(size, &raw mut capabilities) };
                check("NtQueryIoRingCapabilities", code)?;
                Ok(capabilities.into())
            }
        }
    }
}

/// Converts a failure code into an error.
pub(super) fn check(call: &'static str, code: i32) -> Result<(), Error> {
    let code = Code(code);
    if code.is_failure() {
        Err(Error::System { call, code })
    } else {
        Ok(())
    }
}

fn load(dll: &OsStr, flags: u32) -> Result<HMODULE, Error> {
    let wide: Vec<u16> = dll.encode_wide().chain([0]).collect();
    // SAFETY: the name ends with a zero. The DLL is never unloaded, so its functions stay valid.
    let module = unsafe { LoadLibraryExW(wide.as_ptr(), ptr::null_mut(), flags) };
    if module.is_null() {
        let dll = dll.to_string_lossy().into_owned();
        let source = io::Error::last_os_error();
        return Err(Error::Load { dll, source });
    }
    Ok(module)
}

fn address(module: HMODULE, name: &CStr) -> Option<*const c_void> {
    // SAFETY: the module is loaded, and the name ends with a zero.
    let address = unsafe { GetProcAddress(module, name.as_ptr().cast()) };
    address.map(|function| function as *const c_void)
}

/// Looks up a function and converts it to the type of its field.
macro_rules! function {
    ($module:expr, $name:literal) => {
        // SAFETY: the field has the type of the function with this name.
        address($module, $name).map(|found| unsafe { transmute::<*const c_void, _>(found) })
    };
}

fn find_kernel_base(module: HMODULE) -> Option<KernelBase> {
    Some(KernelBase {
        capabilities: function!(module, c"QueryIoRingCapabilities")?,
        create: function!(module, c"CreateIoRing")?,
        info: function!(module, c"GetIoRingInfo")?,
        is_supported: function!(module, c"IsIoRingOpSupported")?,
        submit: function!(module, c"SubmitIoRing")?,
        pop: function!(module, c"PopIoRingCompletion")?,
        close: function!(module, c"CloseIoRing")?,
        read: function!(module, c"BuildIoRingReadFile")?,
        cancel: function!(module, c"BuildIoRingCancelRequest")?,
        register_files: function!(module, c"BuildIoRingRegisterFileHandles")?,
        register_buffers: function!(module, c"BuildIoRingRegisterBuffers")?,
        write: function!(module, c"BuildIoRingWriteFile"),
        flush: function!(module, c"BuildIoRingFlushFile"),
    })
}

fn find_nt(module: HMODULE) -> Option<Nt> {
    Some(Nt {
        capabilities: function!(module, c"NtQueryIoRingCapabilities")?,
        create: function!(module, c"NtCreateIoRing")?,
        submit: function!(module, c"NtSubmitIoRing")?,
        close: function!(module, c"NtClose")?,
    })
}
