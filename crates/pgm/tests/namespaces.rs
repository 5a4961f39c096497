//! Sessions between network namespaces that lose packets. Members use this crate or OpenPGM.
//!
//! A test is skipped if `ip`, `nft`, `gcc` or OpenPGM is missing, or if the user may not create
//! namespaces.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "members log to stderr")]

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use pgm::{
    Encapsulation, Event, Interface, ParityConfig, Received, ReceiverConfig, Socket, SocketConfig,
    SocketError, SourceConfig, wire::Tsi,
};

const COUNT: u32 = 2_000;
const PORT: u16 = 3056;

/// Returns message `number`, in the format that the C program `peer.c` also uses.
fn message(number: u32) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    message.resize(4 + number as usize % 1_300, number as u8);
    message
}

/// Two network namespaces connected by a virtual Ethernet cable.
struct Pair {
    names: [String; 2],
    addresses: [&'static str; 2],
    group: &'static str,
}

const V4: ([&str; 2], &str) = (["10.77.0.1", "10.77.0.2"], "239.192.0.1");
const V6: ([&str; 2], &str) = (["fd77::1", "fd77::2"], "ff08::1");

impl Pair {
    /// Creates the namespaces. Returns `None` if the machine does not allow it.
    fn new(test: &str, (addresses, group): ([&'static str; 2], &'static str)) -> Option<Pair> {
        let names = ["A", "B"].map(|end| format!("pgm{}{test}{end}", std::process::id()));
        let pair = Pair {
            names,
            addresses,
            group,
        };
        let [a, b] = &pair.names;
        let (bits, lifetime) = if group.contains(':') {
            ("64", "nodad")
        } else {
            ("24", "")
        };
        let mut steps = vec![
            format!("ip netns add {a}"),
            format!("ip netns add {b}"),
            format!("ip link add v0 netns {a} type veth peer name v0 netns {b}"),
        ];
        for (name, address) in pair.names.iter().zip(addresses) {
            steps.push(format!(
                "ip -n {name} addr add {address}/{bits} dev v0 {lifetime}"
            ));
            steps.push(format!("ip -n {name} link set lo up"));
            steps.push(format!("ip -n {name} link set v0 up"));
            steps.push(format!("ip netns exec {name} nft --version"));
        }
        for step in steps {
            if !is_done(&step) {
                testdata::skip(&format!("`{step}` failed"));
                return None;
            }
        }
        Some(pair)
    }

    /// Makes both namespaces drop `of_thousand` of 1,000 received packets.
    fn lose(&self, of_thousand: u32) {
        for name in &self.names {
            let rules = format!(
                "add table inet l; add chain inet l i {{ type filter hook input priority 0; }}; \
                 add rule inet l i meta l4proto {{ udp, 113 }} numgen random mod 1000 < {of_thousand} counter drop"
            );
            let done = Command::new("ip")
                .args(["netns", "exec", name, "nft", &rules])
                .status();
            assert!(done.is_ok_and(|status| status.success()), "{rules}");
        }
    }

    /// Returns a command that runs `program` in the namespace with the index `end`.
    fn command(&self, end: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.names[end]])
            .arg(program);
        command
    }

    /// Starts a member that uses this crate. The member runs in a separate process of this test program.
    fn ours(&self, end: usize, role: &str, encapsulation: &str) -> Running {
        Running::start(self.our_command(end, role, encapsulation))
    }

    fn our_command(&self, end: usize, role: &str, encapsulation: &str) -> Command {
        let mut command = self.command(end, &env::current_exe().unwrap());
        command
            .args(["--exact", "namespaces::member", "--nocapture"])
            .envs([
                ("PGM_ROLE", role),
                ("PGM_ADDRESS", self.addresses[end]),
                ("PGM_GROUP", self.group),
                ("PGM_ENCAPSULATION", encapsulation),
            ]);
        command
    }

    /// Starts a member that uses OpenPGM.
    fn theirs(&self, end: usize, role: &str, peer: &Path, encapsulation: &str) -> Running {
        let port = if encapsulation == "raw" { 0 } else { PORT };
        let mut command = self.command(end, peer);
        command
            .arg(role)
            .arg(format!("{};{}", self.addresses[end], self.group))
            .args([port.to_string(), COUNT.to_string()]);
        Running::start(command)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            is_done(&format!("ip netns del {name}"));
        }
    }
}

fn is_done(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Running process of a member. The process is killed on drop.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out }
    }

    /// Writes a line to the process, which waits for it.
    fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Waits for an output line that ends with `end`.
    fn wait_for(&mut self, end: &str) {
        let mut said = String::new();
        loop {
            let before = said.len();
            assert!(
                self.out.read_line(&mut said).unwrap() > 0,
                "instead of {end}: {said}"
            );
            if said[before..].trim_end().ends_with(end) {
                return;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles `peer.c` and returns the path of the program. Returns `None` if this is not possible.
fn peer(test: &str) -> Option<PathBuf> {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "openpgm-5.3"])
        .output();
    let flags = flags.ok().filter(|flags| flags.status.success());
    let Some(flags) = flags else {
        testdata::skip("OpenPGM is not installed (pkg-config openpgm-5.3)");
        return None;
    };
    let program = env::temp_dir().join(format!("pgm-peer-{}-{test}", std::process::id()));
    let flags = String::from_utf8(flags.stdout).unwrap();
    let compiled = Command::new("gcc")
        .args(["-O1", "-w", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/namespaces/peer.c"
        ))
        .args(flags.split_whitespace())
        .status();
    if compiled.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    testdata::skip("gcc cannot compile a program with OpenPGM");
    None
}

/// Returns the configuration of a member's socket, from the environment.
fn socket_config(encapsulation: &str) -> SocketConfig {
    let variable = |name: &str| env::var(name).unwrap();
    let mut config = SocketConfig::new(
        Interface::find(&variable("PGM_ADDRESS")).unwrap(),
        variable("PGM_GROUP").parse().unwrap(),
    );
    if let Ok(only) = env::var("PGM_ONLY") {
        config.only = vec![only.parse().unwrap()];
    }
    config.encapsulation = match encapsulation {
        "raw" => Encapsulation::Raw,
        "two" => Encapsulation::Udp {
            unicast: 3055,
            multicast: 3056,
        },
        _ => Encapsulation::Udp {
            unicast: PORT,
            multicast: PORT,
        },
    };
    config
}

/// Runs a member if `PGM_ROLE` is set. Other tests start this test in a separate process for this purpose.
#[test]
fn member() {
    let Ok(role) = env::var("PGM_ROLE") else {
        return;
    };
    let encapsulation = env::var("PGM_ENCAPSULATION").unwrap();
    let config = socket_config(&encapsulation);
    let address = config.address().unwrap();
    let is_source = role == "send";
    let source = SourceConfig {
        parity: (encapsulation == "parity").then_some(ParityConfig {
            group_size: 8,
            proactive: 2,
            on_demand: true,
            shorten_groups: false,
        }),
        late_join: true,
        ..SourceConfig::new(Tsi::random(), address, config.group)
    };
    let receiver = ReceiverConfig {
        // An IPv6 interface receives nothing for some time after it came up, so the receiver must
        // join late.
        late_join: true,
        // On a busy machine, repairs may take long. The receiver must not give them up.
        confirmation_retries: u16::MAX,
        repair_retries: u16::MAX,
        ..ReceiverConfig::new(address, config.group)
    };
    let mut socket = Socket::open(
        &config,
        is_source.then_some(source),
        (!is_source).then_some(receiver),
    )
    .unwrap();
    // While the interface is down, the system refuses calls. In this case, the member repeats the calls.
    let has_outage = env::var("PGM_OUTAGE").is_ok();
    let or_refused = |error| {
        let is_outage = has_outage && matches!(error, SocketError::System { .. });
        assert!(is_outage, "{error}");
    };
    eprintln!("{role} is ready");
    say("ready");
    if is_source {
        let begun = Instant::now();
        let mut number = 0;
        loop {
            // In the first 300 ms, receivers learn about the source. Then a message follows every
            // 200 µs.
            let due = Duration::from_millis(300) + Duration::from_micros(200) * number;
            if number < COUNT && begun.elapsed() >= due {
                // The source keeps a message that the system refused, so the test does not send it again.
                if let Err(error) = socket.send_blocking(&message(number)) {
                    or_refused(error);
                }
                number += 1;
                if number == COUNT / 4 {
                    say("a quarter");
                    if has_outage {
                        // The parent process answers when the interface is down.
                        std::io::stdin().read_line(&mut String::new()).unwrap();
                    }
                }
            }
            match socket.recv() {
                Ok(Received::TimerPending(wait)) => {
                    let next = if number < COUNT { 100 } else { 10_000 };
                    let wait = Some(wait.min(Duration::from_micros(next)));
                    socket.wait(wait).unwrap_or_else(or_refused);
                }
                Ok(_) => {}
                Err(error) => or_refused(error),
            }
        }
    }
    let begun = Instant::now();
    let mut number = 0;
    while number < COUNT {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no more than {number} messages"
        );
        let wait = match socket.recv() {
            Ok(Received::Event(Event::Message { payload, .. })) => {
                assert_eq!(payload, message(number));
                number += 1;
                continue;
            }
            Ok(Received::WouldBlock) => Duration::from_secs(1),
            Ok(Received::TimerPending(wait)) => wait.min(Duration::from_secs(1)),
            Ok(other) => panic!("expected message {number}, got {other:?}"),
            Err(error) => {
                or_refused(error);
                Duration::from_millis(1)
            }
        };
        socket.wait(Some(wait)).unwrap_or_else(or_refused);
    }
    let source = socket.sources().next().unwrap();
    let statistics = socket.statistics(source).unwrap();
    eprintln!("{statistics:?}");
    assert!(
        !has_outage || statistics.repairs > 0,
        "the outage had no effect"
    );
    say("complete");
}

/// Writes a line to the pipe of the parent process. The test harness does not capture this output.
fn say(what: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{what}").unwrap();
    out.flush().unwrap();
}

/// Checks complete delivery in a network that loses packets. If `with_theirs` is true, there are two
/// sessions: in the first session the receiver uses OpenPGM, and in the second session the source does.
/// Otherwise, both members use this crate.
fn check_delivery(
    test: &str,
    network: ([&'static str; 2], &'static str),
    encapsulation: &str,
    lost: u32,
    with_theirs: bool,
) {
    let peer = if with_theirs {
        let Some(peer) = peer(test) else {
            return;
        };
        Some(peer)
    } else {
        None
    };
    let rounds: &[(bool, bool)] = match peer {
        Some(_) => &[(true, false), (false, true)],
        None => &[(true, true)],
    };
    for (is_source_ours, is_receiver_ours) in rounds {
        let Some(pair) = Pair::new(test, network) else {
            return;
        };
        let member = |end, role, is_ours: bool| match &peer {
            Some(peer) if !is_ours => pair.theirs(end, role, peer, encapsulation),
            _ => pair.ours(end, role, encapsulation),
        };
        let mut receiver = member(1, "receive", *is_receiver_ours);
        receiver.wait_for("ready");
        let mut source = member(0, "send", *is_source_ours);
        source.wait_for("ready");
        // The receiver needs the first SPM to join, so the losses start after it. The data starts
        // after 300 ms.
        std::thread::sleep(Duration::from_millis(150));
        pair.lose(lost);
        receiver.wait_for("complete");
    }
    if let Some(peer) = peer {
        let _ = std::fs::remove_file(peer);
    }
}

#[test]
fn ours_over_udp() {
    check_delivery("u0", V4, "one", 0, false);
    check_delivery("u1", V4, "two", 300, false);
}

#[test]
fn ours_over_ip() {
    check_delivery("r", V4, "raw", 100, false);
}

#[test]
fn ours_over_ipv6() {
    check_delivery("s", V6, "two", 100, false);
    check_delivery("t", V6, "raw", 100, false);
}

/// Checks that the kernel joined the group for one source. The kernel lists such joins with
/// addresses of 32 digits.
#[test]
fn source_specific_over_ipv6() {
    let Some(pair) = Pair::new("x", V6) else {
        return;
    };
    let digits = |address: &str| {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        format!("{:032x}", u128::from(address))
    };
    let joined = [digits(pair.group), digits(pair.addresses[0])].join(" ");
    let filters = || {
        let mut cat = pair.command(1, Path::new("cat"));
        let filters = cat.arg("/proc/net/mcfilter6").output();
        String::from_utf8(filters.unwrap().stdout).unwrap()
    };
    for encapsulation in ["two", "raw"] {
        // The kernel only lists an interface if the newest group of this interface has sources. The groups of the
        // interface's own addresses may be newer on a busy machine, because the kernel configures addresses in the
        // background. So the receiver joins again until it is the newest.
        let join = || {
            let mut command = pair.our_command(1, "receive", encapsulation);
            command.env("PGM_ONLY", pair.addresses[0]);
            let mut receiver = Running::start(command);
            receiver.wait_for("ready");
            let is_listed = filters().contains(&joined);
            if !is_listed {
                std::thread::sleep(Duration::from_millis(500));
            }
            is_listed.then_some(receiver)
        };
        let receiver = (0..20).find_map(|_| join());
        let mut receiver = receiver.unwrap_or_else(|| panic!("{joined} is not in\n{}", filters()));
        let mut source = pair.ours(0, "send", encapsulation);
        source.wait_for("ready");
        receiver.wait_for("complete");
    }
}

/// Checks that a session continues after the interface of one member was down for 200 ms.
#[test]
fn an_interface_goes_down() {
    for end in [0, 1] {
        let Some(pair) = Pair::new(&format!("d{end}"), V4) else {
            return;
        };
        let member = |end, role| {
            let mut command = pair.our_command(end, role, "two");
            command.env("PGM_OUTAGE", "1");
            Running::start(command)
        };
        let mut receiver = member(1, "receive");
        receiver.wait_for("ready");
        let mut source = member(0, "send");
        source.wait_for("a quarter");
        let name = &pair.names[end];
        assert!(is_done(&format!("ip -n {name} link set v0 down")));
        source.go_on();
        std::thread::sleep(Duration::from_millis(200));
        assert!(is_done(&format!("ip -n {name} link set v0 up")));
        receiver.wait_for("complete");
    }
}

#[test]
fn ours_with_parity() {
    check_delivery("p", V4, "parity", 100, false);
}

#[test]
fn with_openpgm_over_udp() {
    for lost in [0, 20, 100, 300] {
        check_delivery(&format!("o{lost}"), V4, "one", lost, true);
    }
}

#[test]
fn with_openpgm_over_ip() {
    check_delivery("q", V4, "raw", 20, true);
}
