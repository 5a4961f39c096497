//! Measurement of round trips at several rates and under several settings, in turns. A peer (sockperf) can be
//! measured too.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::peers::{self, PeerError, PeerRoundTrips};
use super::source::cost_of_a_sample;
use super::{
    Carrier, Family, NetError, Pace, Patience, Place, ReflectorCounts, Repairs, RoundTrips,
    RunContext, RunEnd, Runs, Side, Tally, Testbed, Traffic, Transport, Trip, Udp, UdpGrants,
    UdpOptions, measure, reflect,
};
use crate::clock::Since;
use crate::compare::{Variant, references};
use crate::{
    Clock, ClockFacts, Comparison, End, Grant, Incomparable, LateSamples, Machine, Measurement,
    Now, Plan, Probe, Sample, SampleOutcome, Scheduling, Series, SettingGrants, Stop, Turn,
    Unavailable, compare,
};

/// Location of the reflector.
#[derive(Debug)]
pub enum Route {
    /// Reflector on another machine, with the addresses that the source uses.
    There(Place),
    /// Reflector on this machine.
    Here {
        /// Location of both ends.
        testbed: Testbed,
        /// Address family.
        family: Family,
        /// Multicast group; `None` if the ends address each other.
        group: Option<SocketAddr>,
    },
}

/// Settings under which packets are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetSetting {
    /// Scheduling requests of each thread that sends or receives. If both ends are on this machine, the
    /// requests apply to the threads of both ends.
    pub scheduling: Scheduling,
    /// Socket options.
    pub udp: UdpOptions,
}

/// Plan of a round-trip measurement.
#[derive(Debug)]
pub struct RoundTripPlan {
    /// Location of the reflector.
    pub route: Route,
    /// Carriers of the packets.
    pub carriers: Vec<Carrier>,
    /// Paces of sending.
    pub paces: Vec<Pace>,
    /// Settings to measure. Every pace is measured under each setting.
    pub settings: Vec<NetSetting>,
    /// Payload size in bytes.
    pub size: usize,
    /// Length of a run without its warm-up.
    pub time: Duration,
    /// Length of the warm-up of each run, whose packets do not count.
    pub warm_up: Duration,
    /// Maximum time without an echo, after which the reflector counts as silent.
    pub patience: Duration,
    /// True if sockperf is measured too, in turns with the other methods. In this case, both ends must be on
    /// this machine.
    pub with_peer: bool,
    /// Number and order of the runs.
    pub plan: Plan,
    /// Limit of round-trip times, and the function that receives longer round trips; `None` if long round trips are not
    /// reported.
    pub late: Option<Arc<LateSamples>>,
}

/// Fates of the packets of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Fates {
    /// Name of the method, as in [`Series::method`].
    pub method: String,
    /// Name of the setting, as in [`Series::setting`].
    pub setting: String,
    /// Number of the run, from 0.
    pub run: u32,
    /// Numbers of packets that were sent, lost, duplicated and so on.
    pub tally: Tally,
    /// Each DSCP mark with which packets reached the reflector, and the number of packets with this mark. The
    /// list is empty if the reflector's system does not report marks.
    pub seen_dscp: Vec<(u8, u64)>,
    /// Granted receive buffer of the source, in bytes; `None` if unknown.
    pub receive_buffer: Option<usize>,
    /// Reason why the run ended.
    pub ended: RunEnd,
    /// Counts of the reflector, if it ran on this machine.
    pub reflected: Option<ReflectorCounts>,
    /// Repairs, if the carrier repairs losses.
    pub repairs: Option<Repairs>,
}

/// Result of the peer (sockperf) in one run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PeerRun {
    /// Name of laglab's method with the same traffic.
    pub method: String,
    /// Number of the run, from 0.
    pub run: u32,
    /// Round trips that the peer measured.
    pub trips: PeerRoundTrips,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct RoundTripReport {
    /// Samples and conditions.
    pub measurement: Measurement,
    /// Fates of the packets, per series.
    pub fates: Vec<Fates>,
    /// Results of the peer.
    pub peer: Vec<PeerRun>,
    /// Error that ended the measurement early. The earlier results are kept.
    pub failed: Option<String>,
}

impl fmt::Display for NetSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scheduling)?;
        for request in self.udp.requests().into_iter().flatten() {
            write!(f, ", {request}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::PerSecond(rate) => write!(f, "{rate}/s"),
            Pace::PingPong => f.write_str("ping-pong"),
        }
    }
}

impl RoundTripReport {
    /// Compares the medians of one of laglab's methods with the peer's medians, run by run, under the first
    /// setting. If the ratio is below 1, laglab's medians are lower.
    ///
    /// # Errors
    /// Returns an error if there are too few common runs.
    pub fn compared_to_peer(&self, method: &str) -> Result<Comparison, Incomparable> {
        // The peer uses UDP, so it is compared under the first setting that applies to UDP.
        let is_of = |carrier: &String| carrier == Carrier::Udp.name();
        let mut settings = self.measurement.settings.iter();
        let first = settings.find(|entry| entry.of.is_empty() || entry.of.iter().any(is_of));
        let ours = (self.measurement.series.iter())
            .filter(|series| series.method == method)
            .filter(|series| first.is_some_and(|first| first.setting == series.setting));
        let pairs: Vec<(f64, f64)> = ours
            .filter_map(|series| {
                let theirs = (self.peer.iter())
                    .find(|peer| peer.method == method && peer.run == series.run)?;
                let median = series.percentiles().median()?;
                Some((median as f64, theirs.trips.p50_ns as f64))
            })
            .collect();
        compare(&pairs)
    }
}

impl RoundTripPlan {
    /// Measures until the plan is done or `stop` returns true, and reports progress.
    ///
    /// # Errors
    /// Returns an error if nothing could be measured. A later error ends the measurement. The report contains
    /// the later error and the results before it.
    pub fn measure(
        &self,
        clock: &Clock,
        stop: Stop<'_>,
        tell: &dyn Fn(Runs),
    ) -> Result<RoundTripReport, NetError> {
        let start_ns = clock.now_ns();
        let mut report = self.empty_report(clock);
        let carriers = self.carriers(&mut report.measurement)?;
        let peers = self.count_peers(&mut report.measurement);
        let per_pace = self.settings.len() * carriers.len();
        let ours = self.paces.len() * per_pace;
        let variants = (0..ours).map(|number| Variant {
            load: number / per_pace,
            method: number % carriers.len(),
            setting: number % per_pace / carriers.len(),
        });
        let mut references = references(&variants.collect::<Vec<_>>());
        // The peer has no reference here, because a separate table compares the peer.
        references.resize(ours + peers, None);
        let has_failed = AtomicBool::new(false);
        let shall_end = || stop() || has_failed.load(Ordering::Relaxed);
        let mut turns = Turns {
            plan: self,
            clock,
            start_ns,
            stop: &shall_end,
            has_failed: &has_failed,
            grants: vec![None; per_pace],
            carriers,
            report,
            error: None,
        };
        let mut runs = Runs::new(&self.plan, ours + peers);
        let end = self
            .plan
            .carry_out(&references, clock, &shall_end, |turn| {
                runs.next(tell);
                Ok::<_, NetError>(match turn.method.checked_sub(ours) {
                    Some(peer) => turns.run_peer(self.paces[peer], turn.run),
                    None => turns.run_method(turn),
                })
            })?;
        turns.into_report(end, stop)
    }

    fn empty_report(&self, clock: &Clock) -> RoundTripReport {
        RoundTripReport {
            measurement: Measurement {
                probe: Probe::Net,
                machine: Machine::detect(),
                clock: ClockFacts::measure(clock, clock.source().name()),
                sample_cost_ns: Some(cost_of_a_sample(clock)),
                settings: Vec::new(),
                unavailable: Vec::new(),
                series: Vec::new(),
                goal: self.plan.goal,
                end: End::Rounds,
                notes: self.notes(),
            },
            fates: Vec::new(),
            peer: Vec::new(),
            failed: None,
        }
    }

    /// Returns the number of paces at which the peer is measured. If the peer is requested but unavailable, adds it to
    /// the unavailable methods in `measurement`.
    fn count_peers(&self, measurement: &mut Measurement) -> usize {
        if !self.with_peer {
            return 0;
        }
        let Some(why) = self.peer_unavailable() else {
            return self.paces.len();
        };
        measurement.unavailable.push(Unavailable {
            method: "sockperf".to_owned(),
            why,
        });
        0
    }

    /// Returns the grants of each measured setting by carrier. Carriers with the same grants share an entry, which
    /// names them. If all measured carriers share one entry, its list of names is empty.
    fn granted(&self, carriers: &[Carrier], grants: &[Option<Vec<Grant>>]) -> Vec<SettingGrants> {
        let mut all = Vec::new();
        for (setting, grants) in self.settings.iter().zip(grants.chunks(carriers.len())) {
            let mut entries: Vec<SettingGrants> = Vec::new();
            for (carrier, grants) in carriers.iter().zip(grants) {
                let Some(grants) = grants else { continue };
                let carrier_name = carrier.name().to_owned();
                match entries.iter_mut().find(|entry| entry.grants == *grants) {
                    Some(entry) => entry.of.push(carrier_name),
                    None => entries.push(SettingGrants {
                        setting: Grant::describe(setting, grants),
                        of: vec![carrier_name],
                        grants: grants.clone(),
                    }),
                }
            }
            if let [entry] = &mut entries[..] {
                entry.of.clear();
            }
            all.append(&mut entries);
        }
        all
    }

    fn notes(&self) -> Vec<String> {
        match &self.route {
            Route::There(_) => Vec::new(),
            Route::Here { testbed, .. } => vec![format!(
                "Both ends are on this machine: {}. No network card or cable is involved.",
                testbed.describe()
            )],
        }
    }

    /// Returns the available carriers. Adds the other carriers to the unavailable methods in `measurement`.
    /// Also adds notes about the libraries in use.
    ///
    /// # Errors
    /// Returns the first error if no carrier is available.
    fn carriers(&self, measurement: &mut Measurement) -> Result<Vec<Carrier>, NetError> {
        let testbed = match &self.route {
            Route::There(_) => None,
            Route::Here { testbed, .. } => Some(testbed),
        };
        let mut carriers = Vec::new();
        let mut first_error = None;
        for &carrier in &self.carriers {
            let name = carrier.name();
            match carrier.check(self.size, testbed) {
                Ok(library) => {
                    let note = library.map(|library| format!("{name} uses {library}."));
                    measurement.notes.extend(note);
                    carriers.push(carrier);
                }
                Err(error) => {
                    measurement.unavailable.push(Unavailable {
                        method: name.to_owned(),
                        why: error.to_string(),
                    });
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error.filter(|_| carriers.is_empty()) {
            Some(error) => Err(error),
            None => Ok(carriers),
        }
    }

    /// Returns the reason why the peer cannot be measured, if there is one.
    fn peer_unavailable(&self) -> Option<String> {
        match &self.route {
            Route::There(_) => Some("it needs both ends on this machine".to_owned()),
            Route::Here {
                testbed,
                group: Some(_),
                ..
            } if testbed.is_loopback() => {
                Some("with a group it needs network namespaces".to_owned())
            }
            Route::Here {
                family: Family::V6,
                group: Some(_),
                ..
            } => Some("it supports IPv4 groups only".to_owned()),
            Route::Here { .. } if peers::find("sockperf").is_none() => {
                Some(PeerError::Absent("sockperf").to_string())
            }
            Route::Here { .. } => None,
        }
    }

    fn traffic(&self, pace: Pace) -> Traffic {
        Traffic {
            pace,
            size: self.size,
            time: self.time,
            warm_up: self.warm_up,
            patience: self.patience,
        }
    }

    fn run_peer(&self, pace: Pace, stop: Stop<'_>) -> Result<PeerRoundTrips, PeerError> {
        match &self.route {
            Route::Here {
                testbed,
                family,
                group,
            } => {
                let group = group.map(|group| group.ip());
                peers::round_trips(testbed, *family, group, &self.traffic(pace), stop)
            }
            Route::There(_) => Err(PeerError::Absent("sockperf")),
        }
    }

    /// Makes one run.
    fn exchange(
        &self,
        carrier: Carrier,
        pace: Pace,
        setting: &NetSetting,
        clock: &Clock,
        stop: Stop<'_>,
    ) -> Result<Exchange, NetError> {
        let context = RunContext {
            clock,
            scheduling: &setting.scheduling,
            stop,
        };
        let traffic = self.traffic(pace);
        let (testbed, family, group) = match &self.route {
            Route::There(place) => {
                let (source, sockets) =
                    carrier.open(Side::Near, place, &setting.udp, &setting.scheduling)?;
                let to = format!("{place} over {}", carrier.name());
                let trips = measure(source, &to, &traffic, context)?;
                return Ok(Exchange {
                    trips,
                    sockets,
                    reflected: None,
                });
            }
            Route::Here {
                testbed,
                family,
                group,
            } => (testbed, *family, *group),
        };
        let open = |side, place| carrier.open(side, &place, &setting.udp, &setting.scheduling);
        let (near, mut reflector) = match group {
            Some(group) => {
                let place = |side| {
                    let mut interface = testbed.interface(side, family)?;
                    if carrier == Carrier::Pgm {
                        interface.addresses = vec![testbed.member(side, group)?];
                    }
                    let interface = Some(interface);
                    Ok::<_, NetError>(Place::Group { group, interface })
                };
                let (reflector, _) =
                    testbed.on(Side::Far, || open(Side::Far, place(Side::Far)?))??;
                (place(Side::Near)?, reflector)
            }
            None if carrier.needs_group() => return Err(NetError::NoGroup),
            None => {
                let far = Place::Answering((testbed.address(Side::Far, family), 0).into());
                let (reflector, _) = testbed.on(Side::Far, || Udp::open(&far, &setting.udp))??;
                let at = (reflector.local_address())
                    .map_err(NetError::context("querying the reflector's address"))?;
                (Place::Peer(at), Box::new(reflector) as Box<dyn Transport>)
            }
        };
        let to = near.to_string();
        let (source, sockets) = testbed.on(Side::Near, || open(Side::Near, near))??;
        let is_over = AtomicBool::new(false);
        let has_ended = || is_over.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let reflecting = scope.spawn(|| {
                setting.scheduling.apply();
                reflect(&mut *reflector, Patience::default(), &has_ended)
            });
            let trips = measure(source, &to, &traffic, context);
            is_over.store(true, Ordering::Relaxed);
            let reflected = reflecting.join().expect("the reflector does not panic");
            Ok(Exchange {
                trips: trips?,
                sockets,
                reflected: Some(reflected?),
            })
        })
    }
}

/// State of a measurement while its runs take turns.
struct Turns<'a> {
    plan: &'a RoundTripPlan,
    clock: &'a Clock,
    start_ns: i64,
    /// Returns true if the user stops the measurement or if a run has failed.
    stop: Stop<'a>,
    has_failed: &'a AtomicBool,
    carriers: Vec<Carrier>,
    /// Grants per setting and carrier.
    grants: Vec<Option<Vec<Grant>>>,
    report: RoundTripReport,
    /// Error of the run that failed.
    error: Option<NetError>,
}

impl Turns<'_> {
    /// Remembers the error of a run and ends the measurement.
    fn fail(&mut self, error: NetError) {
        self.error = Some(error);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Makes a run of the peer, and returns its median in nanoseconds. `run` is `None` for a warm-up.
    fn run_peer(&mut self, pace: Pace, run: Option<u32>) -> Option<f64> {
        let method = format!("{} {pace}", Carrier::Udp.name());
        match self.plan.run_peer(pace, self.stop) {
            Ok(trips) => {
                if let Some(run) = run {
                    self.report.peer.push(PeerRun { method, run, trips });
                }
                Some(trips.p50_ns as f64)
            }
            Err(PeerError::Net(error)) => {
                self.fail(error);
                None
            }
            // The other methods are measured even if the peer fails.
            Err(error) => {
                let note = format!("peer of {method}, run {}: {error}", run.unwrap_or(0));
                self.report.measurement.notes.push(note);
                None
            }
        }
    }

    /// Makes a run of one of laglab's methods, and returns its median in nanoseconds.
    fn run_method(&mut self, turn: Turn) -> Option<f64> {
        let plan = self.plan;
        let run = turn.run.unwrap_or(0);
        // The methods of one pace are adjacent, because their runs are compared with each other.
        let pace = plan.paces[turn.method / self.grants.len()];
        let number = turn.method % self.grants.len();
        let setting = &plan.settings[number / self.carriers.len()];
        let carrier = self.carriers[number % self.carriers.len()];
        let method = format!("{} {pace}", carrier.name());
        let exchange = match plan.exchange(carrier, pace, setting, self.clock, self.stop) {
            Ok(exchange) => exchange,
            Err(error) => {
                self.fail(error);
                return None;
            }
        };
        // The name of the setting contains the grants of the first run. All runs therefore have the
        // same name.
        let granted = self.grants[number].get_or_insert_with(|| exchange.grants());
        let setting = Grant::describe(setting, granted);
        let mut series = Series::new(Probe::Net, &method, &setting, run);
        series.size_bytes = Some(plan.size as u64);
        series.interval_ns = pace.interval_ns();
        series.samples = (exchange.trips.trips.iter())
            .map(|trip| sample(trip, self.start_ns))
            .collect();
        if let Some(late) = plan.late.as_ref().filter(|_| turn.run.is_some()) {
            let since = Since {
                clock: self.clock,
                start_ns: self.start_ns,
            };
            late.report_run(&series, None, &since);
        }
        let is_silent = exchange.trips.ended == RunEnd::Silent;
        let median = series.percentiles().median();
        // If the reflector fell silent during a warm-up, the report also contains that warm-up.
        if turn.run.is_some() && !series.samples.is_empty() || is_silent {
            self.report.fates.push(exchange.fates(&series));
            self.report.measurement.series.push(series);
        }
        if is_silent {
            self.has_failed.store(true, Ordering::Relaxed);
            self.report.failed = Some(exchange.trips.describe_silence(run, &method));
        }
        median.map(|ns| ns as f64)
    }

    /// Returns the report of the measurement, whose runs ended for the reason `end`.
    fn into_report(mut self, end: End, stop: Stop<'_>) -> Result<RoundTripReport, NetError> {
        if let Some(error) = self.error {
            if self.report.measurement.series.is_empty() {
                return Err(error);
            }
            self.report.failed = Some(format!("the measurement ended early: {error}"));
        }
        let mut report = self.report;
        // After an error, `carry_out` may return `Stopped`, although the user did not stop the measurement.
        report.measurement.end = match &report.failed {
            Some(_) if !stop() => End::Rounds,
            _ => end,
        };
        report.measurement.notes.extend(report.failed.clone());
        report.measurement.settings = self.plan.granted(&self.carriers, &self.grants);
        let sentences = report.sentences();
        report.measurement.notes.extend(sentences);
        Ok(report)
    }
}

impl RoundTrips {
    /// Returns a sentence about the reflector that fell silent in a run.
    fn describe_silence(&self, run: u32, method: &str) -> String {
        let why = match &self.refused {
            Some(refusal) => format!(
                "the system refused all further packets in run {run} of {method} ({refusal}); check the \
                 interface and the route of this machine"
            ),
            None => format!(
                "the reflector fell silent in run {run} of {method}; check whether it still runs"
            ),
        };
        format!("{why}; earlier results are kept, and packets in flight count as lost")
    }
}

/// Result of one run.
struct Exchange {
    trips: RoundTrips,
    sockets: UdpGrants,
    reflected: Option<ReflectorCounts>,
}

impl Exchange {
    fn grants(&self) -> Vec<Grant> {
        [&self.trips.grants[..], &self.sockets.others].concat()
    }

    fn fates(&self, series: &Series) -> Fates {
        let classes = &self.trips.seen_classes;
        Fates {
            method: series.method.clone(),
            setting: series.setting.clone(),
            run: series.run,
            tally: self.trips.tally,
            seen_dscp: classes
                .iter()
                .map(|(class, count)| (class >> 2, *count))
                .collect(),
            receive_buffer: self.sockets.buffers.receive,
            ended: self.trips.ended,
            reflected: self.reflected,
            repairs: self.trips.repairs,
        }
    }
}

fn sample(trip: &Trip, start_ns: i64) -> Sample {
    let intended_ns = trip.intended_ns - start_ns;
    match (trip.sent_ns, trip.back_ns) {
        (Some(sent_ns), Some(back_ns)) => {
            Sample::timed(intended_ns, sent_ns - start_ns, back_ns - start_ns)
        }
        (Some(sent_ns), None) => {
            Sample::without_end(intended_ns, sent_ns - start_ns, SampleOutcome::Lost)
        }
        (None, _) => Sample::without_end(intended_ns, intended_ns, SampleOutcome::Failed),
    }
}
