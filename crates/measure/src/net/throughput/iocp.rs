//! Overlapped calls, many at a time, whose ends an I/O completion port tells in batches.
//!
//! This file has unsafe code, because Windows is given addresses of memory: of the data and of the
//! record of each call. What makes it sound: none of that memory moves or is freed while its call is
//! outstanding. Records and data are in a box that nothing else touches; whoever drops them cancels
//! the calls and waits for their ends first, and leaks the memory should that fail.
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

use super::{BURST, Receive, Send, Taken, WAIT};

/// A call that may be outstanding.
struct Call {
    record: OVERLAPPED,
    buffer: WSABUF,
    data: Vec<u8>,
}

/// A socket, its port and its calls.
struct Port {
    socket: UdpSocket,
    port: OwnedHandle,
    calls: Box<[Call]>,
    outstanding: usize,
    size: usize,
}

/// What ended: which call, and with how many bytes.
type Ended = (usize, u32);

impl Port {
    fn new(socket: UdpSocket, size: usize) -> io::Result<Port> {
        let handle = socket.as_raw_socket() as HANDLE;
        // SAFETY: the handle is that of an open socket.
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
            // SAFETY: the record is integers and addresses, for which zeros are values.
            let record = unsafe { mem::zeroed() };
            Call {
                record,
                buffer,
                data,
            }
        };
        Ok(Port {
            socket,
            // SAFETY: the port was just made and nobody else has it.
            port: unsafe { OwnedHandle::from_raw_handle(port) },
            calls: (0..BURST).map(|_| call()).collect(),
            outstanding: 0,
            size,
        })
    }

    /// Begins a call.
    fn begin(&mut self, number: usize, is_send: bool) -> io::Result<()> {
        let socket = self.socket.as_raw_socket() as usize;
        let call = &mut self.calls[number];
        debug_assert_eq!(call.data.len(), self.size);
        let record = &raw mut call.record;
        let mut flags = 0;
        // SAFETY: record, buffer and data stay where they are until the call's end is told, which is
        // also told by the port when it ends at once; the flags are read during the call only.
        let outcome = unsafe {
            *record = mem::zeroed();
            match is_send {
                true => WSASend(socket, &call.buffer, 1, null_mut(), 0, record, None),
                false => WSARecv(
                    socket,
                    &call.buffer,
                    1,
                    null_mut(),
                    &mut flags,
                    record,
                    None,
                ),
            }
        };
        let error = io::Error::last_os_error();
        if outcome != 0 && error.raw_os_error() != Some(ERROR_IO_PENDING as i32) {
            return Err(error);
        }
        self.outstanding += 1;
        Ok(())
    }

    /// Waits for ends, but not for long.
    fn ended(&mut self) -> io::Result<Vec<Ended>> {
        let mut entries: [OVERLAPPED_ENTRY; BURST] =
            // SAFETY: an entry is integers and addresses, for which zeros are values.
            unsafe { mem::zeroed() };
        let mut count = 0;
        // SAFETY: there is room for as many entries as the call is told.
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
            return match error.raw_os_error() == Some(WAIT_TIMEOUT as i32) {
                true => Ok(Vec::new()),
                false => Err(error),
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
        // SAFETY: the handle is that of an open socket.
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
        // What does not end in a second is left to whoever drops this.
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
    fn take(&mut self) -> io::Result<Taken> {
        let Receiver(port) = self;
        let mut taken = Taken::default();
        for (number, bytes) in port.ended()? {
            if bytes > 0 {
                taken.add(bytes as usize, port.size);
            }
            port.begin(number, false)?;
        }
        Ok(taken)
    }
}
