//! Round trips at several rates and under several settings, in turns; and a peer's beside them.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::peers::{self, PeerError, PeerRoundTrips};
use super::source::cost_of_a_sample;
use super::{
    Around, Carrier, Ended, Family, NetError, Pace, Patience, Place, Reflected, Repairs,
    RoundTrips, Runs, Side, Tally, Testbed, Traffic, Transport, Trip, Udp, UdpGrants, UdpOptions,
    measure, reflect,
};
use crate::{
    Clock, ClockFacts, Comparison, End, Grant, Incomparable, Machine, Measurement, Now, Plan,
    Probe, Sample, SampleOutcome, Scheduling, Series, SettingGrants, Stop, Unavailable, compare,
};

/// Where the reflector is.
#[derive(Debug)]
pub enum Route {
    /// It runs elsewhere.
    There(Place),
    /// It is run here.
    Here {
        /// Where both ends are.
        testbed: Testbed,
        /// Which addresses they use.
        family: Family,
        /// The group that they talk with; each other if none.
        group: Option<SocketAddr>,
    },
}

/// What is set while packets are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetSetting {
    /// What each thread asks of the scheduler; of both ends, where both are here.
    pub scheduling: Scheduling,
    /// What is asked of the sockets.
    pub udp: UdpOptions,
}

/// What is to be measured.
#[derive(Debug)]
pub struct RoundTripPlan {
    /// Where the reflector is.
    pub route: Route,
    /// What carries the packets: one run each.
    pub carriers: Vec<Carrier>,
    /// How fast packets are sent: one run each.
    pub paces: Vec<Pace>,
    /// Every pace is measured under each.
    pub settings: Vec<NetSetting>,
    /// The size of a packet, in bytes of payload.
    pub size: usize,
    /// How long a run is, without its warm-up.
    pub time: Duration,
    /// How long packets are sent before they count, in each run.
    pub warm_up: Duration,
    /// How long a reflector may be silent.
    pub patience: Duration,
    /// Whether sockperf is measured in turns with it; only where both ends are here.
    pub with_peer: bool,
    /// How many runs.
    pub plan: Plan,
}

/// What became of the packets of one run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Fates {
    /// The method, as [`Series::method`] has it.
    pub method: String,
    /// The setting, as [`Series::setting`] has it.
    pub setting: String,
    /// Number of the run, from 0.
    pub run: u32,
    /// How many packets had which fate.
    pub tally: Tally,
    /// With which DSCP packets reached the reflector, and how many did; empty where its system does
    /// not say.
    pub seen_dscp: Vec<(u8, u64)>,
    /// The receive buffer that the source was granted, in bytes; none if that is not known.
    pub receive_buffer: Option<usize>,
    /// Why the run ended.
    pub ended: Ended,
    /// What the reflector saw, where it was run here.
    pub reflected: Option<Reflected>,
    /// What was sent again, by a carrier that does that.
    pub repairs: Option<Repairs>,
}

/// What a peer measured in one run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PeerRun {
    /// Our method whose traffic it was given.
    pub beside: String,
    /// Number of the run, from 0.
    pub run: u32,
    /// What it says.
    pub trips: PeerRoundTrips,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct RoundTripReport {
    /// The samples, and what they were taken under.
    pub measurement: Measurement,
    /// What became of the packets, of each series.
    pub fates: Vec<Fates>,
    /// What the peer measured.
    pub peer: Vec<PeerRun>,
    /// What ended it before its time, other than the user; what was measured until then is here.
    pub failed: Option<String>,
}

impl fmt::Display for NetSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scheduling)?;
        for wish in self.udp.wishes().into_iter().flatten() {
            write!(f, ", {wish}")?;
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
    /// How our medians compare to the peer's, run by run, of one method under the first setting. A
    /// ratio below 1 says that ours are lower.
    ///
    /// # Errors
    /// If there are too few runs that both have.
    pub fn compared_to_peer(&self, method: &str) -> Result<Comparison, Incomparable> {
        // The peer is measured beside UDP alone.
        let is_of = |of: &String| of == Carrier::Udp.name();
        let mut settings = self.measurement.settings.iter();
        let first = settings.find(|entry| entry.of.is_empty() || entry.of.iter().any(is_of));
        let ours = (self.measurement.series.iter())
            .filter(|series| series.method == method)
            .filter(|series| first.is_some_and(|first| first.setting == series.setting));
        let pairs: Vec<(f64, f64)> = ours
            .filter_map(|series| {
                let theirs = (self.peer.iter())
                    .find(|peer| peer.beside == method && peer.run == series.run)?;
                let median = series.percentiles().median()?;
                Some((median as f64, theirs.trips.p50_ns as f64))
            })
            .collect();
        compare(&pairs)
    }
}

impl RoundTripPlan {
    /// Measures until it is enough or somebody wants it to stop, and tells how far it is.
    ///
    /// # Errors
    /// If nothing could be measured. What goes wrong later ends it, is said in the notes, and what
    /// was measured is kept.
    pub fn measure(
        &self,
        clock: &Clock,
        stop: Stop<'_>,
        tell: &dyn Fn(Runs),
    ) -> Result<RoundTripReport, NetError> {
        let start_ns = clock.now_ns();
        let mut report = RoundTripReport {
            measurement: Measurement {
                probe: Probe::Net,
                machine: Machine::here(),
                clock: ClockFacts::of(clock, clock.source().name()),
                sample_cost_ns: Some(cost_of_a_sample(clock)),
                settings: Vec::new(),
                unavailable: Vec::new(),
                series: Vec::new(),
                end: End::Rounds,
                notes: self.notes(),
            },
            fates: Vec::new(),
            peer: Vec::new(),
            failed: None,
        };
        let carriers = self.carriers(&mut report.measurement)?;
        // What is compared is measured one after the other: all of a pace.
        let of_a_pace = self.settings.len() * carriers.len();
        // Of each setting by each carrier.
        let mut grants: Vec<Option<Vec<Grant>>> = vec![None; of_a_pace];
        let ours = self.paces.len() * of_a_pace;
        let mut peers = match self.with_peer {
            true => self.paces.len(),
            false => 0,
        };
        if peers > 0
            && let Some(why) = self.lacks_peer()
        {
            report.measurement.unavailable.push(Unavailable {
                method: "sockperf".to_owned(),
                why,
            });
            peers = 0;
        }
        let has_failed = AtomicBool::new(false);
        let shall_end = || stop() || has_failed.load(Ordering::Relaxed);
        let failed: RefCell<Option<NetError>> = RefCell::new(None);
        let fail = |error| {
            *failed.borrow_mut() = Some(error);
            has_failed.store(true, Ordering::Relaxed);
            Ok::<_, NetError>(None)
        };
        let mut runs = Runs::of(&self.plan, ours + peers);
        let end = self
            .plan
            .carry_out(ours + peers, clock, &shall_end, |turn| {
                runs.next(tell);
                let run = turn.run.unwrap_or(0);
                if let Some(peer) = turn.method.checked_sub(ours) {
                    let pace = self.paces[peer];
                    let method = format!("{} {pace}", Carrier::Udp.name());
                    let trips = match self.ask_peer(pace, &shall_end) {
                        Ok(trips) => trips,
                        Err(PeerError::Net(error)) => return fail(error),
                        // Ours are measured all the same.
                        Err(error) => {
                            let note = format!("beside {method}, run {run}: {error}");
                            report.measurement.notes.push(note);
                            return Ok(None);
                        }
                    };
                    if turn.run.is_some() {
                        let beside = method;
                        report.peer.push(PeerRun { beside, run, trips });
                    }
                    return Ok(Some(trips.p50_ns as f64));
                }
                let pace = self.paces[turn.method / of_a_pace];
                let number = turn.method % of_a_pace;
                let setting = &self.settings[number / carriers.len()];
                let carrier = carriers[number % carriers.len()];
                let method = format!("{} {pace}", carrier.name());
                let exchange = match self.exchange(carrier, pace, setting, clock, &shall_end) {
                    Ok(exchange) => exchange,
                    Err(error) => return fail(error),
                };
                // What it is called is what it was when it was first measured.
                let granted = grants[number].get_or_insert_with(|| exchange.grants());
                let setting = Grant::outcome_of(setting, granted);
                let mut series = Series::new(Probe::Net, &method, &setting, run);
                series.size_bytes = Some(self.size as u64);
                series.interval_ns = pace.interval_ns();
                series.samples = (exchange.trips.trips.iter())
                    .map(|trip| sample(trip, start_ns))
                    .collect();
                let is_silent = exchange.trips.ended == Ended::Silent;
                let median = series.percentiles().median();
                // Of a warm-up that found the reflector dead the news are worth keeping.
                if turn.run.is_some() && !series.samples.is_empty() || is_silent {
                    report.fates.push(exchange.fates(&series));
                    report.measurement.series.push(series);
                }
                if is_silent {
                    has_failed.store(true, Ordering::Relaxed);
                    let why = match &exchange.trips.refused {
                        Some(said) => format!(
                            "nothing could be sent any more in run {run} of {method} ({said}): look at the \
                             interface and the route here"
                        ),
                        None => format!(
                            "the reflector fell silent in run {run} of {method}: look whether it still runs"
                        ),
                    };
                    report.failed = Some(format!(
                        "{why}; what was measured until then is kept, and what was under way counts as lost"
                    ));
                }
                Ok(median.map(|ns| ns as f64))
            })?;
        if let Some(error) = failed.into_inner() {
            if report.measurement.series.is_empty() {
                return Err(error);
            }
            report.failed = Some(format!("it ended early: {error}"));
        }
        // Then the user did not stop it.
        report.measurement.end = match &report.failed {
            Some(_) if !stop() => End::Rounds,
            _ => end,
        };
        report.measurement.notes.extend(report.failed.clone());
        report.measurement.settings = self.granted(&carriers, &grants);
        let sentences = report.sentences();
        report.measurement.notes.extend(sentences);
        Ok(report)
    }

    /// What was granted: of each setting by each carrier, of those that were measured. Carriers that were
    /// granted the same share an entry, which names them unless it is of all.
    fn granted(&self, carriers: &[Carrier], grants: &[Option<Vec<Grant>>]) -> Vec<SettingGrants> {
        let mut all = Vec::new();
        for (setting, grants) in self.settings.iter().zip(grants.chunks(carriers.len())) {
            let mut entries: Vec<SettingGrants> = Vec::new();
            for (carrier, grants) in carriers.iter().zip(grants) {
                let Some(grants) = grants else { continue };
                let of = carrier.name().to_owned();
                match entries.iter_mut().find(|entry| entry.grants == *grants) {
                    Some(entry) => entry.of.push(of),
                    None => entries.push(SettingGrants {
                        setting: Grant::outcome_of(setting, grants),
                        of: vec![of],
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
                "Both ends are here: {}. No network card and no cable took part.",
                testbed.describe()
            )],
        }
    }

    /// The carriers that are there; the others are entered as not available, and whose libraries are
    /// used is noted.
    ///
    /// # Errors
    /// If none is there.
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
                    let note = library.map(|library| format!("{name} is that of {library}."));
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

    /// Why a peer cannot be measured beside, if it cannot.
    fn lacks_peer(&self) -> Option<String> {
        match &self.route {
            Route::There(_) => Some("it is measured only where both ends are here".to_owned()),
            Route::Here {
                testbed,
                group: Some(_),
                ..
            } if testbed.is_loopback() => {
                Some("through a group it is measured only between network namespaces".to_owned())
            }
            Route::Here {
                family: Family::V6,
                group: Some(_),
                ..
            } => Some("it knows groups of IPv4 only".to_owned()),
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

    fn ask_peer(&self, pace: Pace, stop: Stop<'_>) -> Result<PeerRoundTrips, PeerError> {
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

    /// One run.
    fn exchange(
        &self,
        carrier: Carrier,
        pace: Pace,
        setting: &NetSetting,
        clock: &Clock,
        stop: Stop<'_>,
    ) -> Result<Exchange, NetError> {
        let around = Around {
            clock,
            scheduling: &setting.scheduling,
            stop,
        };
        let traffic = self.traffic(pace);
        let (testbed, family, group) = match &self.route {
            Route::There(place) => {
                let (source, sockets) =
                    carrier.open(Side::Near, place, &setting.udp, &setting.scheduling)?;
                let to = format!("{place} by {}", carrier.name());
                let trips = measure(source, &to, &traffic, around)?;
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
                    .map_err(NetError::while_doing("asking for the reflector's address"))?;
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
            let trips = measure(source, &to, &traffic, around);
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

/// What one run brought.
struct Exchange {
    trips: RoundTrips,
    sockets: UdpGrants,
    reflected: Option<Reflected>,
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
