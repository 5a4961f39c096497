//! Sessions between two addresses of the loopback interface.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use pgm::{
    Encapsulation, Event, Interface, Received, ReceiverConfig, Socket, SocketConfig, SocketError,
    SourceConfig,
    wire::{Body, Data, Dialect, Gsi, Options, Packet, Spm, Sqn, Tsi},
};
use testdata::Rng;

const GROUP: &str = "239.192.77.1";

/// Limit against hanging. No step takes nearly as long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns ports that other test runs on this machine are unlikely to use. `test` is less than 10, and is another number
/// for each test. The ports are below those that Linux chooses for sockets without a port.
fn ports(test: u16) -> (u16, u16) {
    let base = 10_000 + (std::process::id() % 500) as u16 * 20 + 2 * test;
    (base, base + 1)
}

fn config(address: &str, encapsulation: Encapsulation) -> SocketConfig {
    SocketConfig {
        encapsulation,
        loopback: true,
        hops: 1,
        ..SocketConfig::new(Interface::find(address).unwrap(), GROUP.parse().unwrap())
    }
}

fn source_config(config: &SocketConfig) -> SourceConfig {
    SourceConfig {
        linger: Duration::from_secs(2),
        ..SourceConfig::new(Tsi::random(), config.address().unwrap(), config.group)
    }
}

fn receiver_config(config: &SocketConfig) -> ReceiverConfig {
    ReceiverConfig {
        // On a busy machine, repairs may take long. The receiver must not give them up.
        confirmation_retries: u16::MAX,
        repair_retries: u16::MAX,
        ..ReceiverConfig::new(config.address().unwrap(), config.group)
    }
}

/// Returns messages of two kinds. The first messages have different lengths, from empty to several packets
/// long. Then follow many messages of equal length, which one call can send together.
fn messages() -> Vec<Vec<u8>> {
    let mut rng = Rng(77);
    let lengths = (0..300).map(|at| if at % 10 == 0 { 40_000 } else { at });
    let equal = [200, 1_000].into_iter().flat_map(|length| [length; 500]);
    (lengths.chain(equal))
        .map(|length| (0..length).map(|_| rng.bits() as u8).collect())
        .collect()
}

/// Sends all messages from one address and receives them at another.
fn transfer(encapsulation: Encapsulation, joined: bool) {
    let at = SocketConfig {
        joined,
        ..config("127.0.0.2", encapsulation)
    };
    let mut receiver = match Socket::open(&at, None, Some(receiver_config(&at))) {
        Err(error @ (SocketError::NoPermission | SocketError::System { .. })) => {
            return testdata::skip(&error.to_string());
        }
        receiver => receiver.unwrap(),
    };
    let has_all = Arc::new(AtomicBool::new(false));
    let is_received = Arc::clone(&has_all);
    let sending = thread::spawn(move || {
        let at = config("127.0.0.1", encapsulation);
        let source = SourceConfig {
            linger: PATIENCE,
            ..source_config(&at)
        };
        let mut socket = Socket::open(&at, Some(source), None).unwrap();
        // The receiver joins with the first SPM, so the test waits 200 ms before it sends data.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(200) {
            if let Received::TimerPending(wait) = socket.recv().unwrap() {
                socket
                    .wait(Some(wait.min(Duration::from_millis(50))))
                    .unwrap();
            }
        }
        // The first 100 messages are sent one by one. The other messages are sent with many messages per
        // call.
        let messages = messages();
        let (single, many) = messages.split_at(100);
        for message in single {
            socket.send_blocking(message).unwrap();
        }
        let mut rest = many;
        while !rest.is_empty() {
            let sent = socket.send_many(rest.iter().map(|m| &m[..])).unwrap();
            rest = &rest[sent..];
            socket.recv().unwrap();
        }
        socket.close();
        // The source repairs losses until the receiver has all messages.
        while !is_received.load(Relaxed) && !matches!(socket.recv().unwrap(), Received::End) {
            socket.wait(Some(Duration::from_millis(10))).unwrap();
        }
        socket.source_statistics().unwrap()
    });
    // All messages are kept until the end. The test can then check that later packets do not overwrite
    // earlier messages.
    let mut came = Vec::new();
    let begun = Instant::now();
    loop {
        match receiver.recv().unwrap() {
            Received::Event(Event::Message { payload, .. }) => {
                came.push(payload);
            }
            Received::Event(Event::Finished { .. }) => break,
            Received::WouldBlock => receiver.wait(Some(Duration::from_millis(100))).unwrap(),
            Received::TimerPending(wait) => receiver
                .wait(Some(wait.min(Duration::from_millis(100))))
                .unwrap(),
            other => panic!("{other:?}"),
        }
        if begun.elapsed() > PATIENCE && receiver.sources().next().is_none() {
            testdata::gave_up("a multicast packet on the loopback interface", PATIENCE);
        }
    }
    has_all.store(true, Relaxed);
    assert!(came == messages(), "{} messages arrived", came.len());
    assert!(sending.join().unwrap().packets > 300);
}

#[test]
fn over_udp_with_two_ports() {
    let (unicast, multicast) = ports(0);
    transfer(Encapsulation::Udp { unicast, multicast }, true);
}

#[test]
fn without_receive_offload() {
    let (unicast, multicast) = ports(4);
    transfer(Encapsulation::Udp { unicast, multicast }, false);
}

#[test]
fn over_udp_with_one_port() {
    let (port, _) = ports(1);
    let encapsulation = Encapsulation::Udp {
        unicast: port,
        multicast: port,
    };
    transfer(encapsulation, true);
}

#[test]
fn over_ip() {
    transfer(Encapsulation::Raw, true);
}

#[test]
fn invalid_configurations_are_errors() {
    let error = Interface::find("no such interface")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("127.0.0.1"),
        "does not list the interfaces: {error}"
    );

    let (unicast, multicast) = ports(2);
    let udp = Encapsulation::Udp { unicast, multicast };
    let at = config("127.0.0.1", udp);
    let elsewhere: IpAddr = "10.1.2.3".parse().unwrap();
    let source = SourceConfig {
        group: elsewhere,
        ..source_config(&at)
    };
    let error = Socket::open(&at, Some(source), None).unwrap_err();
    assert!(matches!(error, SocketError::Source(_)), "{error}");

    let v6 = SocketConfig {
        group: "ff08::1".parse().unwrap(),
        ..at.clone()
    };
    let error = Socket::open(&v6, None, None).unwrap_err();
    assert!(matches!(error, SocketError::NoAddress { .. }), "{error}");

    let marked = |dscp| SocketConfig { dscp, ..at.clone() };
    let error = Socket::open(&marked(64), None, None).unwrap_err();
    assert!(matches!(error, SocketError::Dscp(64)), "{error}");
    let refused = Socket::open(&marked(46), None, None).err();
    assert_eq!(refused.is_some(), cfg!(windows), "{refused:?}");

    let taken = std::net::UdpSocket::bind(("127.0.0.1", unicast)).unwrap();
    let error = Socket::open(&at, Some(source_config(&at)), None);
    if cfg!(target_os = "linux") {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&unicast.to_string()), "{error}");
    }
    drop(taken);

    let mut silent = Socket::open(&at, None, Some(receiver_config(&at))).unwrap();
    assert!(matches!(silent.send(b""), Err(SocketError::NoSource)));
    assert!(matches!(silent.recv().unwrap(), Received::WouldBlock));
    assert!(silent.buffers().unwrap().receive > 0);
}

#[test]
fn garbage_is_counted() {
    let (unicast, multicast) = ports(3);
    let at = config("127.0.0.1", Encapsulation::Udp { unicast, multicast });
    let (source, receiver) = (source_config(&at), receiver_config(&at));
    let mut socket = Socket::open(&at, Some(source), Some(receiver)).unwrap();
    let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for garbage in [&b""[..], b"garbage", &[0; 2_000]] {
        other.send_to(garbage, ("127.0.0.1", unicast)).unwrap();
    }
    let begun = Instant::now();
    while socket.unreadable() < 2 && begun.elapsed() < PATIENCE {
        let nothing = socket.recv().unwrap();
        assert!(matches!(nothing, Received::TimerPending(_)), "{nothing:?}");
        socket.wait(Some(Duration::from_millis(10))).unwrap();
    }
    assert!(socket.unreadable() >= 2);
    assert_eq!(socket.sources().count(), 0);
}

/// Checks that sent packets have the DSCP mark, in the octet of the IP header that the system
/// reports to an ordinary socket.
#[cfg(target_os = "linux")]
#[test]
fn packets_carry_their_mark() {
    use std::{
        io::IoSliceMut,
        net::{Ipv4Addr, SocketAddrV4},
        os::fd::AsRawFd,
    };

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};

    let (unicast, multicast) = ports(7);
    let udp = Encapsulation::Udp { unicast, multicast };
    let at = SocketConfig {
        dscp: 46,
        ..config("127.0.0.1", udp)
    };
    let group: Ipv4Addr = GROUP.parse().unwrap();
    let other = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    other.set_reuse_address(true).unwrap();
    let bound = SocketAddrV4::new(group, multicast);
    other.bind(&bound.into()).unwrap();
    other
        .join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)
        .unwrap();
    other.set_recv_tos_v4(true).unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();

    let mut socket = Socket::open(&at, Some(source_config(&at)), None).unwrap();
    socket.send(b"marked").unwrap();
    let mut room = [0; 2_000];
    let mut parts = [IoSliceMut::new(&mut room)];
    let mut control = nix::cmsg_space!(i32);
    let flags = MsgFlags::empty();
    let received =
        recvmsg::<SockaddrStorage>(other.as_raw_fd(), &mut parts, Some(&mut control), flags);
    let received = received.unwrap();
    let class = received.cmsgs().unwrap().find_map(|told| match told {
        ControlMessageOwned::Ipv4Tos(class) => Some(class),
        _ => None,
    });
    // The mark is in the upper six bits (RFC 2474).
    assert_eq!(class, Some(46 << 2));
}

/// Checks that a receiver's request to the group stays in the local network: its hop limit is 1 (RFC 3208, appendix
/// C). The system reports the hop limit to an ordinary socket.
#[cfg(target_os = "linux")]
#[test]
fn requests_to_the_group_have_one_hop() {
    use std::{
        io::IoSliceMut,
        net::{Ipv4Addr, SocketAddrV4},
        os::fd::AsRawFd,
    };

    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };

    /// Type of an SPMR, at offset 4 of a packet (RFC 3208).
    const SPMR: u8 = 0x0c;

    let (unicast, multicast) = ports(6);
    let at = SocketConfig {
        hops: 5,
        ..config("127.0.0.2", Encapsulation::Udp { unicast, multicast })
    };
    let group: Ipv4Addr = GROUP.parse().unwrap();
    let other = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    other.set_reuse_address(true).unwrap();
    other
        .bind(&SocketAddrV4::new(group, multicast).into())
        .unwrap();
    other
        .join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)
        .unwrap();
    setsockopt(&other, sockopt::Ipv4RecvTtl, &true).unwrap();

    let mut receiver =
        Socket::open(&at, Some(source_config(&at)), Some(receiver_config(&at))).unwrap();
    // The packet belongs to an unknown session, so the receiver requests an SPM of this session.
    let mut bytes = Vec::new();
    let packet = Packet {
        source_port: 4_321,
        destination_port: 7_500,
        gsi: Gsi(*b"abcdef"),
        parity: false,
        variable_length: false,
        body: Body::Odata(Data {
            sqn: Sqn(1),
            trail: Sqn(1),
        }),
        options: Options::default(),
        payload: b"one",
    };
    packet.write(Dialect::Rfc3208, &mut bytes);
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.set_multicast_loop_v4(true).unwrap();
    socket2::SockRef::from(&sender)
        .set_multicast_if_v4(&Ipv4Addr::LOCALHOST)
        .unwrap();
    sender.send_to(&bytes, (GROUP, multicast)).unwrap();

    let begun = Instant::now();
    let hops = loop {
        if begun.elapsed() > PATIENCE {
            testdata::gave_up("a request", PATIENCE);
        }
        receiver.recv().unwrap();
        receiver.wait(Some(Duration::from_millis(1))).unwrap();
        let mut room = [0; 2_000];
        let mut parts = [IoSliceMut::new(&mut room)];
        let mut control = nix::cmsg_space!(i32);
        let (socket, flags) = (other.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let received = recvmsg::<SockaddrStorage>(socket, &mut parts, Some(&mut control), flags);
        let Ok(received) = received else { continue };
        let hops = received.cmsgs().unwrap().find_map(|told| match told {
            ControlMessageOwned::Ipv4Ttl(hops) => Some(hops),
            _ => None,
        });
        if room[4] == SPMR {
            break hops;
        }
    };
    assert_eq!(hops, Some(1));
}

/// Checks that an unreachable address for requests does not end a receiver. Any member of the group can name
/// any address, and the system refuses to send to some addresses.
#[test]
fn an_address_that_cannot_be_reached_ends_no_receiver() {
    let (unicast, multicast) = ports(5);
    let at = config("127.0.0.2", Encapsulation::Udp { unicast, multicast });
    for path in ["192.0.2.255", "255.255.255.255", "240.0.0.1", "0.0.0.1"] {
        let receiving = ReceiverConfig {
            trusts_path: true,
            ..receiver_config(&at)
        };
        let mut receiver = Socket::open(&at, None, Some(receiving)).unwrap();
        let attacker = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        attacker.set_multicast_loop_v4(true).unwrap();
        socket2::SockRef::from(&attacker)
            .set_multicast_if_v4(&std::net::Ipv4Addr::LOCALHOST)
            .unwrap();
        let send = |body: Body, payload: &[u8]| {
            let mut bytes = Vec::new();
            let packet = Packet {
                source_port: 4_321,
                destination_port: 7_500,
                gsi: Gsi(*b"abcdef"),
                parity: false,
                variable_length: false,
                body,
                options: Options::default(),
                payload,
            };
            packet.write(Dialect::Rfc3208, &mut bytes);
            attacker.send_to(&bytes, (GROUP, multicast)).unwrap();
        };
        let data = |sqn| {
            Body::Odata(Data {
                sqn: Sqn(sqn),
                trail: Sqn(1),
            })
        };
        let path: IpAddr = path.parse().unwrap();
        send(
            Body::Spm(Spm {
                sqn: Sqn(0),
                trail: Sqn(1),
                lead: Sqn(0),
                path,
            }),
            b"",
        );
        send(data(1), b"one");
        send(data(3), b"three");
        // The system lets a socket send to the broadcast address only with a special option.
        let is_refused = path.to_string() == "255.255.255.255";
        let has_asked = |receiver: &Socket| {
            let statistics = receiver.sources().next().map(|of| receiver.statistics(of));
            let naks = statistics.flatten().map_or(0, |of| of.naks);
            naks > 0 && (!is_refused || receiver.refusals().sends > 0)
        };
        let mut messages = 0;
        let begun = Instant::now();
        while messages == 0 || !has_asked(&receiver) {
            match receiver.recv().unwrap() {
                Received::Event(Event::Message { .. }) => messages += 1,
                Received::Event(other) => panic!("{other:?}"),
                _ => receiver.wait(Some(Duration::from_millis(1))).unwrap(),
            }
            if begun.elapsed() > PATIENCE {
                testdata::gave_up("a message and a request for its successor", PATIENCE);
            }
        }
        if is_refused {
            assert!(receiver.refusals().last.is_some());
        }
        // The receiver still receives packets.
        send(data(2), b"two");
        let mut rest = Vec::new();
        while rest.len() < 2 {
            match receiver.recv_blocking().unwrap() {
                Received::Event(Event::Message { payload, .. }) => rest.push(payload),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rest, [&b"two"[..], b"three"]);
    }
}
