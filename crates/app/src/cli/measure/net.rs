//! `laglab measure net`.

mod reflector;

use std::cell::OnceCell;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::time::Duration;

use measure::net::throughput::{Method, ThroughputPlan};
use measure::net::{
    Carrier, Family, Interface, MAX_SPIN, NetError, NetSetting, Pace, Place, RoundTripPlan, Route,
    Runs, Testbed, UdpOptions,
};
use measure::{Clock, Comparison, End, Goal, Plan, Scheduling};

use super::delivery::{Delivery, Show};
use super::differ;
use super::scheduling::{SCHEDULING_WORDS, SchedulingOptions, take_word, time};
use super::until_sure::UntilSure;
use super::why::{Why, WhyOptions};
use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::cli::time_with_unit::time_with_unit;
use crate::measured::{self, Report};
use crate::output::say;
use crate::watch::{self, Watch};

/// Measures round trips of packets to a reflector, or throughput.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab measure net                                     both ends here, UDP, four rates\n  \
    laglab measure net --rate 20k --vs fifo:50 -o net.html normal and real-time scheduling\n  \
    laglab measure net --rate ping-pong --peers            compared with sockperf\n  \
    laglab measure net --throughput --size 1000            with blocking calls, poll, io_uring, GSO …\n  \
    laglab measure net --role reflector --port 7600        on one machine …\n  \
    laglab measure net --role source --to 10.0.0.7:7600    … and on another\n  \
    laglab measure net --throughput --role reflector       counts packets from another machine:\n  \
    laglab measure net --throughput --role source --to 10.0.0.7\n  \
    laglab measure net --role source --group 239.255.7.6 --interface eth0 --dscp EF\n  \
    laglab measure net --transport udp,pgm                 reliable multicast compared with UDP\n  \
    laglab measure net --transport pgm,openpgm,epgm        also compared with OpenPGM and ZeroMQ\n\n\
    \"Both ends here\" uses two temporary network namespaces with a virtual link. This needs Linux and \
    root; otherwise the loopback is used.")]
pub(super) struct Args {
    /// Role of this machine, if another machine has the other role [default: both roles on this machine]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// Run source and reflector on this machine, and fail if network namespaces cannot be created
    #[arg(long, conflicts_with_all = ["role", "loopback"])]
    self_test: bool,
    /// Run source and reflector on this machine, on the loopback
    #[arg(long, conflicts_with = "role")]
    loopback: bool,
    /// Address of the reflector, and its port if it differs from --port
    #[arg(long, value_name = "HOST[:PORT]", requires = "role")]
    to: Option<String>,
    /// Port of the reflector or of the multicast group
    #[arg(long, default_value_t = 7600)]
    port: u16,
    /// Address that the reflector listens on [default: all addresses of its family]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Use this multicast group in both directions
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["to", "bind"])]
    group: Option<IpAddr>,
    /// Network interface for the multicast group: name, number or address
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Transports to measure (comma-separated). pgm, openpgm and epgm retransmit lost packets and need a
    /// group [default: 239.255.76.76, or ff18::7676]. pgm uses the first two ports after --port, openpgm
    /// the third, epgm the fourth and fifth
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "udp"
    )]
    transport: Vec<Transport>,
    /// Use IPv6 if the other options give no IP address (for example, only a host name)
    #[arg(long)]
    ipv6: bool,
    /// Packets per second, such as 500 or 20k (comma-separated), or ping-pong: send each packet when the
    /// previous one is back [default: 10k,20k,30k,40k]
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = pace)]
    rate: Vec<Pace>,
    /// Payload of a packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Total duration: start no new runs after this time, but make at least six of each rate and setting [default:
    /// unlimited]
    #[arg(long = "for", value_name = "TIME", value_parser = time_with_unit)]
    time: Option<Duration>,
    /// Duration of a run [default: 1s, or less with a short --for]
    #[arg(long, value_name = "TIME", value_parser = time_with_unit)]
    run_for: Option<Duration>,
    /// Number of runs of each rate and setting; the runs alternate [default: 6, or as many as --for allows]
    #[arg(long, value_name = "COUNT", conflicts_with = "until_sure", value_parser = integer::<u32>(1, 1000))]
    runs: Option<u32>,
    #[command(flatten)]
    sure: UntilSure,
    /// Give up if no packet from the reflector arrives for this time
    #[arg(long, value_name = "TIME", value_parser = time_with_unit, default_value = "2s")]
    patience: Duration,
    /// Mark packets with this DSCP value: 0 to 63, or a name such as EF, AF41, CS6
    #[arg(long, value_name = "MARK", value_parser = dscp, help_heading = "Sockets")]
    dscp: Option<u8>,
    /// Linux: time for which the kernel polls the network card (SO_BUSY_POLL)
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Sockets")]
    busy_poll: Option<Duration>,
    /// Time that a thread spins before it sleeps, at most 1ms (UDP: Linux only)
    #[arg(long, value_name = "TIME", value_parser = spin, help_heading = "Sockets")]
    spin: Option<Duration>,
    /// Size of socket buffers to request, in bytes [default: size of the system; with --throughput 33554432]
    #[arg(long, value_name = "BYTES", value_parser = integer::<u32>(1, 1 << 30), help_heading = "Sockets")]
    buffer: Option<u32>,
    /// Compare with a second setting; runs of both alternate. The setting is a comma-separated list of words
    /// such as usual (default scheduling), fifo:50, cpu:1, slack:1ns, spin:50us, busy-poll:50us, dscp:EF
    #[arg(long, value_name = "WORDS", value_parser = setting)]
    vs: Option<NetSetting>,
    #[command(flatten)]
    scheduling: SchedulingOptions,
    /// Also run sockperf (with --throughput: iperf3) for comparison, if it is installed; its runs alternate
    /// with the other runs
    #[arg(long, conflicts_with = "role")]
    peers: bool,
    /// Measure the throughput of each method of sending and receiving. The reflector counts the packets that
    /// arrive
    #[arg(long, conflicts_with_all = ["group", "rate", "vs", "dscp", "busy_poll", "spin", "until_sure"])]
    throughput: bool,
    /// Use only these methods (comma-separated) [default: all on this system]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = method)]
    method: Vec<Method>,
    #[command(flatten)]
    why: WhyOptions,
    #[command(flatten)]
    delivery: Delivery,
}

/// Role of a machine in a measurement.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Sends packets and measures their return
    Source,
    /// Echoes every packet
    Reflector,
}

/// Transport of packets.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    /// UDP
    Udp,
    /// PGM (RFC 3208) over UDP
    Pgm,
    /// PGM of the OpenPGM library, if installed
    #[cfg(target_os = "linux")]
    #[value(name = "openpgm")]
    OpenPgm,
    /// epgm of the ZeroMQ library, if installed
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

/// Default multicast group for PGM over IPv4. The address is for local use (RFC 2365).
const GROUP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 76, 76));
/// Default multicast group for PGM over IPv6. The address is for local use (RFC 4291).
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 0x7676));

/// Default duration of a run.
const TIME: Duration = Duration::from_secs(1);

/// Minimum duration of a run that is shortened so that all runs fit into the total time.
const SHORTEST: Duration = Duration::from_millis(50);

/// Default number of runs of each rate and setting. It is the minimum number for a comparison.
const RUNS: u32 = Comparison::MIN_PAIRS as u32;

/// Length of the warm-up at the start of a run. Packets that are sent during the warm-up do not count.
const WARM_UP: Duration = Duration::from_millis(100);

/// Size of socket buffers in bytes. Buffers of this size hold all packets that arrive while the scheduler
/// does not run the receiver.
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

/// Returns an error message if options contradict each other.
fn contradiction(args: &Args) -> Option<&'static str> {
    let is_reflector = args.role == Some(Role::Reflector);
    let has_source_options = args.to.is_some()
        || !args.rate.is_empty()
        || args.vs.is_some()
        || !args.method.is_empty()
        || args.run_for.is_some()
        || args.delivery.has_file();
    let rules = [
        (
            args.interface.is_some() && group(args).is_none(),
            "--interface needs a group: give one with --group",
        ),
        (
            args.interface.is_some() && args.role.is_none(),
            "--interface needs --role: if both ends are on this machine, the test bed has its own \
             interfaces",
        ),
        (
            args.throughput && args.role.is_some() && group(args).is_some(),
            "--throughput with --role measures only UDP: for other transports, leave out --role to run both \
             ends here",
        ),
        (
            args.throughput && args.delivery.has_file(),
            "--output writes samples, and --throughput takes no samples; use --json for its \
             results",
        ),
        (
            !args.method.is_empty() && !args.throughput,
            "--method needs --throughput",
        ),
        (
            args.bind.is_some() && !is_reflector,
            "--bind needs --role reflector",
        ),
        (
            is_reflector && has_source_options,
            "a reflector has no --to, --rate, --vs, --method, --run-for or --output; give them to its source",
        ),
        (
            is_reflector && args.throughput && args.buffer.is_some(),
            "--buffer must be given to the source, which also sets the buffers of the reflector",
        ),
        (
            args.why.is_asked() && (is_reflector || args.throughput),
            "--why explains round trips: give it to a source without --throughput",
        ),
        (
            is_reflector && args.port == 0,
            "a reflector needs a fixed port: give one with --port",
        ),
    ];
    let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
    broken.map(|(_, what)| what)
}

fn has_stopped() -> bool {
    watch::check().is_err()
}

/// Prints a message if stderr is a terminal. Returns a function that draws progress. The measurement calls
/// this function only between runs, because drawing would disturb them.
fn announce() -> impl Fn(Runs) {
    if io::stderr().is_terminal() {
        say("measuring; press Ctrl-C to end and keep the results so far");
    }
    let watch = OnceCell::new();
    move |runs| {
        let watch = watch.get_or_init(|| Watch::new("measuring", runs.total.into()).in_percent());
        // The error is ignored, because the measurement checks for cancellation itself.
        let _ = watch.reach(runs.done.into());
    }
}

fn round_trips(args: &Args, json: bool) -> Result<(), Failure> {
    let first = NetSetting {
        scheduling: args.scheduling.scheduling(),
        udp: sockets(args),
    };
    let mut settings: Vec<NetSetting> = std::iter::once(first).chain(args.vs.clone()).collect();
    // At 40,000 packets per second, the interval is 25 µs. The default timer slack of Linux makes timers up
    // to 50 µs late, so a slack of 1 ns is requested.
    if cfg!(target_os = "linux") {
        for setting in &mut settings {
            let slack = &mut setting.scheduling.timer_slack;
            slack.get_or_insert(Duration::from_nanos(1));
        }
    }
    differ(&settings, "--vs")?;
    let goal = args.sure.goal(settings.len() * carriers(args).len())?;
    let carriers = carriers(args);
    let paces = if args.rate.is_empty() {
        [10_000, 20_000, 30_000, 40_000]
            .into_iter()
            .filter_map(NonZeroU32::new)
            .map(Pace::PerSecond)
            .collect()
    } else {
        args.rate.clone()
    };
    let mut plan = RoundTripPlan {
        route: route(args)?,
        time: run_time(args, carriers.len() * paces.len() * settings.len()),
        carriers,
        paces,
        settings,
        size: args.size,
        warm_up: WARM_UP,
        patience: args.patience,
        with_peer: args.peers,
        plan: Plan::ONE_ROUND,
        late: None,
    };
    let destination = args.delivery.prepare()?;
    let clock = Clock::best();
    let why = (args.why).begin(|| Ok(plan.measure(&clock, &has_stopped, &|_| {})?.measurement))?;
    plan.plan = turns(args, goal);
    plan.late = why.as_ref().map(Why::late);
    let report = plan.measure(&clock, &has_stopped, &announce())?;
    let causes = why.map(|why| why.finish(&report.measurement)).transpose()?;
    let show = if json { Show::Json } else { Show::Text };
    let shown = Report::of_round_trips(&report).with_causes(causes.as_ref());
    destination.deliver(&shown, show)?;
    report.failed.map_or(Ok(()), |why| Err(Failure::Input(why)))
}

fn throughput(args: &Args, json: bool) -> Result<(), Failure> {
    let methods = if args.method.is_empty() {
        Method::ALL
            .iter()
            .copied()
            .filter(|method| carriers(args).contains(&method.carrier()))
            .collect()
    } else {
        deduplicate(args.method.iter().copied(), |known, method| {
            known.name == method.name
        })
    };
    let plan = ThroughputPlan {
        route: route(args)?,
        time: run_time(args, methods.len()),
        methods,
        scheduling: args.scheduling.scheduling(),
        size: args.size,
        buffer_bytes: Some(args.buffer.unwrap_or(LARGE_BUFFER) as usize),
        patience: args.patience,
        with_peer: args.peers,
        plan: turns(args, None),
    };
    let report = plan.measure(&Clock::best(), &has_stopped, &announce())?;
    measured::throughput(&report, &plan, json)?;
    match (report.end, report.failed) {
        (End::Stopped, _) => Err(Failure::Interrupted),
        (_, Some(why)) => Err(Failure::Input(why)),
        (_, None) => Ok(()),
    }
}

/// Removes duplicates. The first item of several equal ones is kept.
fn deduplicate<T>(items: impl IntoIterator<Item = T>, is_same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for one in items {
        if !all.iter().any(|known| is_same(known, &one)) {
            all.push(one);
        }
    }
    all
}

/// Returns a plan for the requested number of runs, or for the requested time.
fn turns(args: &Args, goal: Option<Goal>) -> Plan {
    let runs = match (goal, args.runs, args.time) {
        (Some(_), ..) => Goal::MAX_ROUNDS,
        (None, Some(runs), _) => runs,
        (None, None, Some(_)) => Comparison::MAX_PAIRS as u32,
        (None, None, None) => RUNS,
    };
    Plan {
        warm_up: 0,
        at_least: runs.min(RUNS),
        at_most: runs,
        time: args.time.unwrap_or(Duration::MAX),
        goal,
    }
}

/// Returns the duration of a run. `count` is the number of runs of a round. If the default duration is too long for the
/// total time, it is shortened.
fn run_time(args: &Args, count: usize) -> Duration {
    let shortened = |total: Duration| {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let runs = args.runs.unwrap_or(RUNS).min(RUNS).saturating_mul(count);
        (total / runs).saturating_sub(WARM_UP).clamp(SHORTEST, TIME)
    };
    (args.run_for).unwrap_or_else(|| args.time.map_or(TIME, shortened))
}

/// Returns the socket options.
fn sockets(args: &Args) -> UdpOptions {
    UdpOptions {
        buffer_bytes: args.buffer.map(|bytes| bytes as usize),
        dscp: args.dscp,
        busy_poll: args.busy_poll,
        spin: args.spin,
    }
}

/// Returns the selected transports of packets without duplicates.
fn carriers(args: &Args) -> Vec<Carrier> {
    let carriers = args.transport.iter().map(|transport| transport.carrier());
    deduplicate(carriers, |known, carrier| known == carrier)
}

/// Returns the multicast group, or `None` if no group is used. If PGM is measured, all transports use its
/// group.
fn group(args: &Args) -> Option<IpAddr> {
    let default = if args.ipv6 { GROUP_V6 } else { GROUP_V4 };
    let mut carriers = carriers(args).into_iter();
    let needs_one = carriers.any(Carrier::needs_group);
    args.group.or_else(|| needs_one.then_some(default))
}

fn family(args: &Args) -> Family {
    if group(args).map_or(args.ipv6, |group| group.is_ipv6()) {
        Family::V6
    } else {
        Family::V4
    }
}

/// Creates the test bed for a source and a reflector on this machine. It has network namespaces if they can
/// be created. Otherwise it uses the loopback, unless `--self-test` forbids this.
fn testbed(args: &Args) -> Result<Testbed, Failure> {
    if args.loopback {
        return Ok(Testbed::loopback());
    }
    match Testbed::namespaces() {
        Ok(testbed) => Ok(testbed),
        Err(error) if args.self_test => Err(error.into()),
        Err(error) => {
            say(&format!("{error}; using the loopback instead"));
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
            let what = "PGM needs a group, not one machine: give --group ADDRESS instead of --to";
            Err(Failure::Input(what.to_owned()))
        }
        (None, None) => {
            let what = "a source needs a reflector: give --to HOST or --group ADDRESS";
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

/// Resolves a host name or address with an optional port.
fn resolve(to: &str, args: &Args) -> Result<SocketAddr, Failure> {
    let addresses = match to.parse::<IpAddr>() {
        Ok(address) => Ok(vec![(address, args.port).into()]),
        // The text is an IPv6 address in brackets with a port, or a name or IPv4 address with a port.
        Err(_) if to.contains("]:") || to.matches(':').count() == 1 => {
            to.to_socket_addrs().map(|all| all.collect::<Vec<_>>())
        }
        Err(_) => (to, args.port).to_socket_addrs().map(|all| all.collect()),
    };
    let addresses =
        addresses.map_err(|error| Failure::Input(format!("cannot resolve {to}: {error}")))?;
    let of_family = |address: &&SocketAddr| address.is_ipv6() == args.ipv6;
    (addresses.iter().find(of_family))
        .or(addresses.first())
        .copied()
        .ok_or_else(|| Failure::Input(format!("cannot resolve {to}: it has no address")))
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
        .ok_or_else(|| "expected packets per second, such as 500 or 20k, or ping-pong".to_owned())
}

/// Parses a DSCP value by number or name (RFC 2474, 2597, 3246).
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
    Method::from_name(name).ok_or_else(|| format!("expected one of {}", names().join(", ")))
}

fn spin(text: &str) -> Result<Duration, String> {
    let time_ns = time(text)?;
    if time_ns <= MAX_SPIN {
        Ok(time_ns)
    } else {
        Err(format!(
            "expected at most {MAX_SPIN:?}: a thread that spins longer blocks its CPU for other threads"
        ))
    }
}

/// Parses the comma-separated words of `--vs`.
fn setting(text: &str) -> Result<NetSetting, String> {
    let mut setting = NetSetting::default();
    let mut scheduling = Scheduling::default();
    for word in text.split(',').map(str::trim) {
        match word.split_once(':') {
            Some(("dscp", mark)) => setting.udp.dscp = Some(dscp(mark)?),
            Some(("spin", text)) => setting.udp.spin = Some(spin(text)?),
            Some(("busy-poll", text)) => setting.udp.busy_poll = Some(time(text)?),
            _ if take_word(word, &mut scheduling)? => {}
            _ => {
                return Err(format!(
                    "unknown word `{word}`; use dscp:MARK, spin:TIME, busy-poll:TIME, {SCHEDULING_WORDS}"
                ));
            }
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

    use clap::Parser;

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

    /// Tests names and numbers of DSCP values from the IANA registry.
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

    /// Program with the options of this command.
    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn args(options: &[&str]) -> Args {
        Program::try_parse_from(["net"].iter().chain(options))
            .unwrap()
            .args
    }

    /// Four rates with six runs each are 24 runs, each with a warm-up.
    #[test]
    fn a_total_time_is_divided_among_all_runs() {
        let run = run_time(&args(&["--for", "4s"]), 4) + WARM_UP;
        let all = (run * 24).as_secs_f64();
        assert!((3.99..=4.0).contains(&all), "{all} s");
        for (options, expected_ms) in [
            // A run has at least 50 ms.
            (&["--for", "100ms"][..], 50),
            // A long total time makes more runs, not longer ones.
            (&["--for", "60s"], 1_000),
            (&[], 1_000),
            // 2 runs of 4 rates: 4 s / 8 without the warm-up of 100 ms.
            (&["--for", "4s", "--runs", "2"], 400),
            (&["--for", "4s", "--run-for", "300ms"], 300),
        ] {
            let run = run_time(&args(options), 4);
            assert_eq!(run.as_millis(), expected_ms, "{options:?}");
        }
    }

    #[test]
    fn no_new_runs_start_after_the_total_time() {
        let plan = turns(&args(&["--for", "4s"]), None);
        assert_eq!(plan.time, Duration::from_secs(4));
        // At least six runs are needed for a comparison. More follow if the time allows them.
        assert_eq!(plan.at_least, 6);
        assert!(plan.at_most > 6, "{plan:?}");
        let plan = turns(&args(&["--for", "4s", "--runs", "2"]), None);
        assert_eq!((plan.at_least, plan.at_most), (2, 2));
        assert_eq!(plan.time, Duration::from_secs(4));
        let plan = turns(&args(&[]), None);
        assert_eq!((plan.at_least, plan.at_most), (6, 6));
        assert_eq!(plan.time, Duration::MAX);
    }
}
