//! Functions of the OpenPGM library.
//!
//! Names, signatures and numbers in this module are copied from OpenPGM's public headers (`pgm/engine.h`,
//! `error.h`, `messages.h`, `socket.h`, `version.h` of version 5.3). Unsafe code is allowed to look up
//! functions by name. This is sound if the contents of the library match its file name. The file name
//! includes the version 5.3.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::net::peers::library::{Library, Once};
use crate::net::{LibraryError, NetError};

/// File name of the library, as packages install it.
pub(super) const NAME: &str = "libpgm-5.3.so.0";

/// Protocol number of PGM. It is also the level of the socket options of PGM.
pub(super) const IPPROTO_PGM: c_int = 113;

/// Numbers of socket options.
pub(super) mod option {
    use std::ffi::c_int;

    pub(crate) const SEND_SOCK: c_int = 0x2000;
    pub(crate) const RECV_SOCK: c_int = 0x2001;
    pub(crate) const REPAIR_SOCK: c_int = 0x2002;
    pub(crate) const PENDING_SOCK: c_int = 0x2003;
    pub(crate) const TIME_REMAIN: c_int = 0x2005;
    pub(crate) const RATE_REMAIN: c_int = 0x2006;
    pub(crate) const IP_ROUTER_ALERT: c_int = 0x2007;
    pub(crate) const MTU: c_int = 0x2008;
    pub(crate) const MULTICAST_LOOP: c_int = 0x200c;
    pub(crate) const MULTICAST_HOPS: c_int = 0x200d;
    pub(crate) const AMBIENT_SPM: c_int = 0x200f;
    pub(crate) const HEARTBEAT_SPM: c_int = 0x2010;
    pub(crate) const TXW_SQNS: c_int = 0x2012;
    pub(crate) const PEER_EXPIRY: c_int = 0x2015;
    pub(crate) const SPMR_EXPIRY: c_int = 0x2016;
    pub(crate) const RXW_SQNS: c_int = 0x2018;
    pub(crate) const NAK_BO_IVL: c_int = 0x201b;
    pub(crate) const NAK_RPT_IVL: c_int = 0x201c;
    pub(crate) const NAK_RDATA_IVL: c_int = 0x201d;
    pub(crate) const NAK_DATA_RETRIES: c_int = 0x201e;
    pub(crate) const NAK_NCF_RETRIES: c_int = 0x201f;
    pub(crate) const SEND_ONLY: c_int = 0x2023;
    pub(crate) const RECV_ONLY: c_int = 0x2024;
    pub(crate) const PASSIVE: c_int = 0x2025;
    pub(crate) const NOBLOCK: c_int = 0x2027;
    pub(crate) const SEND_GROUP: c_int = 0x2028;
    pub(crate) const JOIN_GROUP: c_int = 0x2029;
    pub(crate) const UDP_ENCAP_UCAST_PORT: c_int = 0x2030;
    pub(crate) const UDP_ENCAP_MCAST_PORT: c_int = 0x2031;
}

/// Return values of the functions.
pub(super) mod status {
    use std::ffi::c_int;

    pub(crate) const ERROR: c_int = 0;
    pub(crate) const NORMAL: c_int = 1;
    pub(crate) const RESET: c_int = 2;
    pub(crate) const RATE_LIMITED: c_int = 6;
    pub(crate) const TIMER_PENDING: c_int = 7;
}

/// Socket of the library. Its content is private to the library.
#[repr(C)]
pub(super) struct Opaque {
    _private: [u8; 0],
}

/// Error of the library (`pgm_error_t`).
#[repr(C)]
pub(super) struct Fault {
    domain: c_int,
    code: c_int,
    message: *mut c_char,
}

/// Address of a session (`pgm_sockaddr_t`).
#[repr(C)]
pub(super) struct Session {
    pub(super) destination_port: u16,
    pub(super) global_id: [u8; 6],
    pub(super) source_port: u16,
}

/// Interface that a socket uses (`pgm_interface_req_t`).
#[repr(C)]
pub(super) struct Through {
    pub(super) interface: u32,
    pub(super) scope: u32,
    pub(super) address: libc::sockaddr_storage,
}

type Log = unsafe extern "C" fn(c_int, *const c_char, *mut c_void);
type Faults = *mut *mut Fault;

/// Functions of the library.
#[derive(Debug)]
pub(super) struct OpenPgmLibrary {
    /// Version as `major.minor.micro`.
    pub(super) version: String,
    pub(super) socket: unsafe extern "C" fn(*mut *mut Opaque, u16, c_int, c_int, Faults) -> bool,
    pub(super) bind3: unsafe extern "C" fn(
        *mut Opaque,
        *const Session,
        u32,
        *const Through,
        u32,
        *const Through,
        u32,
        Faults,
    ) -> bool,
    pub(super) connect: unsafe extern "C" fn(*mut Opaque, Faults) -> bool,
    pub(super) close: unsafe extern "C" fn(*mut Opaque, bool) -> bool,
    pub(super) setsockopt:
        unsafe extern "C" fn(*mut Opaque, c_int, c_int, *const c_void, u32) -> bool,
    pub(super) getsockopt:
        unsafe extern "C" fn(*mut Opaque, c_int, c_int, *mut c_void, *mut u32) -> bool,
    pub(super) send: unsafe extern "C" fn(*mut Opaque, *const c_void, usize, *mut usize) -> c_int,
    pub(super) recv:
        unsafe extern "C" fn(*mut Opaque, *mut c_void, usize, c_int, *mut usize, Faults) -> c_int,
    error_free: unsafe extern "C" fn(*mut Fault),
    /// Keeps the library loaded.
    _library: Library,
}

impl OpenPgmLibrary {
    /// Returns the functions. The first call loads the library.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, or if it differs from its headers.
    pub(super) fn get() -> Result<&'static OpenPgmLibrary, NetError> {
        static LIBRARY: Once<OpenPgmLibrary> = Once::new(NAME);
        LIBRARY.get(OpenPgmLibrary::find)
    }

    fn find(library: Library) -> Result<OpenPgmLibrary, LibraryError> {
        // SAFETY: the types in this module repeat the types of the headers, so every symbol has its correct
        // type. The variables are constants.
        unsafe {
            let number = |name| Ok::<_, LibraryError>(*library.find::<*const c_uint>(name)?);
            let set_handler: unsafe extern "C" fn(Option<Log>, *mut c_void) -> Option<Log> =
                library.find("pgm_log_set_handler")?;
            let init: unsafe extern "C" fn(Faults) -> bool = library.find("pgm_init")?;
            let loaded = OpenPgmLibrary {
                version: format!(
                    "{}.{}.{}",
                    number("pgm_major_version")?,
                    number("pgm_minor_version")?,
                    number("pgm_micro_version")?
                ),
                socket: library.find("pgm_socket")?,
                bind3: library.find("pgm_bind3")?,
                connect: library.find("pgm_connect")?,
                close: library.find("pgm_close")?,
                setsockopt: library.find("pgm_setsockopt")?,
                getsockopt: library.find("pgm_getsockopt")?,
                send: library.find("pgm_send")?,
                recv: library.find("pgm_recv")?,
                error_free: library.find("pgm_error_free")?,
                _library: library,
            };
            // Without a handler, the library writes its log to standard output. But laglab writes its results
            // to standard output.
            set_handler(Some(silence), ptr::null_mut());
            let mut fault = ptr::null_mut();
            if init(&mut fault) {
                Ok(loaded)
            } else {
                Err(LibraryError::Start(loaded.message(fault)))
            }
        }
    }

    /// Returns the text of an error and frees it.
    ///
    /// # Safety
    /// The error must be null or just returned by a call.
    pub(super) unsafe fn message(&self, fault: *mut Fault) -> String {
        if fault.is_null() {
            return "no message".to_owned();
        }
        // SAFETY: the message of an error is a text or null. The error is not used after it is
        // freed.
        unsafe {
            let message = (*fault).message;
            let said = if message.is_null() {
                "no message".to_owned()
            } else {
                CStr::from_ptr(message).to_string_lossy().into_owned()
            };
            (self.error_free)(fault);
            said
        }
    }
}

unsafe extern "C" fn silence(_: c_int, _: *const c_char, _: *mut c_void) {}
