//! Tests of throughput measurements to a counter, the receiving end that normally runs on another machine. The
//! packets go over the loopback interface, or from one network namespace to another.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[cfg(target_os = "linux")]
use measure::net::Family;
use measure::net::throughput::{Counted, Counter, Method, ThroughputPlan, ThroughputReport};
use measure::net::{NetError, Patience, Place, Route, RunContext, Side, Testbed};
use measure::{Clock, Plan, Scheduling};

const SIZE: usize = 200;

fn left_out(why: impl std::fmt::Display) {
    testdata::skip(&why.to_string());
}

fn plan(to: SocketAddr, methods: &[Method]) -> ThroughputPlan {
    ThroughputPlan {
        route: Route::There(Place::Peer(to)),
        methods: methods.to_vec(),
        scheduling: Scheduling::default(),
        size: SIZE,
        time: Duration::from_millis(50),
        buffer_bytes: Some(1 << 20),
        patience: Duration::from_secs(5),
        with_peer: false,
        plan: Plan {
            warm_up: 0,
            at_least: 1,
            at_most: 1,
            time: Duration::MAX,
            goal: None,
        },
    }
}

/// Runs `work` while a counter counts on the far side. Returns both results.
fn while_counting<T>(
    testbed: &Testbed,
    counter: &Counter,
    work: impl FnOnce(SocketAddr) -> T,
) -> (T, Counted) {
    let at = counter.local_address().expect("an address");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let context = RunContext {
                clock: &Clock::best(),
                scheduling: &Scheduling::default(),
                stop: &|| stop.load(Ordering::Relaxed),
            };
            testbed.on(Side::Far, || counter.count(Patience::default(), context))
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(at)));
        stop.store(true, Ordering::Relaxed);
        let counted = counting.join().expect("no panic").expect("entered");
        let counted = counted.expect("counted");
        match done {
            Ok(done) => (done, counted),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn counter() -> Counter {
    Counter::open((Ipv4Addr::LOCALHOST, 0).into()).expect("opened")
}

fn measure(to: SocketAddr, methods: &[Method]) -> Result<ThroughputReport, NetError> {
    plan(to, methods).measure(&Clock::best(), &|| false, &|_| {})
}

/// Checks that a report agrees with the counts of the counter, which is the receiving end. The counter counts
/// twice as many runs as the report, because each method has a trial run first.
fn check(report: &ThroughputReport, counted: Counted) {
    assert_eq!(report.failed, None);
    let here = report.unavailable.iter().filter(|one| {
        let is_expected = one.why == NetError::OnlyHere.to_string();
        if !is_expected {
            left_out(format!("{}: {}", one.method, one.why));
        }
        is_expected
    });
    let both_here = Method::ALL
        .iter()
        .filter(|method| method.carrier() != measure::net::Carrier::Udp);
    assert_eq!(
        here.count(),
        both_here.count(),
        "methods that need both ends here"
    );
    assert!(report.runs.len() >= 3, "{report:?}");
    for run in &report.runs {
        let through = run.through;
        assert!(through.received > 0, "{run:?}");
        assert!(through.received <= through.sent, "{run:?}");
        assert_eq!(through.bytes, through.received * SIZE as u64, "{run:?}");
        assert!(through.packets_per_second().is_some(), "{run:?}");
        assert!(through.receiver_buffers.receive > Some(0), "{run:?}");
    }
    assert_eq!(counted.runs, 2 * report.runs.len() as u64);
    let received: u64 = report.runs.iter().map(|run| run.through.received).sum();
    assert!(counted.packets >= received, "{counted:?}");
    assert_eq!(counted.bytes, counted.packets * SIZE as u64);
}

#[test]
fn every_method_is_counted() {
    let (report, counted) = while_counting(&Testbed::loopback(), &counter(), |at| {
        measure(at, Method::ALL)
    });
    check(&report.expect("measured"), counted);
    let six = Counter::open((Ipv6Addr::LOCALHOST, 0).into()).expect("opened");
    let (report, counted) =
        while_counting(&Testbed::loopback(), &six, |at| measure(at, Method::ALL));
    check(&report.expect("measured"), counted);
}

#[cfg(target_os = "linux")]
#[test]
fn packets_go_from_one_namespace_to_another() {
    let testbed = match Testbed::namespaces() {
        Ok(testbed) => testbed,
        Err(error) => return left_out(error),
    };
    let at = (testbed.address(Side::Far, Family::V4), 7_600).into();
    let counter = testbed.on(Side::Far, || Counter::open(at));
    let counter = counter.expect("entered").expect("opened");
    let (report, counted) = while_counting(&testbed, &counter, |at| {
        testbed.on(Side::Near, || measure(at, Method::ALL))
    });
    check(&report.expect("entered").expect("measured"), counted);
}

#[test]
fn a_missing_counter_is_reported_at_once() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = closed.local_addr().expect("an address");
    drop(closed);
    let error = measure(at, Method::ALL)
        .map(|_| ())
        .expect_err("no counter");
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("no counter answers at {at}: ")),
        "{said}"
    );
}

/// Returns the counter's answer to a line, or an empty text if there is no answer.
fn said_to(at: SocketAddr, line: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("connected");
    stream.write_all(line).expect("written");
    let mut said = String::new();
    // A reset connection has no answer, so the error is ignored.
    let _ = BufReader::new(stream).read_line(&mut said);
    said
}

#[test]
fn invalid_requests_are_refused_and_others_served() {
    let request = |version: u32, method: &str, size: usize, time_ms: u64| {
        format!(
            "{{\"laglab_throughput\":{version},\"method\":\"{method}\",\"size\":{size},\
             \"time_ms\":{time_ms},\"buffer_bytes\":null,\"port\":9}}\n"
        )
    };
    let (report, counted) = while_counting(&Testbed::loopback(), &counter(), |at| {
        for (line, words) in [
            (
                request(2, "blocking", 100, 10),
                "version 2 of the protocol is not supported",
            ),
            (
                request(1, "telepathy", 100, 10),
                "does not support this method",
            ),
            (request(1, "pgm", 100, 10), "both ends on this machine"),
            (
                request(1, "blocking", 0, 10),
                "invalid packet size of 0 bytes",
            ),
            (request(1, "blocking", 100, u64::MAX), "at most 3600 s"),
            (
                "GET / HTTP/1.1\r\n".to_owned(),
                "unexpected message `GET / HTTP/1.1`",
            ),
            (
                "{\"laglab_throughput\":1}\n".to_owned(),
                "use the same laglab version",
            ),
        ] {
            let said = said_to(at, line.as_bytes());
            assert!(
                said.starts_with("{\"refused\":") && said.contains(words),
                "{line}: {said}"
            );
        }
        // The counter does not answer a line that is too long, or a connection without a line.
        assert_eq!(said_to(at, &[b'x'; 10_000]), "");
        drop(TcpStream::connect(at).expect("connected"));
        let blocking = Method::from_name("blocking").expect("exists");
        measure(at, &[blocking])
    });
    let report = report.expect("measured");
    assert_eq!((report.failed, report.runs.len()), (None, 1));
    assert_eq!((counted.runs, counted.others), (2, 9));
}

/// Sends foreign packets twice: during a run, and after the source has reported the end of sending. After this
/// report, the counter still counts late packets of the source, so it must still reject foreign packets.
#[test]
fn foreign_packets_are_not_counted() {
    for method in ["blocking", "sendto"] {
        let (_, counted) = while_counting(&Testbed::loopback(), &counter(), |at| {
            let own = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
            let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
            let port = own.local_addr().expect("an address").port();
            let mut stream = TcpStream::connect(at).expect("connected");
            let mut lines = BufReader::new(stream.try_clone().expect("cloned")).lines();
            let mut next = || lines.next().expect("a line").expect("read");
            let request = format!(
                "{{\"laglab_throughput\":1,\"method\":\"{method}\",\"size\":100,\"time_ms\":10,\
                 \"buffer_bytes\":null,\"port\":{port}}}\n"
            );
            stream.write_all(request.as_bytes()).expect("asked");
            assert!(next().starts_with("{\"ready\":"));
            own.send_to(&[0; 100], at).expect("sent");
            stranger.send_to(&[0; 100], at).expect("sent");
            stream.write_all(b"{\"sent\":3}\n").expect("said");
            // These packets arrive after the source has reported the end, but while the counter
            // still waits for packets.
            thread::sleep(Duration::from_millis(20));
            stranger.send_to(&[0; 100], at).expect("sent");
            own.send_to(&[0; 100], at).expect("sent");
            own.send_to(&[0; 100], at).expect("sent");
            let told = next();
            assert!(
                told.starts_with("{\"counted\":{\"packets\":3,\"bytes\":300,"),
                "{method}: {told}"
            );
        });
        assert_eq!((counted.runs, counted.packets), (1, 3), "{method}");
    }
}

/// Starts a false counter, which answers the first lines as given and then closes the connection.
/// Returns its address.
fn impostor(answers: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = listener.local_addr().expect("an address");
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut lines = BufReader::new(stream.try_clone().expect("cloned")).lines();
            let mut stream = stream;
            for answer in answers {
                if lines.next().is_none() || stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
            // Closing a connection with unread data resets it, so the next line is read first.
            let _ = lines.next();
        }
    });
    at
}

#[test]
fn a_counter_that_fails_is_named() {
    const READY: &str = "{\"ready\":{\"buffers\":{\"asked\":null,\"send\":1,\"receive\":1}}}\n";
    // The test uses `sendto`, because the socket of this method is not connected. On a connected socket, the
    // system would report that packets are refused.
    let sendto = Method::from_name("sendto").expect("exists");
    for (answers, words) in [
        (&[][..], "the connection was closed"),
        (
            &["SSH-2.0-x\n"][..],
            "unexpected message `SSH-2.0-x`; use the same laglab version at both ends",
        ),
        (
            &["{\"counted\":{\"packets\":1,\"bytes\":1,\"took_ns\":1}}\n"][..],
            "out of order",
        ),
        (&[READY][..], "the connection was closed"),
        (&[READY, READY][..], "out of order"),
    ] {
        let at = impostor(answers);
        let error = measure(at, &[sendto]).map(|_| ()).expect_err("no counter");
        let said = error.to_string();
        let start = format!("the counter at {at} stopped: ");
        assert!(
            said.starts_with(&start) && said.contains(words),
            "{answers:?}: {said}"
        );
    }
}
