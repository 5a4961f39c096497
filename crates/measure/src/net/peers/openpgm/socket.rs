//! Safe wrapper of OpenPGM's sockets.
//!
//! Unsafe code is allowed to call the library. This use is sound for these reasons. A socket is used only
//! between creation and drop. Every argument outlives its call, and the call gets the argument's size.
//! Arguments that abort version 5.3 are rejected: messages of more than one packet, and unaligned messages.
//! Both kinds of messages abort in the routine that copies and sums a message in one pass. The library locks
//! internally, so several threads may call it.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockAddr, SockRef};

use super::library::{IPPROTO_PGM, Opaque, OpenPgmLibrary, Session, Through, option, status};
use super::{LARGEST, Message};
use crate::net::buffers::{Buffers, grant};
use crate::net::{Interface, NetError};

/// Role of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Does {
    Send,
    Receive,
    Both,
}

/// Result of [`OpenPgmSocket::recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Reception {
    /// A message of this length in bytes.
    Message(usize),
    /// Packets were lost. Their number is unknown.
    Lost,
    /// No message arrived. The next action is due after this time.
    Nothing(Duration),
}

/// Number of packets in the windows of source and receiver. It is the same number as for laglab's PGM.
const WINDOW: c_int = 16_384;

/// Port that identifies sessions at both ends. It is the same port as for laglab's PGM.
const DESTINATION_PORT: u16 = 7500;

/// Minimum time until the next action. It is needed because the library may report zero repeatedly.
const SHORTEST: Duration = Duration::from_micros(50);

/// Maximum time until the next action.
const LONGEST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(in crate::net) struct OpenPgmSocket {
    raw: NonNull<Opaque>,
    library: &'static OpenPgmLibrary,
    /// Descriptors that become readable when the library has work to do.
    readable: Vec<RawFd>,
}

// SAFETY: the library locks the data that threads share.
unsafe impl Send for OpenPgmSocket {}
// SAFETY: the library locks the data that threads share.
unsafe impl Sync for OpenPgmSocket {}

impl OpenPgmSocket {
    /// Opens a socket for a group. The group's port is used both for packets to the group and for
    /// repair requests, because the library's requests are lost if the ports differ.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, there is no such interface, or the library refuses
    /// to open a socket.
    pub(in crate::net) fn open(
        interface: &Interface,
        group: SocketAddr,
        does: Does,
        buffer_bytes: Option<usize>,
    ) -> Result<(OpenPgmSocket, Buffers), NetError> {
        let library = OpenPgmLibrary::get()?;
        let Some(number) = interface.index else {
            let why = format!("interface `{}` has no number", interface.name);
            return Err(refused("to listen")(why));
        };
        let family = match group {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        let mut raw = ptr::null_mut();
        let mut fault = ptr::null_mut();
        // SAFETY: both pointers are valid for writes.
        let is_created = unsafe {
            (library.socket)(
                &mut raw,
                family as u16,
                libc::SOCK_SEQPACKET,
                libc::IPPROTO_UDP,
                &mut fault,
            )
        };
        let raw = NonNull::new(raw).filter(|_| is_created).ok_or_else(|| {
            // SAFETY: the error belongs to this call.
            let said = unsafe { library.message(fault) };
            refused("to create a socket")(said)
        })?;
        let mut socket = OpenPgmSocket {
            raw,
            library,
            readable: Vec::new(),
        };
        socket.configure(group, does)?;
        socket.bind(number)?;
        socket.join(number, group)?;
        socket.connect()?;
        let fds = [option::RECV_SOCK, option::REPAIR_SOCK, option::PENDING_SOCK];
        socket.readable = fds.iter().filter_map(|fd| socket.descriptor(*fd)).collect();
        let granted = |fd| {
            let fd = socket.descriptor(fd).ok_or_else(|| {
                refused("to report its descriptors")("it may be another version".to_owned())
            })?;
            // SAFETY: the library closes the descriptor only when it closes the socket, and the socket
            // outlives this use.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            grant(&SockRef::from(&fd), buffer_bytes)
                .map_err(NetError::context("setting buffer sizes"))
        };
        let buffers = Buffers {
            send: granted(option::SEND_SOCK)?.send,
            ..granted(option::RECV_SOCK)?
        };
        Ok((socket, buffers))
    }

    /// Sets the same times as for laglab's PGM. The only exceptions are the waits for answers to repair
    /// requests. Here these waits are a constant 20 ms and 40 ms. laglab's PGM uses 2 ms and 5 ms and doubles
    /// them. With laglab's values, the library would give up after a fraction of a second.
    fn configure(&self, group: SocketAddr, does: Does) -> Result<(), NetError> {
        let milliseconds = |ms: c_int| ms * 1_000;
        let port = c_int::from(group.port());
        let mut options = vec![
            (option::UDP_ENCAP_UCAST_PORT, port),
            (option::UDP_ENCAP_MCAST_PORT, port),
            (option::MTU, 1_500),
        ];
        if group.is_ipv4() {
            options.push((option::IP_ROUTER_ALERT, 0));
        }
        if does != Does::Receive {
            options.extend([
                (option::TXW_SQNS, WINDOW),
                (option::AMBIENT_SPM, milliseconds(10_000)),
            ]);
        }
        if does != Does::Send {
            options.extend([
                (option::PASSIVE, 0),
                (option::RXW_SQNS, WINDOW),
                (option::PEER_EXPIRY, milliseconds(30_000)),
                (option::SPMR_EXPIRY, milliseconds(250)),
                (option::NAK_BO_IVL, 500),
                (option::NAK_RPT_IVL, milliseconds(20)),
                (option::NAK_RDATA_IVL, milliseconds(40)),
                (option::NAK_DATA_RETRIES, 100),
                (option::NAK_NCF_RETRIES, 100),
            ]);
        }
        match does {
            Does::Send => options.push((option::SEND_ONLY, 1)),
            Does::Receive => options.push((option::RECV_ONLY, 1)),
            Does::Both => {}
        }
        for (option, value) in options {
            self.set(option, &value)?;
        }
        if does != Does::Receive {
            let heartbeats =
                [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_000].map(milliseconds);
            self.set(option::HEARTBEAT_SPM, &heartbeats)?;
        }
        Ok(())
    }

    fn bind(&self, interface: u32) -> Result<(), NetError> {
        let mut global_id = [0; 6];
        getrandom::fill(&mut global_id).map_err(|error| {
            NetError::context("getting a random number")(io::Error::other(error))
        })?;
        let session = Session {
            destination_port: DESTINATION_PORT,
            global_id,
            // The value 0 lets the library choose a port.
            source_port: 0,
        };
        let through = Through {
            interface,
            scope: 0,
            // SAFETY: zero is valid for all fields. An address of all zeros has no family. It selects the
            // interface's address.
            address: unsafe { std::mem::zeroed() },
        };
        let mut fault = ptr::null_mut();
        // SAFETY: all targets outlive the call, and the call gets their sizes.
        let is_bound = unsafe {
            (self.library.bind3)(
                self.raw.as_ptr(),
                &session,
                size_of::<Session>() as u32,
                &through,
                size_of::<Through>() as u32,
                &through,
                size_of::<Through>() as u32,
                &mut fault,
            )
        };
        if is_bound {
            return Ok(());
        }
        // SAFETY: the error belongs to this call.
        Err(refused("to listen")(unsafe { self.library.message(fault) }))
    }

    /// Sets the group to join and the group to send to. Every role needs both.
    fn join(&self, interface: u32, group: SocketAddr) -> Result<(), NetError> {
        let mut address = group;
        address.set_port(0);
        let address = SockAddr::from(address);
        let request = libc::group_req {
            gr_interface: interface,
            // SAFETY: a `SockAddr` contains a whole `sockaddr_storage`.
            gr_group: unsafe { *address.as_ptr().cast() },
        };
        self.set(option::JOIN_GROUP, &request)?;
        self.set(option::SEND_GROUP, &request)?;
        self.set::<c_int>(option::MULTICAST_LOOP, &0)?;
        self.set::<c_int>(option::MULTICAST_HOPS, &1)?;
        self.set::<c_int>(option::NOBLOCK, &1)
    }

    fn connect(&self) -> Result<(), NetError> {
        let mut fault = ptr::null_mut();
        // SAFETY: the socket is open, and the pointer is valid for writes.
        if unsafe { (self.library.connect)(self.raw.as_ptr(), &mut fault) } {
            return Ok(());
        }
        // SAFETY: the error belongs to this call.
        Err(refused("to connect")(unsafe {
            self.library.message(fault)
        }))
    }

    /// Sends a message. Returns false if the library cannot accept a message now.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(in crate::net) fn send(&self, message: &Message, len: usize) -> io::Result<bool> {
        let message = &message.0[..len.min(LARGEST)];
        let mut sent = 0;
        // SAFETY: the message outlives the call, is aligned and fits into a packet.
        let outcome = unsafe {
            (self.library.send)(
                self.raw.as_ptr(),
                message.as_ptr().cast(),
                message.len(),
                &mut sent,
            )
        };
        match outcome {
            status::NORMAL => Ok(true),
            status::ERROR => Err(io::Error::last_os_error()),
            _ => Ok(false),
        }
    }

    /// Does pending work and returns a message if one arrived.
    ///
    /// # Errors
    /// Returns the error of the library.
    pub(in crate::net) fn recv(&self, buffer: &mut [u8]) -> io::Result<Reception> {
        let mut len = 0;
        let mut fault = ptr::null_mut();
        // SAFETY: the call gets the buffer's length, and both pointers are valid for writes.
        let outcome = unsafe {
            (self.library.recv)(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                &mut len,
                &mut fault,
            )
        };
        // SAFETY: the error belongs to this call.
        let said = (!fault.is_null()).then(|| unsafe { self.library.message(fault) });
        let wait = |option| {
            let time = self.time(option).unwrap_or(LONGEST);
            Reception::Nothing(time.clamp(SHORTEST, LONGEST))
        };
        Ok(match outcome {
            status::NORMAL => Reception::Message(len.min(buffer.len())),
            status::RESET => Reception::Lost,
            status::TIMER_PENDING => wait(option::TIME_REMAIN),
            status::RATE_LIMITED => wait(option::RATE_REMAIN),
            status::ERROR => return Err(io::Error::other(said.unwrap_or_default())),
            _ => Reception::Nothing(LONGEST),
        })
    }

    /// Waits until there is work or the time is over. Returns true if there is work.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(in crate::net) fn wait(&self, time: Duration) -> io::Result<bool> {
        let mut fds: Vec<PollFd<'_>> = (self.readable.iter())
            // SAFETY: the library closes the descriptors only when it closes the socket, and the socket
            // outlives this use.
            .map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) })
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let time = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&time)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn set<T>(&self, option: c_int, value: &T) -> Result<(), NetError> {
        // SAFETY: the value outlives the call, and the call gets its size.
        let is_set = unsafe {
            (self.library.setsockopt)(
                self.raw.as_ptr(),
                IPPROTO_PGM,
                option,
                ptr::from_ref(value).cast::<c_void>(),
                size_of::<T>() as u32,
            )
        };
        if is_set {
            Ok(())
        } else {
            let error = io::Error::last_os_error().to_string();
            Err(refused(&format!("option {option:#x}"))(error))
        }
    }

    fn descriptor(&self, option: c_int) -> Option<RawFd> {
        let mut fd: RawFd = -1;
        // SAFETY: the value of the option is an integer.
        unsafe { self.get(option, &mut fd) }.then_some(fd)
    }

    fn time(&self, option: c_int) -> Option<Duration> {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        // SAFETY: the value of the option is a time.
        let is_there = unsafe { self.get(option, &mut time) };
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).ok()?);
        let rest = Duration::from_micros(u64::try_from(time.tv_usec).ok()?);
        is_there.then_some(seconds + rest)
    }

    /// Reads an option into `value`. Returns false if the socket does not have the option.
    ///
    /// # Safety
    /// `T` must be the type of the option.
    unsafe fn get<T>(&self, option: c_int, value: &mut T) -> bool {
        let mut size = size_of::<T>() as u32;
        // SAFETY: the call writes at most the passed size.
        unsafe {
            (self.library.getsockopt)(
                self.raw.as_ptr(),
                IPPROTO_PGM,
                option,
                ptr::from_mut(value).cast(),
                &mut size,
            )
        }
    }
}

impl Drop for OpenPgmSocket {
    fn drop(&mut self) {
        // SAFETY: the socket is not used afterwards.
        unsafe { (self.library.close)(self.raw.as_ptr(), false) };
    }
}

fn refused(what: &str) -> impl FnOnce(String) -> NetError {
    let doing = format!("OpenPGM refuses {what}");
    move |why| NetError::context(doing)(io::Error::other(why))
}
