//! Tests a receiver in tokio. The task calls the receiver when a packet arrives or when its timer has
//! expired. The receiver does not block the thread.

#![cfg(unix)]

use std::{io, thread, time::Duration};

use pgm::{
    Encapsulation, Event, Interface, Received, ReceiverConfig, Socket, SocketConfig, SocketError,
    SourceConfig, wire::Tsi,
};
use tokio::{io::Interest, net::UdpSocket, time::sleep};

const MESSAGES: u32 = 500;

/// Limit against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(address: &str) -> SocketConfig {
    // Below the ports that Linux chooses for sockets without a port.
    let port = 20_000 + (std::process::id() % 6_000) as u16 * 2;
    SocketConfig {
        encapsulation: Encapsulation::Udp {
            unicast: port,
            multicast: port + 1,
        },
        loopback: true,
        hops: 1,
        ..SocketConfig::new(
            Interface::find(address).unwrap(),
            "239.192.77.2".parse().unwrap(),
        )
    }
}

/// Returns the next event. Between calls of `recv`, the task waits only for the socket and the
/// timer.
async fn next(socket: &mut Socket, watched: &UdpSocket) -> Result<Event, SocketError> {
    loop {
        let wait = match socket.recv()? {
            Received::Event(event) => return Ok(event),
            Received::TimerPending(wait) => wait,
            Received::WouldBlock | Received::End => Duration::from_secs(1),
        };
        tokio::select! {
            readable = watched.readable() => {
                readable.expect("the runtime runs");
                // `recv` will read all packets. This call tells tokio that the socket is no longer
                // readable.
                let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                let _ = watched.try_io(Interest::READABLE, nothing);
            }
            () = sleep(wait) => {}
        }
    }
}

#[test]
fn a_receiver_shares_its_thread() {
    let at = config("127.0.0.2");
    let receiver = ReceiverConfig {
        // On a busy machine, repairs may take long. The receiver must not give them up.
        confirmation_retries: u16::MAX,
        repair_retries: u16::MAX,
        ..ReceiverConfig::new(at.address().unwrap(), at.group)
    };
    let mut socket = match Socket::open(&at, None, Some(receiver)) {
        Err(error @ SocketError::System { .. }) => {
            return testdata::skip(&error.to_string());
        }
        socket => socket.unwrap(),
    };
    let sending = thread::spawn(|| {
        let at = config("127.0.0.1");
        let source = SourceConfig {
            linger: Duration::from_secs(2),
            ..SourceConfig::new(Tsi::random(), at.address().unwrap(), at.group)
        };
        let mut socket = Socket::open(&at, Some(source), None).unwrap();
        for number in 0..MESSAGES {
            // The receiver does not need to be ready before the first message. It joins with the first packet
            // that it gets.
            socket.send_blocking(&number.to_be_bytes()).unwrap();
            thread::sleep(Duration::from_micros(200));
        }
        socket.close();
        while !matches!(socket.recv_blocking().unwrap(), Received::End) {}
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let handle = socket.sockets().next().unwrap().try_clone().unwrap();
        handle.set_nonblocking(true).unwrap();
        let watched = UdpSocket::from_std(handle).unwrap();
        let receive = async {
            let mut came = Vec::new();
            loop {
                match next(&mut socket, &watched).await.unwrap() {
                    Event::Message { payload, .. } => {
                        came.push(u32::from_be_bytes(payload[..].try_into().unwrap()));
                    }
                    Event::Finished { .. } => return came,
                    other => panic!("{other:?}"),
                }
            }
        };
        // Another task on the same thread keeps running.
        let mut ticks = 0;
        let tick = async {
            loop {
                sleep(Duration::from_millis(5)).await;
                ticks += 1;
            }
        };
        tokio::select! {
            came = receive => assert_eq!(came, (0..MESSAGES).collect::<Vec<_>>()),
            () = tick => {}
            () = sleep(PATIENCE) => testdata::gave_up("the end of the messages", PATIENCE),
        }
        assert!(ticks > 5, "{ticks} ticks in 100 ms and more");
    });
    sending.join().unwrap();
}
