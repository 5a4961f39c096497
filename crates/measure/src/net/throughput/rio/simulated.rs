//! Simulation of registered I/O on ordinary sockets, written from the documentation. The simulation checks
//! that the caller upholds the contract of the functions, and records every violation.
//!
//! Unsafe code is allowed because the functions get addresses. This use is sound because the simulation uses
//! memory only while the memory is registered.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, UdpSocket};
use std::os::windows::io::{FromRawSocket, RawSocket};
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Networking::WinSock::{
    RIO_BUF, RIO_BUFFERID, RIO_CQ, RIO_MSG_COMMIT_ONLY, RIO_MSG_DEFER, RIO_NOTIFICATION_COMPLETION,
    RIO_RQ, RIORESULT, SOCKET, WSA_OPERATION_ABORTED, WSAEALREADY, WSAENOBUFS, WSASetLastError,
};
use windows_sys::Win32::System::Threading::{ResetEvent, SetEvent};
use windows_sys::core::BOOL;

use super::functions::Functions;

pub(super) const FUNCTIONS: Functions = Functions {
    receive,
    send,
    close_completion_queue,
    create_completion_queue,
    create_request_queue,
    dequeue,
    deregister_buffer,
    notify,
    register_buffer,
};

/// Functions of a simulated system that reports no completions.
pub(super) const SILENT: Functions = Functions {
    dequeue: nothing,
    ..FUNCTIONS
};

/// State of the simulated system.
#[derive(Default)]
struct System {
    last: isize,
    /// Address and length of each registered buffer.
    buffers: HashMap<RIO_BUFFERID, (usize, usize)>,
    completions: HashMap<RIO_CQ, Completions>,
    requests: HashMap<RIO_RQ, Requests>,
    breaches: Vec<String>,
}

struct Completions {
    room: usize,
    /// Handle of the event that signals completions.
    event: usize,
    is_awaited: bool,
    ended: VecDeque<(RIORESULT, RIO_BUF)>,
}

struct Requests {
    socket: RawSocket,
    /// Local address of the socket. This address shows that a socket was closed, even if another socket
    /// reuses its number.
    address: SocketAddr,
    completions: RIO_CQ,
    most: [usize; 2],
    /// Queue of receives and queue of sends.
    queues: [VecDeque<PostedRequest>; 2],
}

#[derive(Clone, Copy)]
struct PostedRequest {
    place: RIO_BUF,
    context: u64,
    is_committed: bool,
}

/// Index of the queue of receives in `Requests::queues`.
const RECEIVES: usize = 0;

/// Index of the queue of sends in `Requests::queues`.
const SENDS: usize = 1;

static SYSTEM: LazyLock<Mutex<System>> = LazyLock::new(Mutex::default);

fn system() -> MutexGuard<'static, System> {
    SYSTEM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the violations so far.
pub(super) fn breaches() -> Vec<String> {
    system().breaches.clone()
}

/// Returns true if a buffer is registered.
pub(super) fn is_registered(buffer: RIO_BUFFERID) -> bool {
    system().buffers.contains_key(&buffer)
}

/// Returns true if a completion queue is open.
pub(super) fn is_open(completions: RIO_CQ) -> bool {
    system().completions.contains_key(&completions)
}

impl System {
    fn number(&mut self) -> isize {
        self.last += 1;
        self.last
    }

    fn breach(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.breaches.contains(&what) {
            self.breaches.push(what);
        }
    }

    /// Returns the memory ranges in use. A range is in use until the completion of its request was
    /// dequeued.
    fn in_use(&self) -> impl Iterator<Item = RIO_BUF> {
        let requests = self.requests.values().flat_map(|queues| &queues.queues);
        let ended = self.completions.values().flat_map(|queue| &queue.ended);
        requests
            .flatten()
            .map(|request| request.place)
            .chain(ended.map(|(_, place)| *place))
    }

    /// Executes the submitted requests that can be executed without waiting.
    fn turn(&mut self) {
        let mut ended = Vec::new();
        let buffers = &self.buffers;
        self.requests.retain(|_, requests| {
            // SAFETY: the socket was open when the queue was created, and it is not closed here.
            let socket = ManuallyDrop::new(unsafe { UdpSocket::from_raw_socket(requests.socket) });
            let is_open = socket.local_addr().is_ok_and(|at| at == requests.address);
            for (kind, queue) in requests.queues.iter_mut().enumerate() {
                while let Some(asked) = queue.front().copied() {
                    let outcome = match is_open {
                        true if !asked.is_committed => break,
                        true => match carry_out(&socket, kind, buffers, asked.place) {
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                            outcome => outcome,
                        },
                        false => Err(io::Error::from_raw_os_error(WSA_OPERATION_ABORTED)),
                    };
                    queue.pop_front();
                    ended.push((requests.completions, asked, outcome));
                }
            }
            is_open
        });
        for (completions, asked, outcome) in ended {
            self.end(completions, asked, outcome);
        }
    }

    fn end(&mut self, completions: RIO_CQ, asked: PostedRequest, outcome: io::Result<usize>) {
        let Some(queue) = self.completions.get_mut(&completions) else {
            return self.breach("a completion queue was closed before its requests ended");
        };
        let result = RIORESULT {
            Status: match &outcome {
                Ok(_) => 0,
                Err(error) => error.raw_os_error().unwrap_or(-1),
            },
            BytesTransferred: outcome.unwrap_or(0) as u32,
            SocketContext: 0,
            RequestContext: asked.context,
        };
        queue.ended.push_back((result, asked.place));
        if queue.is_awaited {
            queue.is_awaited = false;
            // SAFETY: the event lives as long as the queue.
            unsafe { SetEvent(queue.event as HANDLE) };
        }
        if queue.ended.len() > queue.room {
            self.breach("a completion queue was too short");
        }
    }
}

fn carry_out(
    socket: &UdpSocket,
    kind: usize,
    buffers: &HashMap<RIO_BUFFERID, (usize, usize)>,
    place: RIO_BUF,
) -> io::Result<usize> {
    let Some((address, _)) = buffers.get(&place.BufferId) else {
        return Err(io::Error::other("the buffer is not registered"));
    };
    let at = (*address + place.Offset as usize) as *mut u8;
    // SAFETY: the range was inside its buffer when it was requested, and the buffer is registered.
    let memory = unsafe { std::slice::from_raw_parts_mut(at, place.Length as usize) };
    match kind {
        RECEIVES => socket.recv(memory),
        _ => socket.send(memory),
    }
}

unsafe extern "system" fn register_buffer(data: *const u8, length: u32) -> RIO_BUFFERID {
    let mut system = system();
    let buffer = system.number();
    system
        .buffers
        .insert(buffer, (data as usize, length as usize));
    buffer
}

unsafe extern "system" fn deregister_buffer(buffer: RIO_BUFFERID) {
    let mut system = system();
    if system.in_use().any(|place| place.BufferId == buffer) {
        system.breach("a buffer was deregistered while in use");
    }
    system.buffers.remove(&buffer);
}

unsafe extern "system" fn create_completion_queue(
    size: u32,
    notification: *const RIO_NOTIFICATION_COMPLETION,
) -> RIO_CQ {
    let mut system = system();
    let completions = system.number();
    // SAFETY: the caller passes an event.
    let event = unsafe { (*notification).Anonymous.Event.EventHandle };
    let queue = Completions {
        room: size as usize,
        event: event as usize,
        is_awaited: false,
        ended: VecDeque::new(),
    };
    system.completions.insert(completions, queue);
    completions
}

unsafe extern "system" fn close_completion_queue(completions: RIO_CQ) {
    let mut system = system();
    // This call detects closed sockets.
    system.turn();
    let is_used = system
        .requests
        .values()
        .any(|queues| queues.completions == completions);
    let closed = system.completions.remove(&completions);
    if is_used || closed.is_some_and(|queue| !queue.ended.is_empty()) {
        system.breach("a completion queue was closed while in use");
    }
}

unsafe extern "system" fn create_request_queue(
    socket: SOCKET,
    receives: u32,
    receive_buffers: u32,
    sends: u32,
    send_buffers: u32,
    receive_completions: RIO_CQ,
    send_completions: RIO_CQ,
    _: *const c_void,
) -> RIO_RQ {
    static TURNS: Once = Once::new();
    TURNS.call_once(|| {
        thread::spawn(|| {
            loop {
                system().turn();
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
    let mut system = system();
    if (receive_buffers, send_buffers) != (1, 1) {
        system.breach("a request must have one buffer");
    }
    let room = system
        .completions
        .get(&receive_completions)
        .map(|queue| queue.room);
    if receive_completions != send_completions || room < Some((receives + sends) as usize) {
        system.breach("the completion queue has no room for all requests");
    }
    let socket = socket as RawSocket;
    // SAFETY: the caller's socket is open, and it is not closed here.
    let open = ManuallyDrop::new(unsafe { UdpSocket::from_raw_socket(socket) });
    let address = open.set_nonblocking(true).and_then(|()| open.local_addr());
    let Ok(address) = address else { return 0 };
    let requests = system.number();
    let queue = Requests {
        socket,
        address,
        completions: receive_completions,
        most: [receives as usize, sends as usize],
        queues: [VecDeque::new(), VecDeque::new()],
    };
    system.requests.insert(requests, queue);
    requests
}

unsafe extern "system" fn receive(
    requests: RIO_RQ,
    place: *const RIO_BUF,
    count: u32,
    flags: u32,
    context: *const c_void,
) -> BOOL {
    // SAFETY: the caller upholds the contract of this function.
    unsafe { ask(RECEIVES, requests, place, count, flags, context) }
}

unsafe extern "system" fn send(
    requests: RIO_RQ,
    place: *const RIO_BUF,
    count: u32,
    flags: u32,
    context: *const c_void,
) -> BOOL {
    // SAFETY: the caller upholds the contract of this function.
    unsafe { ask(SENDS, requests, place, count, flags, context) }
}

unsafe fn ask(
    kind: usize,
    number: RIO_RQ,
    place: *const RIO_BUF,
    count: u32,
    flags: u32,
    context: *const c_void,
) -> BOOL {
    let mut system = system();
    let system = &mut *system;
    let Some(requests) = system.requests.get_mut(&number) else {
        system.breach("a request for a closed socket");
        return 0;
    };
    if flags == RIO_MSG_COMMIT_ONLY {
        for asked in &mut requests.queues[kind] {
            asked.is_committed = true;
        }
        if !place.is_null() || count != 0 || !context.is_null() {
            system.breach("a commit must have no buffer");
        }
        return 1;
    }
    if requests.queues[kind].len() >= requests.most[kind] {
        // SAFETY: the argument is a number.
        unsafe { WSASetLastError(WSAENOBUFS) };
        return 0;
    }
    // SAFETY: the caller passes a range.
    let place = unsafe { *place };
    let end = place.Offset as usize + place.Length as usize;
    let length = system
        .buffers
        .get(&place.BufferId)
        .map(|(_, length)| *length);
    if flags != RIO_MSG_DEFER || count != 1 || Some(end) > length {
        system.breach("a request must lie in a registered buffer");
        return 0;
    }
    let overlaps = |other: RIO_BUF| {
        other.BufferId == place.BufferId
            && other.Offset < place.Offset + place.Length
            && place.Offset < other.Offset + other.Length
    };
    if system.in_use().any(overlaps) {
        system.breach("two requests use the same range");
    }
    let request = PostedRequest {
        place,
        context: context.addr() as u64,
        is_committed: false,
    };
    if let Some(requests) = system.requests.get_mut(&number) {
        requests.queues[kind].push_back(request);
    }
    1
}

unsafe extern "system" fn notify(completions: RIO_CQ) -> i32 {
    let mut system = system();
    let Some(queue) = system.completions.get_mut(&completions) else {
        system.breach("a closed completion queue was awaited");
        return WSAENOBUFS;
    };
    if queue.is_awaited {
        system.breach("a completion queue was awaited twice");
        return WSAEALREADY;
    }
    queue.is_awaited = queue.ended.is_empty();
    let event = queue.event as HANDLE;
    // SAFETY: the event lives as long as the queue.
    unsafe {
        ResetEvent(event);
        if !queue.is_awaited {
            SetEvent(event);
        }
    }
    0
}

unsafe extern "system" fn dequeue(completions: RIO_CQ, results: *mut RIORESULT, room: u32) -> u32 {
    let mut system = system();
    let Some(queue) = system.completions.get_mut(&completions) else {
        system.breach("a closed completion queue was read");
        return 0;
    };
    let count = queue.ended.len().min(room as usize);
    for (place, (result, _)) in queue.ended.drain(..count).enumerate() {
        // SAFETY: the caller has room for `count` results.
        unsafe { results.add(place).write(result) };
    }
    count as u32
}

unsafe extern "system" fn nothing(_: RIO_CQ, _: *mut RIORESULT, _: u32) -> u32 {
    0
}
