//! Functions of the ZeroMQ library.
//!
//! Names, signatures and numbers in this module are copied from ZeroMQ's public header (`zmq.h` of version
//! 4.3). Unsafe code is allowed to look up functions by name. This is sound if the contents of the library
//! match its file name. The file name includes the version of the library's interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;

use crate::net::peers::library::{Library, Once};
use crate::net::{LibraryError, NetError};

/// Type of a socket that publishes.
pub(super) const PUB: c_int = 1;

/// Type of a socket that subscribes.
pub(super) const SUB: c_int = 2;

/// Flag that makes a call return instead of waiting.
pub(super) const DONTWAIT: c_int = 1;

/// Numbers of options. The first two options belong to contexts, the others belong to sockets. The value of
/// `SUBSCRIBE` consists of bytes. All other values are integers.
pub(super) mod option {
    use std::ffi::c_int;

    pub(crate) const THREAD_PRIORITY: c_int = 3;
    pub(crate) const THREAD_SCHED_POLICY: c_int = 4;
    pub(crate) const SUBSCRIBE: c_int = 6;
    pub(crate) const RATE: c_int = 8;
    pub(crate) const RECOVERY_IVL: c_int = 9;
    pub(crate) const SNDBUF: c_int = 11;
    pub(crate) const RCVBUF: c_int = 12;
    pub(crate) const LINGER: c_int = 17;
    pub(crate) const SNDHWM: c_int = 23;
    pub(crate) const RCVHWM: c_int = 24;
    pub(crate) const RCVTIMEO: c_int = 27;
    pub(crate) const IPV6: c_int = 42;
    pub(crate) const XPUB_NODROP: c_int = 69;
}

/// Functions of the library.
#[derive(Debug)]
pub(super) struct ZeroMq {
    /// Version as `major.minor.patch`.
    pub(super) version: String,
    pub(super) ctx_new: unsafe extern "C" fn() -> *mut c_void,
    pub(super) ctx_set: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    pub(super) ctx_term: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(super) socket: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    pub(super) setsockopt: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> c_int,
    pub(super) connect: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    pub(super) send: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int,
    pub(super) recv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    pub(super) close: unsafe extern "C" fn(*mut c_void) -> c_int,
    errno: unsafe extern "C" fn() -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    /// Keeps the library loaded.
    _library: Library,
}

impl ZeroMq {
    /// Returns the functions. The first call loads the library.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, differs from its header, or was built
    /// without `epgm`.
    pub(super) fn get() -> Result<&'static ZeroMq, NetError> {
        static LIBRARY: Once<ZeroMq> = Once::new("libzmq.so.5");
        LIBRARY.get(ZeroMq::find)
    }

    fn find(library: Library) -> Result<ZeroMq, LibraryError> {
        // SAFETY: the types in this module repeat the signatures of the header, so every function has its
        // correct type. The version numbers are written to local variables.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) =
                library.find("zmq_version")?;
            let has: unsafe extern "C" fn(*const c_char) -> c_int = library.find("zmq_has")?;
            if has(c"pgm".as_ptr()) == 0 {
                return Err(LibraryError::NoEpgm);
            }
            let mut numbers = [0; 3];
            let [major, minor, patch] = &mut numbers;
            version(major, minor, patch);
            Ok(ZeroMq {
                version: numbers.map(|number| number.to_string()).join("."),
                ctx_new: library.find("zmq_ctx_new")?,
                ctx_set: library.find("zmq_ctx_set")?,
                ctx_term: library.find("zmq_ctx_term")?,
                socket: library.find("zmq_socket")?,
                setsockopt: library.find("zmq_setsockopt")?,
                connect: library.find("zmq_connect")?,
                send: library.find("zmq_send")?,
                recv: library.find("zmq_recv")?,
                close: library.find("zmq_close")?,
                errno: library.find("zmq_errno")?,
                strerror: library.find("zmq_strerror")?,
                _library: library,
            })
        }
    }

    /// Returns the error of the last call on this thread.
    pub(super) fn last_error(&self) -> io::Error {
        // SAFETY: the calls return an error number and a constant text for this number.
        let (number, words) = unsafe {
            let number = (self.errno)();
            (number, CStr::from_ptr((self.strerror)(number)))
        };
        let error = io::Error::from_raw_os_error(number);
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, words.to_string_lossy().into_owned()),
        }
    }
}
