//! ZeroMQ's sockets, safe to use.
//!
//! It has unsafe code to call the library. It is sound because contexts and sockets are handed to it
//! from their making until they are dropped and no longer, a context after its sockets; because a socket
//! is used on one thread at a time, with a lock between; and because every value lives longer than the
//! call that it is given to, with its own size.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::library::{DONTWAIT, ZeroMq};

/// A context: whoever makes the first socket of it gives its threads their namespace.
#[derive(Debug)]
pub(super) struct Context {
    raw: NonNull<c_void>,
    library: &'static ZeroMq,
}

// SAFETY: the library says that contexts can be shared.
unsafe impl Send for Context {}
// SAFETY: likewise.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(library: &'static ZeroMq) -> io::Result<Arc<Context>> {
        // SAFETY: nothing is asked of the caller.
        let raw = NonNull::new(unsafe { (library.ctx_new)() });
        let raw = raw.ok_or_else(|| library.last_error())?;
        Ok(Arc::new(Context { raw, library }))
    }

    /// Takes effect if there is no socket yet.
    pub(super) fn set(&self, option: c_int, value: c_int) -> io::Result<()> {
        // SAFETY: the context is there.
        match unsafe { (self.library.ctx_set)(self.raw.as_ptr(), option, value) } {
            0 => Ok(()),
            _ => Err(self.library.last_error()),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more, since sockets hold it.
        unsafe { (self.library.ctx_term)(self.raw.as_ptr()) };
    }
}

/// A socket.
#[derive(Debug)]
pub(super) struct Socket {
    raw: NonNull<c_void>,
    library: &'static ZeroMq,
    /// Dropped after this socket is closed.
    _context: Arc<Context>,
}

// SAFETY: the library says that a socket may go to another thread if that sees all that was done before.
unsafe impl Send for Socket {}

impl Socket {
    pub(super) fn new(context: &Arc<Context>, kind: c_int) -> io::Result<Socket> {
        let library = context.library;
        // SAFETY: the context is there.
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
        // SAFETY: the value lives longer than the call, and its size is told.
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
        // SAFETY: the address lives longer than the call.
        let outcome = unsafe { (self.library.connect)(self.raw.as_ptr(), address.as_ptr()) };
        self.outcome(outcome).map(|_| ())
    }

    /// Sends a message, without waiting.
    pub(super) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the message lives longer than the call, and its size is told.
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

    /// Receives a message; waits for it as long as the socket is told to.
    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer's size is told.
        let outcome = unsafe {
            (self.library.recv)(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
            )
        };
        // A longer message is cut, and its whole length told.
        self.outcome(outcome).map(|len| len.min(buffer.len()))
    }

    fn outcome(&self, outcome: c_int) -> io::Result<usize> {
        usize::try_from(outcome).map_err(|_| self.library.last_error())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { (self.library.close)(self.raw.as_ptr()) };
    }
}
