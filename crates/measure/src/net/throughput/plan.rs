//! Plan of a throughput measurement: methods in turns, and a peer for comparison.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::remote::Remote;
use super::{Load, Method, Throughput, measure};
use crate::net::peers::{self, PeerError, PeerThroughput};
use crate::net::{NetError, Place, Route, RunContext, Runs};
use crate::{
    Clock, Comparison, End, Grant, Incomparable, Plan, Scheduling, Stop, Unavailable, compare,
};

/// Name of the peer, a program of another project.
pub const PEER: &str = "iperf3";

/// Plan of a throughput measurement.
#[derive(Debug)]
pub struct ThroughputPlan {
    /// Location of the other end. Only the methods that send to a group use the group of the route.
    pub route: Route,
    /// Methods to measure. Unavailable methods are listed in the result.
    pub methods: Vec<Method>,
    /// Scheduling requests of each thread.
    pub scheduling: Scheduling,
    /// Payload size in bytes.
    pub size: usize,
    /// Length of a run.
    pub time: Duration,
    /// Requested send and receive buffer in bytes; `None` for the system's default.
    pub buffer_bytes: Option<usize>,
    /// Maximum time that another machine may take to answer.
    pub patience: Duration,
    /// True if iperf3 is measured too, in turns with the methods. In this case, both ends must be on this
    /// machine.
    pub with_peer: bool,
    /// Number and order of the runs.
    pub plan: Plan,
}

/// One run of a method.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct ThroughputRun {
    /// Name of the method.
    pub method: &'static str,
    /// Number of the run, from 0.
    pub run: u32,
    /// Result of the run.
    #[serde(flatten)]
    pub through: Throughput,
}

/// One run of the peer.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct PeerThroughputRun {
    /// Number of the run, from 0.
    pub run: u32,
    /// Result of the run.
    #[serde(flatten)]
    pub through: PeerThroughput,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct ThroughputReport {
    /// Runs of laglab's methods.
    pub runs: Vec<ThroughputRun>,
    /// Runs of the peer.
    pub peer: Vec<PeerThroughputRun>,
    /// Unavailable methods.
    pub unavailable: Vec<Unavailable>,
    /// Scheduling requests of each thread and their grants.
    pub grants: Vec<Grant>,
    /// Reason why the measurement ended.
    pub end: End,
    /// Error that ended the measurement early. The earlier results are kept.
    pub failed: Option<String>,
    /// Caveats, one sentence each.
    pub notes: Vec<String>,
}

impl ThroughputReport {
    /// Returns the runs of a method.
    pub fn runs_with(&self, method: &str) -> impl Iterator<Item = &ThroughputRun> {
        self.runs.iter().filter(move |run| run.method == method)
    }

    /// Compares the packets per second of two methods, run by run. The result is a ratio. The name `PEER`
    /// selects the peer.
    ///
    /// # Errors
    /// Returns an error if there are too few common runs.
    pub fn compared(&self, method: &str, other: &str) -> Result<Comparison, Incomparable> {
        let others = self.rates(other);
        let pairs: Vec<(f64, f64)> = (self.rates(method).into_iter())
            .filter_map(|(run, rate)| Some((rate, others.iter().find(|other| other.0 == run)?.1)))
            .collect();
        compare(&pairs)
    }

    /// Returns the runs of a method or of the peer: the number of each run and its packets per second.
    fn rates(&self, method: &str) -> Vec<(u32, f64)> {
        match method {
            PEER => (self.peer.iter())
                .map(|run| (run.run, run.through.packets_per_second))
                .collect(),
            _ => (self.runs_with(method))
                .filter_map(|run| Some((run.run, run.through.packets_per_second()?)))
                .collect(),
        }
    }
}

impl ThroughputPlan {
    /// Measures until the plan is done or `stop` returns true, and reports progress.
    ///
    /// # Errors
    /// Returns an error if nothing could be measured.
    pub fn measure(
        &self,
        clock: &Clock,
        stop: Stop<'_>,
        tell: &dyn Fn(Runs),
    ) -> Result<ThroughputReport, NetError> {
        let context = RunContext {
            clock,
            scheduling: &self.scheduling,
            stop,
        };
        let (grants, _) = (self.scheduling.run(<[Grant]>::to_vec))
            .map_err(NetError::context("starting a thread"))?;
        let mut report = ThroughputReport {
            runs: Vec::new(),
            peer: Vec::new(),
            unavailable: Vec::new(),
            grants,
            end: End::Rounds,
            failed: None,
            notes: vec![self.route_note()],
        };
        let methods = self.available_methods(context, &mut report.unavailable)?;
        let has_peer = self.with_peer && self.check_peer(&mut report.unavailable);
        let has_failed = AtomicBool::new(false);
        let shall_end = || stop() || has_failed.load(Ordering::Relaxed);
        let failed = RefCell::new(None);
        let turns = methods.len() + usize::from(has_peer);
        let mut runs = Runs::new(&self.plan, turns);
        let none = vec![None; turns];
        report.end = self.plan.carry_out(&none, clock, &shall_end, |turn| {
            runs.next(tell);
            let run = turn.run.unwrap_or(0);
            let Some(&method) = methods.get(turn.method) else {
                return Ok(match self.run_peer(&shall_end) {
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
            let through = match self.once(method, self.time, context) {
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
            report.failed = Some(format!("the measurement ended early: {error}"));
            // After an error, the plan may report a stop, although the user did not stop the measurement.
            if !stop() {
                report.end = End::Rounds;
            }
        }
        Ok(report)
    }

    fn route_note(&self) -> String {
        match &self.route {
            Route::Here { testbed, .. } => {
                format!("Both ends are on this machine: {}.", testbed.describe())
            }
            Route::There(place) => format!(
                "The counter was at {place}. The time is from the first received packet to the last, by \
                 its clock."
            ),
        }
    }

    /// Returns the available methods: a short run of each shows whether it is available. Adds the other methods to
    /// `unavailable`.
    ///
    /// # Errors
    /// Returns an error if no method is available, or if the plan itself is impossible.
    fn available_methods(
        &self,
        context: RunContext<'_>,
        unavailable: &mut Vec<Unavailable>,
    ) -> Result<Vec<Method>, NetError> {
        let mut methods = Vec::new();
        let mut first_error = None;
        for &method in &self.methods {
            match self.once(method, Duration::from_millis(1), context) {
                Ok(_) => methods.push(method),
                Err(error @ (NetError::Size { .. } | NetError::NoCounter { .. })) => {
                    return Err(error);
                }
                Err(error) => {
                    unavailable.push(Unavailable {
                        method: method.name.to_owned(),
                        why: error.to_string(),
                    });
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error.filter(|_| methods.is_empty()) {
            Some(error) => Err(error),
            None => Ok(methods),
        }
    }

    /// Makes one run.
    fn once(
        &self,
        method: Method,
        time: Duration,
        context: RunContext<'_>,
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
                measure(load, method, context)
            }
            Route::There(Place::Peer(to)) => {
                let remote = Remote {
                    to: *to,
                    size: self.size,
                    time,
                    buffer_bytes: self.buffer_bytes,
                    patience: self.patience,
                };
                remote.measure(method, context)
            }
            Route::There(_) => Err(NetError::OnlyHere),
        }
    }

    fn check_peer(&self, unavailable: &mut Vec<Unavailable>) -> bool {
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

    fn run_peer(&self, stop: Stop<'_>) -> Result<PeerThroughput, PeerError> {
        match &self.route {
            Route::Here {
                testbed, family, ..
            } => peers::throughput(testbed, *family, self.size, self.time, stop),
            Route::There(_) => Err(NetError::OnlyHere.into()),
        }
    }
}
