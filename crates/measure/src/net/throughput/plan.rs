//! Methods measured in turns, and a peer's result beside theirs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::remote::Remote;
use super::{Load, Method, Throughput, measure};
use crate::net::peers::{self, PeerError, PeerThroughput};
use crate::net::{Around, NetError, Place, Route, Runs};
use crate::{
    Clock, Comparison, End, Grant, Incomparable, Plan, Scheduling, Stop, Unavailable, compare,
};

/// The name of the program that is measured beside.
pub const PEER: &str = "iperf3";

/// What is to be measured.
#[derive(Debug)]
pub struct ThroughputPlan {
    /// Where the other end is; a group is PGM's.
    pub route: Route,
    /// The methods; those that are not there are said to be.
    pub methods: Vec<Method>,
    /// What each thread asks of the scheduler.
    pub scheduling: Scheduling,
    /// The size of a packet, in bytes of payload.
    pub size: usize,
    /// How long a run is.
    pub time: Duration,
    /// Bytes of send and receive buffer to ask for; the system's default if none.
    pub buffer_bytes: Option<usize>,
    /// How long another machine may be silent.
    pub patience: Duration,
    /// Whether iperf3 is measured in turns with them; only where both ends are here.
    pub with_peer: bool,
    /// How many runs.
    pub plan: Plan,
}

/// One run of one method.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct ThroughputRun {
    /// Its name.
    pub method: &'static str,
    /// Number of the run, from 0.
    pub run: u32,
    /// What it brought.
    #[serde(flatten)]
    pub through: Throughput,
}

/// One run of the peer.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct PeerThroughputRun {
    /// Number of the run, from 0.
    pub run: u32,
    /// What it says.
    #[serde(flatten)]
    pub through: PeerThroughput,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct ThroughputReport {
    /// The runs.
    pub runs: Vec<ThroughputRun>,
    /// The peer's.
    pub peer: Vec<PeerThroughputRun>,
    /// What is not there.
    pub unavailable: Vec<Unavailable>,
    /// What each thread asked of the scheduler, and what came of it.
    pub grants: Vec<Grant>,
    /// Why it ended.
    pub end: End,
    /// What ended it before its time, other than the user; what was measured until then is here.
    pub failed: Option<String>,
    /// What else whoever reads the numbers should know; each a sentence.
    pub notes: Vec<String>,
}

impl ThroughputReport {
    /// The runs of a method.
    pub fn of(&self, method: &str) -> impl Iterator<Item = &ThroughputRun> {
        self.runs.iter().filter(move |run| run.method == method)
    }

    /// How many times as many packets a second one method brings as another, run by run; the peer is one
    /// by its name.
    ///
    /// # Errors
    /// If there are too few runs that both have.
    pub fn compared(&self, method: &str, other: &str) -> Result<Comparison, Incomparable> {
        let beside = self.rates(other);
        let pairs: Vec<(f64, f64)> = (self.rates(method).into_iter())
            .filter_map(|(run, rate)| Some((rate, beside.iter().find(|of| of.0 == run)?.1)))
            .collect();
        compare(&pairs)
    }

    /// The packets a second of each run of a method, or of the peer.
    fn rates(&self, method: &str) -> Vec<(u32, f64)> {
        match method {
            PEER => (self.peer.iter())
                .map(|run| (run.run, run.through.packets_per_second))
                .collect(),
            _ => (self.of(method))
                .filter_map(|run| Some((run.run, run.through.packets_per_second()?)))
                .collect(),
        }
    }
}

impl ThroughputPlan {
    /// Measures until it is enough or somebody wants it to stop, and tells how far it is.
    ///
    /// # Errors
    /// If nothing could be measured.
    pub fn measure(
        &self,
        clock: &Clock,
        stop: Stop<'_>,
        tell: &dyn Fn(Runs),
    ) -> Result<ThroughputReport, NetError> {
        let around = Around {
            clock,
            scheduling: &self.scheduling,
            stop,
        };
        let once = |method: Method, time| self.once(method, time, around);
        let (grants, _) = (self.scheduling.run(<[Grant]>::to_vec))
            .map_err(NetError::while_doing("starting a thread"))?;
        let mut report = ThroughputReport {
            runs: Vec::new(),
            peer: Vec::new(),
            unavailable: Vec::new(),
            grants,
            end: End::Rounds,
            failed: None,
            notes: vec![match &self.route {
                Route::Here { testbed, .. } => {
                    format!("Both ends are here: {}.", testbed.describe())
                }
                Route::There(place) => format!(
                    "The other end, at {place}, counted; the time is from the first packet that came to the \
                     last, by its clock."
                ),
            }],
        };
        // A short run shows whether the method is there at all.
        let mut methods = Vec::new();
        let mut first_error = None;
        for &method in &self.methods {
            match once(method, Duration::from_millis(1)) {
                Ok(_) => methods.push(method),
                Err(error @ (NetError::Size { .. } | NetError::NobodyCounts { .. })) => {
                    return Err(error);
                }
                Err(error) => {
                    report.unavailable.push(Unavailable {
                        method: method.name.to_owned(),
                        why: error.to_string(),
                    });
                    first_error.get_or_insert(error);
                }
            }
        }
        if let (true, Some(error)) = (methods.is_empty(), first_error) {
            return Err(error);
        }
        let has_peer = self.with_peer && self.finds_peer(&mut report.unavailable);
        let has_failed = AtomicBool::new(false);
        let shall_end = || stop() || has_failed.load(Ordering::Relaxed);
        let failed = RefCell::new(None);
        let turns = methods.len() + usize::from(has_peer);
        let mut runs = Runs::of(&self.plan, turns);
        report.end = self.plan.carry_out(turns, clock, &shall_end, |turn| {
            runs.next(tell);
            let run = turn.run.unwrap_or(0);
            let Some(&method) = methods.get(turn.method) else {
                return Ok(match self.ask_peer(&shall_end) {
                    Ok(through) => {
                        if turn.run.is_some() {
                            report.peer.push(PeerThroughputRun { run, through });
                        }
                        Some(through.packets_per_second)
                    }
                    Err(error) => {
                        report.notes.push(format!("run {run}: {error}"));
                        None
                    }
                });
            };
            let through = match once(method, self.time) {
                Ok(through) => through,
                Err(error) => {
                    *failed.borrow_mut() = Some(error);
                    has_failed.store(true, Ordering::Relaxed);
                    return Ok(None);
                }
            };
            if turn.run.is_some() && through.sent > 0 {
                let method = method.name;
                report.runs.push(ThroughputRun {
                    method,
                    run,
                    through,
                });
            }
            Ok::<_, NetError>(through.packets_per_second())
        })?;
        if let Some(error) = failed.into_inner() {
            if report.runs.is_empty() {
                return Err(error);
            }
            report.failed = Some(format!("it ended early: {error}"));
            // Then the user did not stop it.
            if !stop() {
                report.end = End::Rounds;
            }
        }
        Ok(report)
    }

    /// One run.
    fn once(
        &self,
        method: Method,
        time: Duration,
        around: Around<'_>,
    ) -> Result<Throughput, NetError> {
        match &self.route {
            Route::Here {
                testbed,
                family,
                group,
            } => {
                let load = Load {
                    testbed,
                    family: *family,
                    group: *group,
                    size: self.size,
                    time,
                    buffer_bytes: self.buffer_bytes,
                };
                measure(load, method, around)
            }
            Route::There(Place::Peer(to)) => {
                let remote = Remote {
                    to: *to,
                    size: self.size,
                    time,
                    buffer_bytes: self.buffer_bytes,
                    patience: self.patience,
                };
                remote.measure(method, around)
            }
            Route::There(_) => Err(NetError::OnlyHere),
        }
    }

    fn finds_peer(&self, unavailable: &mut Vec<Unavailable>) -> bool {
        let why = match &self.route {
            Route::There(_) => NetError::OnlyHere.to_string(),
            Route::Here { .. } if peers::find(PEER).is_none() => {
                PeerError::Absent(PEER).to_string()
            }
            Route::Here { .. } => return true,
        };
        unavailable.push(Unavailable {
            method: PEER.to_owned(),
            why,
        });
        false
    }

    fn ask_peer(&self, stop: Stop<'_>) -> Result<PeerThroughput, PeerError> {
        match &self.route {
            Route::Here {
                testbed, family, ..
            } => peers::throughput(testbed, *family, self.size, self.time, stop),
            Route::There(_) => Err(NetError::OnlyHere.into()),
        }
    }
}
