//! Safe wrappers of ZeroMQ's contexts and sockets.
//!
//! Unsafe code is allowed to call the library. This use is sound for three reasons. Contexts and sockets are
//! used only between creation and drop, and a context outlives its sockets. Only one thread at a time uses a
//! socket, under a lock. Every argument outlives its call, and the call gets the argument's size.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::library::{DONTWAIT, ZeroMq};

/// ZeroMQ context. Its threads run in the namespace of the thread that creates its first socket.
#[derive(Debug)]
pub(super) struct Context {
    raw: NonNull<c_void>,
    library: &'static ZeroMq,
}

// SAFETY: the library documents that contexts can be shared.
unsafe impl Send for Context {}
// SAFETY: the library documents that contexts can be shared.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(library: &'static ZeroMq) -> io::Result<Arc<Context>> {
        // SAFETY: the call has no preconditions.
        let raw = NonNull::new(unsafe { (library.ctx_new)() });
        let raw = raw.ok_or_else(|| library.last_error())?;
        Ok(Arc::new(Context { raw, library }))
    }

    /// Sets an option. The option has an effect only if it is set before the first socket is
    /// created.
    pub(super) fn set(&self, option: c_int, value: c_int) -> io::Result<()> {
        // SAFETY: the context is open.
        match unsafe { (self.library.ctx_set)(self.raw.as_ptr(), option, value) } {
            0 => Ok(()),
            _ => Err(self.library.last_error()),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: every socket keeps a reference to the context, so no socket exists any more.
        unsafe { (self.library.ctx_term)(self.raw.as_ptr()) };
    }
}

/// ZeroMQ socket.
#[derive(Debug)]
pub(super) struct Socket {
    raw: NonNull<c_void>,
    library: &'static ZeroMq,
    /// Context, which is dropped after this socket is closed.
    _context: Arc<Context>,
}

// SAFETY: the library documents that another thread may use a socket after a full memory barrier.
unsafe impl Send for Socket {}

impl Socket {
    pub(super) fn new(context: &Arc<Context>, kind: c_int) -> io::Result<Socket> {
        let library = context.library;
        // SAFETY: the context is open.
        let raw = NonNull::new(unsafe { (library.socket)(context.raw.as_ptr(), kind) });
        Ok(Socket {
            raw: raw.ok_or_else(|| library.last_error())?,
            library,
            _context: Arc::clone(context),
        })
    }

    pub(super) fn set(&self, option: c_int, value: c_int) -> io::Result<()> {
        self.set_bytes(option, &value.to_ne_bytes())
    }

    pub(super) fn set_bytes(&self, option: c_int, value: &[u8]) -> io::Result<()> {
        // SAFETY: the value outlives the call, and the call gets its size.
        let outcome = unsafe {
            (self.library.setsockopt)(
                self.raw.as_ptr(),
                option,
                value.as_ptr().cast(),
                value.len(),
            )
        };
        self.outcome(outcome).map(|_| ())
    }

    pub(super) fn connect(&self, address: &CStr) -> io::Result<()> {
        // SAFETY: the address outlives the call.
        let outcome = unsafe { (self.library.connect)(self.raw.as_ptr(), address.as_ptr()) };
        self.outcome(outcome).map(|_| ())
    }

    /// Sends a message without waiting.
    pub(super) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the message outlives the call, and the call gets its size.
        let outcome = unsafe {
            (self.library.send)(
                self.raw.as_ptr(),
                message.as_ptr().cast(),
                message.len(),
                DONTWAIT,
            )
        };
        self.outcome(outcome).map(|_| ())
    }

    /// Receives a message. Waits at most for the socket's timeout.
    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the call gets the buffer's size.
        let outcome = unsafe {
            (self.library.recv)(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
            )
        };
        // The library truncates a longer message, but returns its full length.
        self.outcome(outcome).map(|len| len.min(buffer.len()))
    }

    fn outcome(&self, outcome: c_int) -> io::Result<usize> {
        usize::try_from(outcome).map_err(|_| self.library.last_error())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the socket is not used afterwards.
        unsafe { (self.library.close)(self.raw.as_ptr()) };
    }
}
