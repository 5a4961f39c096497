//! Many overlapped calls at once. They complete in batches through an I/O completion port.
//!
//! Unsafe code is allowed because Windows gets the addresses of the data and of the record of each call. This
//! use is sound because the memory of a call neither moves nor is freed while the call is outstanding. The
//! records and data are in a box that no other code accesses. Dropping the box cancels the calls and waits
//! for them. If the wait fails, the memory is leaked.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::windows::io::{AsRawHandle, AsRawSocket, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    ERROR_IO_PENDING, HANDLE, INVALID_HANDLE_VALUE, WAIT_TIMEOUT,
};
use windows_sys::Win32::Networking::WinSock::{WSABUF, WSARecv, WSASend};
use windows_sys::Win32::System::IO::{
    CancelIoEx, CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED, OVERLAPPED_ENTRY,
};

use super::{BURST, Receive, ReceivedCount, Send, WAIT};

/// Overlapped call that may be outstanding.
struct Call {
    record: OVERLAPPED,
    buffer: WSABUF,
    data: Vec<u8>,
}

/// Socket with its completion port and its calls.
struct Port {
    socket: UdpSocket,
    port: OwnedHandle,
    calls: Box<[Call]>,
    outstanding: usize,
    size: usize,
}

/// Index of a completed call, and its number of bytes.
type Completion = (usize, u32);

impl Port {
    fn new(socket: UdpSocket, size: usize) -> io::Result<Port> {
        let handle = socket.as_raw_socket() as HANDLE;
        // SAFETY: the handle belongs to an open socket.
        let port = unsafe { CreateIoCompletionPort(handle, null_mut(), 0, 1) };
        if port.is_null() || port == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        let call = || {
            let mut data = vec![0; size];
            let buffer = WSABUF {
                len: size as u32,
                buf: data.as_mut_ptr(),
            };
            // SAFETY: the record holds integers and pointers, for which zero is valid.
            let record = unsafe { mem::zeroed() };
            Call {
                record,
                buffer,
                data,
            }
        };
        Ok(Port {
            socket,
            // SAFETY: the port was just created and has no other owner.
            port: unsafe { OwnedHandle::from_raw_handle(port) },
            calls: (0..BURST).map(|_| call()).collect(),
            outstanding: 0,
            size,
        })
    }

    /// Starts call number `number`: a send or a receive.
    fn begin(&mut self, number: usize, is_send: bool) -> io::Result<()> {
        let socket = self.socket.as_raw_socket() as usize;
        let call = &mut self.calls[number];
        debug_assert_eq!(call.data.len(), self.size);
        let record = &raw mut call.record;
        let mut flags = 0;
        // SAFETY: record, buffer and data do not move until the completion arrives. This is also true for a
        // call that completes at once. The flags are read only during the call.
        let outcome = unsafe {
            *record = mem::zeroed();
            if is_send {
                WSASend(socket, &call.buffer, 1, null_mut(), 0, record, None)
            } else {
                WSARecv(
                    socket,
                    &call.buffer,
                    1,
                    null_mut(),
                    &mut flags,
                    record,
                    None,
                )
            }
        };
        let error = io::Error::last_os_error();
        if outcome != 0 && error.raw_os_error() != Some(ERROR_IO_PENDING as i32) {
            return Err(error);
        }
        self.outstanding += 1;
        Ok(())
    }

    /// Waits for completions, at most for `WAIT`, and returns them.
    fn ended(&mut self) -> io::Result<Vec<Completion>> {
        let mut entries: [OVERLAPPED_ENTRY; BURST] =
            // SAFETY: an entry holds integers and pointers, for which zero is valid.
            unsafe { mem::zeroed() };
        let mut count = 0;
        // SAFETY: there is room for the passed number of entries.
        let outcome = unsafe {
            GetQueuedCompletionStatusEx(
                self.port.as_raw_handle(),
                entries.as_mut_ptr(),
                BURST as u32,
                &mut count,
                WAIT.as_millis() as u32,
                0,
            )
        };
        if outcome == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT as i32) {
                Ok(Vec::new())
            } else {
                Err(error)
            };
        }
        let mut ended = Vec::with_capacity(count as usize);
        for entry in &entries[..count as usize] {
            let record = entry.lpOverlapped.cast_const();
            let number = (self.calls.iter()).position(|call| &raw const call.record == record);
            if let Some(number) = number {
                self.outstanding -= 1;
                ended.push((number, entry.dwNumberOfBytesTransferred));
            }
        }
        Ok(ended)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if self.outstanding == 0 {
            return;
        }
        // SAFETY: the handle belongs to an open socket.
        unsafe { CancelIoEx(self.socket.as_raw_socket() as HANDLE, null()) };
        for _ in 0..10 {
            if self.ended().is_err() || self.outstanding == 0 {
                break;
            }
        }
        if self.outstanding > 0 {
            mem::forget(mem::take(&mut self.calls));
        }
    }
}

struct Sender(Port);

struct Receiver(Port);

pub(super) fn sender(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Send>> {
    Ok(Box::new(Sender(Port::new(socket, size)?)))
}

pub(super) fn receiver(socket: UdpSocket, size: usize) -> io::Result<Box<dyn Receive>> {
    let mut port = Port::new(socket, size)?;
    for number in 0..BURST {
        port.begin(number, false)?;
    }
    Ok(Box::new(Receiver(port)))
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let Sender(port) = self;
        for number in 0..BURST {
            port.begin(number, true)?;
        }
        let mut sent = 0;
        // If calls do not complete within a second, `drop` handles them.
        for _ in 0..BURST + 10 {
            let ended = port.ended()?;
            sent += ended.iter().filter(|(_, bytes)| *bytes > 0).count() as u64;
            if port.outstanding == 0 {
                return Ok(sent);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let Receiver(port) = self;
        let mut count = ReceivedCount::default();
        for (number, bytes) in port.ended()? {
            if bytes > 0 {
                count.add(bytes as usize, port.size);
            }
            port.begin(number, false)?;
        }
        Ok(count)
    }
}
