//! `laglab measure net`.

mod reflector;

use std::cell::OnceCell;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::time::Duration;

use measure::net::throughput::{Method, ThroughputPlan};
use measure::net::{
    Carrier, Family, Interface, LONGEST_SPIN, NetError, NetSetting, Pace, Place, RoundTripPlan,
    Route, Runs, Testbed, UdpOptions,
};
use measure::{Clock, Comparison, End, Plan, Scheduling};

use super::delivery::{Delivery, Show};
use super::differ;
use super::scheduling::{SchedulingOptions, take_word, time};
use crate::cli::{Failure, say};
use crate::measured::{self, Report};
use crate::watch::{self, Watch};

/// Measures how long packets take to a reflector and back, or how many get through.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab measure net                                     both ends here, UDP, four rates\n  \
    laglab measure net --rate 20k --vs fifo:50 -o net.html normal against real-time scheduling\n  \
    laglab measure net --rate ping-pong --peers            beside sockperf\n  \
    laglab measure net --throughput --size 1000            by blocking calls, poll, io_uring, GSO …\n  \
    laglab measure net --role reflector --port 7600        on one machine …\n  \
    laglab measure net --role source --to 10.0.0.7:7600    … and on another\n  \
    laglab measure net --throughput --role reflector       the end that counts, and from another machine …\n  \
    laglab measure net --throughput --role source --to 10.0.0.7\n  \
    laglab measure net --role source --group 239.255.7.6 --interface eth0 --dscp EF\n  \
    laglab measure net --transport udp,pgm                 reliable multicast beside UDP\n  \
    laglab measure net --transport pgm,openpgm,epgm        … and beside OpenPGM's and ZeroMQ's\n\n\
    Both ends here means two network namespaces joined by a virtual cable, which the program makes \
    and which vanish with it. That takes root on Linux; without, it is the loopback.")]
pub(super) struct Args {
    /// Which end this is; the other runs elsewhere [default: both are here]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// Both ends are here; fail where no network namespaces can be made
    #[arg(long, conflicts_with_all = ["role", "loopback"])]
    self_test: bool,
    /// Both ends are here, on the loopback
    #[arg(long, conflicts_with = "role")]
    loopback: bool,
    /// The reflector's address, and its port if it is not --port
    #[arg(long, value_name = "HOST[:PORT]", requires = "role")]
    to: Option<String>,
    /// The port that a reflector listens at, and that a group uses
    #[arg(long, default_value_t = 7600)]
    port: u16,
    /// The address that a reflector listens at [default: all of its family]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Talk with this multicast group: both ways go through it
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["to", "bind"])]
    group: Option<IpAddr>,
    /// The interface for the group: its name, number or address
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// What carries the packets; of several (comma-separated) each is measured. PGM, which sends again
    /// what is lost, needs a group [with it the default is 239.255.76.76, or ff18::7676] and has the two
    /// ports after --port; OpenPGM and epgm need a group, too, and have the third port after it, and the
    /// fourth and fifth
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "udp"
    )]
    transport: Vec<Transport>,
    /// Use IPv6 where no address says which
    #[arg(long)]
    ipv6: bool,
    /// Packets a second, such as 500 or 20k, or ping-pong: each when the one before is back. Of
    /// several (comma-separated) each is measured [default: 10k,20k,30k,40k]
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = pace)]
    rate: Vec<Pace>,
    /// Bytes of payload in a packet
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// How long a run is; of a reflector, for how long it works [default: 1s; of a reflector without
    /// end]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Runs of each rate and setting, in turns
    #[arg(long, value_name = "COUNT", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// How long the other end may be silent
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2s")]
    patience: Duration,
    /// Mark packets: 0 to 63, or a name such as EF, AF41, CS6
    #[arg(long, value_name = "MARK", value_parser = dscp, help_heading = "Sockets")]
    dscp: Option<u8>,
    /// Linux: have the kernel poll the network card for so long (SO_BUSY_POLL)
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Sockets")]
    busy_poll: Option<Duration>,
    /// Spin for so long, at most 1ms, before a thread sleeps for a packet (UDP: Linux only)
    #[arg(long, value_name = "TIME", value_parser = spin, help_heading = "Sockets")]
    spin: Option<Duration>,
    /// Bytes of socket buffers to ask for [default: the system's; with --throughput 33554432]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=(1 << 30)), help_heading = "Sockets")]
    buffer: Option<u32>,
    /// Measure under a second setting, in turn with the first: words such as usual, fifo:50, cpu:1,
    /// slack:1ns, spin:50us, busy-poll:50us, dscp:EF, separated by commas
    #[arg(long, value_name = "WORDS", value_parser = setting)]
    vs: Option<NetSetting>,
    #[command(flatten)]
    scheduling: SchedulingOptions,
    /// Also have sockperf (with --throughput iperf3) measure the same, in turns, where installed
    #[arg(long, conflicts_with = "role")]
    peers: bool,
    /// Measure how many packets get through, by each way to send and receive; a reflector counts them
    #[arg(long, conflicts_with_all = ["group", "rate", "vs", "dscp", "busy_poll", "spin", "output"])]
    throughput: bool,
    /// Only these ways (comma-separated) [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = method)]
    method: Vec<Method>,
    #[command(flatten)]
    delivery: Delivery,
}

/// One of two ends.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Sends packets and notes when they are back
    Source,
    /// Sends every packet back
    Reflector,
}

/// What carries packets.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    /// UDP
    Udp,
    /// PGM (RFC 3208) in UDP
    Pgm,
    /// The same by OpenPGM's library, where that is installed
    #[cfg(target_os = "linux")]
    #[value(name = "openpgm")]
    OpenPgm,
    /// ZeroMQ's epgm by its library, where that is installed
    #[cfg(target_os = "linux")]
    Epgm,
}

impl Transport {
    fn carrier(self) -> Carrier {
        match self {
            Transport::Udp => Carrier::Udp,
            Transport::Pgm => Carrier::Pgm,
            #[cfg(target_os = "linux")]
            Transport::OpenPgm => Carrier::OpenPgm,
            #[cfg(target_os = "linux")]
            Transport::Epgm => Carrier::Epgm,
        }
    }
}

/// Groups that are free to use at one's own site (RFC 2365, RFC 4291).
const GROUP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 76, 76));
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 0x7676));

/// How long a run is unless told.
const TIME: Duration = Duration::from_secs(1);

/// What is sent before packets count.
const WARM_UP: Duration = Duration::from_millis(100);

/// Socket buffers that hold what a scheduler's pause lets pile up.
const LARGE_BUFFER: u32 = 32 << 20;

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    if let Some(what) = contradiction(args) {
        return Err(Failure::Input(what.to_owned()));
    }
    match (args.role, args.throughput) {
        (Some(Role::Reflector), true) => reflector::count(args, json),
        (Some(Role::Reflector), false) => reflector::reflect(args, json),
        (_, true) => throughput(args, json),
        _ => round_trips(args, json),
    }
}

/// What was asked for and cannot be had together, if anything.
fn contradiction(args: &Args) -> Option<&'static str> {
    let reflects = args.role == Some(Role::Reflector);
    let of_a_source = args.to.is_some()
        || !args.rate.is_empty()
        || args.vs.is_some()
        || !args.method.is_empty()
        || args.delivery.is_asked();
    let rules = [
        (
            args.interface.is_some() && group(args).is_none(),
            "--interface is for a group, and there is none: name it with --group",
        ),
        (
            args.interface.is_some() && args.role.is_none(),
            "--interface is for an end whose other is elsewhere (--role): where both are here, the test bed \
             has its own",
        ),
        (
            args.throughput && args.role.is_some() && group(args).is_some(),
            "between two machines it is UDP's throughput that is measured: for others leave out --role, so \
             that both ends are here",
        ),
        (
            !args.method.is_empty() && !args.throughput,
            "--method is for --throughput",
        ),
        (
            args.bind.is_some() && !reflects,
            "--bind is where a reflector listens: --role reflector",
        ),
        (
            reflects && of_a_source,
            "a reflector has no --to, --rate, --vs, --method and --output: those are for its source",
        ),
        (
            reflects && args.throughput && args.buffer.is_some(),
            "the source says which buffers the end that counts is to ask for: --buffer there",
        ),
        (
            reflects && args.port == 0,
            "a reflector's port must be known to its source: name one with --port",
        ),
    ];
    let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
    broken.map(|(_, what)| what)
}

fn has_stopped() -> bool {
    watch::check().is_err()
}

/// Says on a terminal that it takes a while, and shows how far it is: between runs, which drawing
/// would disturb.
fn announce() -> impl Fn(Runs) {
    if io::stderr().is_terminal() {
        say("measuring; Ctrl-C ends it and keeps what was measured");
    }
    let watch = OnceCell::new();
    move |runs| {
        let watch = watch.get_or_init(|| Watch::new("measuring", runs.of.into()).in_percent());
        // That it shall stop is asked for elsewhere.
        let _ = watch.reach(runs.done.into());
    }
}

fn round_trips(args: &Args, json: bool) -> Result<(), Failure> {
    let first = NetSetting {
        scheduling: args.scheduling.scheduling(),
        udp: sockets(args),
    };
    let mut settings: Vec<NetSetting> = std::iter::once(first).chain(args.vs.clone()).collect();
    // Timers that may be 50 µs late cannot keep an interval of 25 µs.
    if cfg!(target_os = "linux") {
        for setting in &mut settings {
            let slack = &mut setting.scheduling.timer_slack;
            slack.get_or_insert(Duration::from_nanos(1));
        }
    }
    differ(&settings, "--vs")?;
    let plan = RoundTripPlan {
        route: route(args)?,
        carriers: carriers(args),
        paces: match args.rate.is_empty() {
            true => [10_000, 20_000, 30_000, 40_000]
                .into_iter()
                .filter_map(NonZeroU32::new)
                .map(Pace::PerSecond)
                .collect(),
            false => args.rate.clone(),
        },
        settings,
        size: args.size,
        time: args.time.unwrap_or(TIME),
        warm_up: WARM_UP,
        patience: args.patience,
        with_peer: args.peers,
        plan: turns(args),
    };
    let destination = args.delivery.prepare()?;
    let report = plan.measure(&Clock::best(), &has_stopped, &announce())?;
    let show = match json {
        true => Show::Json,
        false => Show::Text,
    };
    destination.deliver(&Report::of_round_trips(&report), show)?;
    report.failed.map_or(Ok(()), |why| Err(Failure::Input(why)))
}

fn throughput(args: &Args, json: bool) -> Result<(), Failure> {
    let plan = ThroughputPlan {
        route: route(args)?,
        methods: match args.method.is_empty() {
            true => Method::ALL
                .iter()
                .copied()
                .filter(|method| carriers(args).contains(&method.carrier()))
                .collect(),
            false => once(args.method.iter().copied(), |known, method| {
                known.name == method.name
            }),
        },
        scheduling: args.scheduling.scheduling(),
        size: args.size,
        time: args.time.unwrap_or(TIME),
        buffer_bytes: Some(args.buffer.unwrap_or(LARGE_BUFFER) as usize),
        patience: args.patience,
        with_peer: args.peers,
        plan: turns(args),
    };
    let report = plan.measure(&Clock::best(), &has_stopped, &announce())?;
    measured::throughput(&report, &plan, json)?;
    match (report.end, report.failed) {
        (End::Stopped, _) => Err(Failure::Interrupted),
        (_, Some(why)) => Err(Failure::Input(why)),
        (_, None) => Ok(()),
    }
}

/// Each once: the first of those that are the same.
fn once<T>(asked: impl IntoIterator<Item = T>, is_same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for one in asked {
        if !all.iter().any(|known| is_same(known, &one)) {
            all.push(one);
        }
    }
    all
}

/// The runs that were asked for, however long they take.
fn turns(args: &Args) -> Plan {
    Plan {
        warm_up: 0,
        at_least: args.runs.min(Comparison::LEAST_PAIRS as u32),
        at_most: args.runs,
        time: Duration::MAX,
        precision: None,
    }
}

/// What is asked of sockets.
fn sockets(args: &Args) -> UdpOptions {
    UdpOptions {
        buffer_bytes: args.buffer.map(|bytes| bytes as usize),
        dscp: args.dscp,
        busy_poll: args.busy_poll,
        spin: args.spin,
    }
}

/// What carries packets: each once.
fn carriers(args: &Args) -> Vec<Carrier> {
    let carriers = args.transport.iter().map(|of| of.carrier());
    once(carriers, |known, carrier| known == carrier)
}

/// The group, if it goes through one. Whatever is measured beside PGM goes through the same.
fn group(args: &Args) -> Option<IpAddr> {
    let default = match args.ipv6 {
        true => GROUP_V6,
        false => GROUP_V4,
    };
    let mut carriers = carriers(args).into_iter();
    let needs_one = carriers.any(Carrier::needs_group);
    args.group.or_else(|| needs_one.then_some(default))
}

fn family(args: &Args) -> Family {
    match group(args).map_or(args.ipv6, |group| group.is_ipv6()) {
        true => Family::V6,
        false => Family::V4,
    }
}

/// Both ends here: in namespaces, or on the loopback where those cannot be made and nobody insists.
fn testbed(args: &Args) -> Result<Testbed, Failure> {
    if args.loopback {
        return Ok(Testbed::loopback());
    }
    match Testbed::namespaces() {
        Ok(testbed) => Ok(testbed),
        Err(error) if args.self_test => Err(error.into()),
        Err(error) => {
            say(&format!("{error}; it goes over the loopback instead"));
            Ok(Testbed::loopback())
        }
    }
}

fn route(args: &Args) -> Result<Route, Failure> {
    if args.role.is_none() {
        let group = group(args);
        if let Some(group) = group.filter(|group| !group.is_multicast()) {
            return Err(NetError::NotMulticast(group).into());
        }
        return Ok(Route::Here {
            testbed: testbed(args)?,
            family: family(args),
            group: group.map(|group| (group, args.port).into()),
        });
    }
    match (&args.to, group(args)) {
        (None, Some(group)) => Ok(Route::There(in_group(args, group)?)),
        (Some(to), None) => Ok(Route::There(Place::Peer(resolve(to, args)?))),
        (Some(_), Some(_)) => {
            let what =
                "PGM talks with a group, not with one machine: --group ADDRESS instead of --to";
            Err(Failure::Input(what.to_owned()))
        }
        (None, None) => {
            let what = "a source needs to know its reflector: --to HOST, or --group ADDRESS";
            Err(Failure::Input(what.to_owned()))
        }
    }
}

fn in_group(args: &Args, group: IpAddr) -> Result<Place, Failure> {
    let interface = args.interface.as_deref().map(Interface::find).transpose()?;
    Ok(Place::Group {
        group: (group, args.port).into(),
        interface,
    })
}

/// The address of a host that may have a port.
fn resolve(to: &str, args: &Args) -> Result<SocketAddr, Failure> {
    let found = match to.parse::<IpAddr>() {
        Ok(address) => Ok(vec![(address, args.port).into()]),
        // An address of IPv6 has colons of its own; with a port it is in brackets.
        Err(_) if to.contains("]:") || to.matches(':').count() == 1 => {
            to.to_socket_addrs().map(|all| all.collect::<Vec<_>>())
        }
        Err(_) => (to, args.port).to_socket_addrs().map(|all| all.collect()),
    };
    let found = found.map_err(|error| Failure::Input(format!("{to}: {error}")))?;
    let of_family = |address: &&SocketAddr| address.is_ipv6() == args.ipv6;
    (found.iter().find(of_family))
        .or(found.first())
        .copied()
        .ok_or_else(|| Failure::Input(format!("{to}: no address is known")))
}

fn pace(text: &str) -> Result<Pace, String> {
    if text == "ping-pong" {
        return Ok(Pace::PingPong);
    }
    let (digits, factor) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => (text, 1),
    };
    digits
        .parse::<u32>()
        .ok()
        .and_then(|rate| rate.checked_mul(factor))
        .filter(|rate| *rate <= 10_000_000)
        .and_then(NonZeroU32::new)
        .map(Pace::PerSecond)
        .ok_or_else(|| "expected packets a second, such as 500 or 20k, or ping-pong".to_owned())
}

/// A mark by its number or its name (RFC 2474, 2597, 3246).
fn dscp(text: &str) -> Result<u8, String> {
    let digit = |c: char, most: u8| {
        let digit = c.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
        digit.filter(|digit| (1..=most).contains(digit))
    };
    let letters: Vec<char> = text.to_ascii_uppercase().chars().collect();
    let mark = match letters[..] {
        ['E', 'F'] => Some(46),
        ['C', 'S', '0'] => Some(0),
        ['C', 'S', class] => digit(class, 7).map(|class| class * 8),
        ['A', 'F', class, drop] => digit(class, 4)
            .zip(digit(drop, 3))
            .map(|(class, drop)| class * 8 + drop * 2),
        _ => text.parse().ok().filter(|mark| *mark < 64),
    };
    mark.ok_or_else(|| "expected 0 to 63, EF, CS0 to CS7 or AF11 to AF43".to_owned())
}

fn method(name: &str) -> Result<Method, String> {
    let names = || {
        Method::ALL
            .iter()
            .map(|method| method.name)
            .collect::<Vec<_>>()
    };
    Method::named(name).ok_or_else(|| format!("expected one of {}", names().join(", ")))
}

fn spin(text: &str) -> Result<Duration, String> {
    let asked = time(text)?;
    match asked <= LONGEST_SPIN {
        true => Ok(asked),
        false => Err(format!(
            "a thread spins for at most {LONGEST_SPIN:?}: one that never sleeps takes its CPU from everybody"
        )),
    }
}

/// The words of `--vs`.
fn setting(text: &str) -> Result<NetSetting, String> {
    let mut setting = NetSetting::default();
    let mut scheduling = Scheduling::default();
    for word in text.split(',').map(str::trim) {
        match word.split_once(':') {
            Some(("dscp", mark)) => setting.udp.dscp = Some(dscp(mark)?),
            Some(("spin", text)) => setting.udp.spin = Some(spin(text)?),
            Some(("busy-poll", text)) => setting.udp.busy_poll = Some(time(text)?),
            _ if take_word(word, &mut scheduling)? => {}
            _ => return Err(format!("`{word}` is no word for a setting")),
        }
    }
    setting.scheduling = scheduling;
    Ok(setting)
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Failure {
        Failure::Input(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let rate = |rate| NonZeroU32::new(rate).map(Pace::PerSecond);
        assert_eq!(pace("500").ok(), rate(500));
        assert_eq!(pace("20k").ok(), rate(20_000));
        assert_eq!(pace("ping-pong"), Ok(Pace::PingPong));
        for odd in ["0", "k", "-1", "99999999999", "10000k1", "5000000k", ""] {
            assert!(pace(odd).is_err(), "{odd}");
        }
    }

    /// Names and numbers by the registry of DSCP values.
    #[test]
    fn marks_are_known_by_their_names() {
        let known = [
            ("EF", 46),
            ("ef", 46),
            ("CS0", 0),
            ("CS6", 48),
            ("AF11", 10),
            ("AF23", 22),
            ("AF41", 34),
            ("AF43", 38),
            ("0", 0),
            ("63", 63),
        ];
        for (name, mark) in known {
            assert_eq!(dscp(name), Ok(mark), "{name}");
        }
        for odd in [
            "64", "-1", "AF", "AF50", "AF14", "AF01", "CS8", "EFG", "", "é",
        ] {
            assert!(dscp(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn words_make_a_setting() {
        let words = setting("fifo:50, spin:50us,dscp:EF,busy-poll:20us").unwrap();
        assert_eq!(words.scheduling.policy, measure::Policy::Fifo(50));
        assert_eq!(words.udp.spin, Some(Duration::from_micros(50)));
        assert_eq!(words.udp.busy_poll, Some(Duration::from_micros(20)));
        assert_eq!(words.udp.dscp, Some(46));
        for odd in ["", "fast", "dscp:99", "spin:x", "spin:2ms", "fifo:0"] {
            assert!(setting(odd).is_err(), "{odd}");
        }
    }
}
