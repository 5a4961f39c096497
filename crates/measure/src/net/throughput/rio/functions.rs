//! Functions of registered I/O. No library exports them, so they are queried from the provider of a
//! socket.
//!
//! Unsafe code is allowed for this query. This use is sound for two reasons. The call gets the sizes of the
//! local variables that it reads and writes. The result of the call is checked.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::net::UdpSocket;
use std::os::windows::io::AsRawSocket;
use std::ptr::null_mut;

use windows_sys::Win32::Networking::WinSock::{
    RIO_BUF, RIO_BUFFERID, RIO_CQ, RIO_EXTENSION_FUNCTION_TABLE, RIO_NOTIFICATION_COMPLETION,
    RIO_RQ, RIORESULT, SIO_GET_MULTIPLE_EXTENSION_FUNCTION_POINTER, SOCKET, WSAID_MULTIPLE_RIO,
    WSAIoctl,
};
use windows_sys::core::BOOL;

/// Function `RIOSend` or `RIOReceive`.
pub(super) type Request =
    unsafe extern "system" fn(RIO_RQ, *const RIO_BUF, u32, u32, *const c_void) -> BOOL;

/// Functions that this program uses, named as in `RIO_EXTENSION_FUNCTION_TABLE`.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) receive: Request,
    pub(super) send: Request,
    pub(super) close_completion_queue: unsafe extern "system" fn(RIO_CQ),
    pub(super) create_completion_queue:
        unsafe extern "system" fn(u32, *const RIO_NOTIFICATION_COMPLETION) -> RIO_CQ,
    pub(super) create_request_queue: unsafe extern "system" fn(
        SOCKET,
        u32,
        u32,
        u32,
        u32,
        RIO_CQ,
        RIO_CQ,
        *const c_void,
    ) -> RIO_RQ,
    pub(super) dequeue: unsafe extern "system" fn(RIO_CQ, *mut RIORESULT, u32) -> u32,
    pub(super) deregister_buffer: unsafe extern "system" fn(RIO_BUFFERID),
    pub(super) notify: unsafe extern "system" fn(RIO_CQ) -> i32,
    pub(super) register_buffer: unsafe extern "system" fn(*const u8, u32) -> RIO_BUFFERID,
}

impl Functions {
    /// Queries the functions.
    ///
    /// # Errors
    /// Returns an error if the system has no registered I/O (before Windows 8, under Wine), or if
    /// the table is incomplete.
    pub(super) fn query(socket: &UdpSocket) -> io::Result<Functions> {
        let of_rio = WSAID_MULTIPLE_RIO;
        let mut table = RIO_EXTENSION_FUNCTION_TABLE::default();
        let mut written = 0;
        // SAFETY: the call gets the sizes of both structures, and both structures outlive the call.
        let outcome = unsafe {
            WSAIoctl(
                socket.as_raw_socket() as usize,
                SIO_GET_MULTIPLE_EXTENSION_FUNCTION_POINTER,
                (&raw const of_rio).cast(),
                size_of_val(&of_rio) as u32,
                (&raw mut table).cast(),
                size_of_val(&table) as u32,
                &mut written,
                null_mut(),
                None,
            )
        };
        if outcome != 0 {
            // On some systems, the text of this error is useless, so only its number is reported.
            let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(io::Error::other(format!(
                "the system has no registered I/O, which needs Windows 8 (WSAIoctl: error {error})"
            )));
        }
        // Fields that the system did not write are still empty.
        Functions::from_table(&table).ok_or_else(|| {
            io::Error::other("the system's table of registered I/O functions is incomplete")
        })
    }

    fn from_table(table: &RIO_EXTENSION_FUNCTION_TABLE) -> Option<Functions> {
        Some(Functions {
            receive: table.RIOReceive?,
            send: table.RIOSend?,
            close_completion_queue: table.RIOCloseCompletionQueue?,
            create_completion_queue: table.RIOCreateCompletionQueue?,
            create_request_queue: table.RIOCreateRequestQueue?,
            dequeue: table.RIODequeueCompletion?,
            deregister_buffer: table.RIODeregisterBuffer?,
            notify: table.RIONotify?,
            register_buffer: table.RIORegisterBuffer?,
        })
    }
}
