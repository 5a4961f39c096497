//! Schedule of source path messages (SPMs, RFC 3208 section 5.1).

use std::time::Duration;

use super::SourceConfig;
use crate::Time;

/// Schedule of SPMs. Ambient SPMs are sent at a fixed interval. Heartbeat SPMs are sent after data, at
/// intervals that double. Other SPMs are sent on request.
#[derive(Debug)]
pub(super) struct SpmSchedule {
    ambient: Duration,
    heartbeat_min: Duration,
    heartbeat_max: Duration,
    next_ambient: Time,
    next_heartbeat: Time,
    heartbeat: Duration,
    requested: Option<Time>,
    /// Earliest time at which the next request for an SPM is answered.
    next_answer: Time,
}

impl SpmSchedule {
    /// Creates a schedule. The first SPM is due now. The second SPM is due after the minimum heartbeat
    /// interval.
    pub(super) fn new(config: &SourceConfig, now: Time) -> Self {
        Self {
            ambient: config.ambient,
            heartbeat_min: config.heartbeat_min,
            heartbeat_max: config.heartbeat_max,
            next_ambient: now,
            next_heartbeat: now.plus(config.heartbeat_min),
            heartbeat: config.heartbeat_min,
            requested: None,
            next_answer: now,
        }
    }

    pub(super) fn data_sent(&mut self, now: Time) {
        self.heartbeat = self.heartbeat_min;
        self.next_heartbeat = now.plus(self.heartbeat);
    }

    /// Schedules an SPM that answers a request. There is at most one answer per minimum heartbeat
    /// interval.
    pub(super) fn request(&mut self, now: Time) {
        self.requested.get_or_insert(now.max(self.next_answer));
    }

    /// Returns true if the source pauses, so that a heartbeat is due.
    pub(super) fn is_pause(&self, now: Time) -> bool {
        self.next_heartbeat <= now
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next() <= now
    }

    pub(super) fn next(&self) -> Time {
        let timers = self.next_ambient.min(self.next_heartbeat);
        self.requested.map_or(timers, |at| timers.min(at))
    }

    /// Records that an SPM was sent, and restarts the timers that were due.
    pub(super) fn sent(&mut self, now: Time) {
        if self.next_ambient <= now {
            self.next_ambient = now.plus(self.ambient);
        }
        if self.next_heartbeat <= now {
            self.heartbeat = (self.heartbeat * 2).min(self.heartbeat_max);
            self.next_heartbeat = now.plus(self.heartbeat);
        }
        if self.requested.take_if(|at| *at <= now).is_some() {
            self.next_answer = now.plus(self.heartbeat_min);
        }
    }
}
