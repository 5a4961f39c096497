//! Tests of registered I/O with the simulation. If the system has registered I/O, the tests also use the
//! system.

use std::net::Ipv4Addr;
use std::time::Instant;

use socket2::{Domain, Protocol, Socket};

use super::*;

const SIZE: usize = 100;

/// Returns two connected sockets.
fn sockets(kind: Type) -> [UdpSocket; 2] {
    let open = || {
        let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::UDP)).expect("made");
        let here = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&here.into()).expect("bound");
        UdpSocket::from(socket)
    };
    let ends = [open(), open()];
    let at = |end: &UdpSocket| end.local_addr().expect("an address");
    for (end, other) in [(0, 1), (1, 0)] {
        ends[end].connect(at(&ends[other])).expect("connected");
    }
    ends
}

/// Sends and receives two bursts, and then three. Before each exchange, checks that the receiver
/// waits while no packet arrives.
fn exchange(sender: &mut Sender, receiver: &mut Receiver) {
    for bursts in [2, 3] {
        for _ in 0..2 {
            let started = Instant::now();
            assert_eq!(receiver.take().expect("waited"), ReceivedCount::default());
            assert!(started.elapsed() >= WAIT / 2, "it waits without polling");
        }
        for _ in 0..bursts {
            assert_eq!(sender.burst().expect("sent"), BURST as u64);
        }
        let mut all = ReceivedCount::default();
        for _ in 0..bursts * BURST {
            let count = receiver.take().expect("received");
            all.packets += count.packets;
            all.bytes += count.bytes;
            if all.packets == (bursts * BURST) as u64 {
                break;
            }
        }
        let packets = (bursts * BURST) as u64;
        let bytes = packets * SIZE as u64;
        assert_eq!(all, ReceivedCount { packets, bytes });
    }
}

#[test]
fn packets_are_transferred_and_everything_is_released() {
    let [near, far] = sockets(Type::DGRAM);
    let queue = |socket| Queue::new(socket, simulated::FUNCTIONS, SIZE).expect("made");
    let (mut sender, far) = (Sender(queue(near)), queue(far));
    let ids = [&sender.0, &far].map(|queue| (queue.buffer, queue.completions));
    let mut receiver = Receiver::new(far).expect("asked");
    exchange(&mut sender, &mut receiver);
    for (buffer, completions) in ids {
        assert!(simulated::is_registered(buffer) && simulated::is_open(completions));
    }
    // All slots of the receiver have an outstanding request.
    drop((sender, receiver));
    for (buffer, completions) in ids {
        assert!(!simulated::is_registered(buffer) && !simulated::is_open(completions));
    }
    assert_eq!(simulated::breaches(), Vec::<String>::new());
}

#[test]
fn memory_in_use_is_not_freed() {
    let [_near, far] = sockets(Type::DGRAM);
    let queue = Queue::new(far, simulated::SILENT, SIZE).expect("made");
    let buffer = queue.buffer;
    let receiver = Receiver::new(queue).expect("asked");
    drop(receiver);
    assert!(simulated::is_registered(buffer));
    assert_eq!(simulated::breaches(), Vec::<String>::new());
}

#[test]
fn a_slot_has_one_request_at_a_time() {
    let [near, _far] = sockets(Type::DGRAM);
    let mut queue = Queue::new(near, simulated::FUNCTIONS, SIZE).expect("made");
    let send = queue.functions.send;
    queue.put(3, send).expect("free");
    for slot in [3, BURST, usize::MAX / SIZE - 1] {
        let error = queue.put(slot, send).expect_err("refused").to_string();
        assert_eq!(error, format!("slot {slot} cannot be used"));
    }
}

/// Tests the registered I/O of Windows. On systems without registered I/O (Wine), checks the error.
#[test]
fn the_system_transfers_packets_or_has_no_rio() {
    let [near, far] = sockets(SOCKET);
    let functions = match Functions::query(&near) {
        Ok(functions) => functions,
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.starts_with("the system has no registered I/O"),
                "{said}"
            );
            return;
        }
    };
    let queue = |socket| Queue::new(socket, functions, SIZE).expect("made");
    let mut receiver = Receiver::new(queue(far)).expect("asked");
    exchange(&mut Sender(queue(near)), &mut receiver);
}
