//! Throughput to an end that counts, as on another machine: over the loopback, and between namespaces.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use measure::net::throughput::{Counted, Counter, Method, ThroughputPlan, ThroughputReport};
use measure::net::{Around, Family, NetError, Patience, Place, Route, Side, Testbed};
use measure::{Clock, Plan, Scheduling};

const SIZE: usize = 200;

fn left_out(why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "left out: {why}");
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
            precision: None,
        },
    }
}

/// Does something while a counter counts on the far side, and gives what both have.
fn while_counting<T>(
    testbed: &Testbed,
    counter: &Counter,
    work: impl FnOnce(SocketAddr) -> T,
) -> (T, Counted) {
    let at = counter.local_address().expect("an address");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let around = Around {
                clock: &Clock::best(),
                scheduling: &Scheduling::default(),
                stop: &|| stop.load(Ordering::Relaxed),
            };
            testbed.on(Side::Far, || counter.count(Patience::default(), around))
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

/// Each run is counted twice: once to see whether the method is there.
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
    assert_eq!(here.count(), both_here.count(), "PGM's and the like");
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
fn every_method_is_counted_by_the_other_end() {
    let (report, counted) = while_counting(&Testbed::loopback(), &counter(), |at| {
        measure(at, Method::ALL)
    });
    check(&report.expect("measured"), counted);
    let six = Counter::open((Ipv6Addr::LOCALHOST, 0).into()).expect("opened");
    let (report, counted) =
        while_counting(&Testbed::loopback(), &six, |at| measure(at, Method::ALL));
    check(&report.expect("measured"), counted);
}

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
fn nobody_there_is_said_at_once() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let at = closed.local_addr().expect("an address");
    drop(closed);
    let error = measure(at, Method::ALL).map(|_| ()).expect_err("nobody");
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("nobody counts at {at} (")),
        "{said}"
    );
}

/// What the counting end says to a line, if anything.
fn said_to(at: SocketAddr, line: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("connected");
    stream.write_all(line).expect("written");
    let mut said = String::new();
    // A connection that is reset has said nothing.
    let _ = BufReader::new(stream).read_line(&mut said);
    said
}

#[test]
fn strangers_are_refused_and_others_served_after_them() {
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
                "and was spoken to in version 2",
            ),
            (request(1, "telepathy", 100, 10), "no such method"),
            (request(1, "pgm", 100, 10), "only where both ends are here"),
            (
                request(1, "blocking", 0, 10),
                "packets of 0 bytes cannot be",
            ),
            (request(1, "blocking", 100, u64::MAX), "at most 3600 s"),
            ("GET / HTTP/1.1\r\n".to_owned(), "it said `GET / HTTP/1.1`"),
            (
                "{\"laglab_throughput\":1}\n".to_owned(),
                "is it another version?",
            ),
        ] {
            let said = said_to(at, line.as_bytes());
            assert!(
                said.starts_with("{\"refused\":") && said.contains(words),
                "{line}: {said}"
            );
        }
        // More than a line is, and nothing at all.
        assert_eq!(said_to(at, &[b'x'; 10_000]), "");
        drop(TcpStream::connect(at).expect("connected"));
        let blocking = Method::named("blocking").expect("there is");
        measure(at, &[blocking])
    });
    let report = report.expect("measured");
    assert_eq!((report.failed, report.runs.len()), (None, 1));
    assert_eq!((counted.runs, counted.others), (2, 9));
}

/// Somebody who asked for nothing sends in the midst of a run, and when all was sent but not yet received.
#[test]
fn packets_of_strangers_are_not_counted_and_do_not_end_the_count() {
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
            // Later than that was said, but not too late.
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

/// An end that answers the first lines so, and then is gone.
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
            // What was not read when a connection is closed resets it.
            let _ = lines.next();
        }
    });
    at
}

#[test]
fn an_end_that_dies_or_talks_nonsense_is_named() {
    const READY: &str = "{\"ready\":{\"buffers\":{\"asked\":null,\"send\":1,\"receive\":1}}}\n";
    // Of a connected socket nobody would take the packets.
    let sendto = Method::named("sendto").expect("there is");
    for (answers, words) in [
        (&[][..], "it closed the connection"),
        (
            &["SSH-2.0-x\n"][..],
            "it said `SSH-2.0-x`: is it another version?",
        ),
        (
            &["{\"counted\":{\"packets\":1,\"bytes\":1,\"took_ns\":1}}\n"][..],
            "out of turn",
        ),
        (&[READY][..], "it closed the connection"),
        (&[READY, READY][..], "out of turn"),
    ] {
        let at = impostor(answers);
        let error = measure(at, &[sendto]).map(|_| ()).expect_err("no counter");
        let said = error.to_string();
        let start = format!("the other end, at {at}, stopped counting: ");
        assert!(
            said.starts_with(&start) && said.contains(words),
            "{answers:?}: {said}"
        );
    }
}
