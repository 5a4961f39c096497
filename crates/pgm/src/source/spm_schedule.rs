//! When source path messages are sent (RFC 3208 section 5.1).

use std::time::Duration;

use super::SourceConfig;
use crate::Time;

/// Two timers and one wish: ambient SPMs at a steady pace, heartbeats after data at intervals that
/// double, and SPMs that receivers have asked for.
#[derive(Debug)]
pub(super) struct SpmSchedule {
    ambient: Duration,
    heartbeat_min: Duration,
    heartbeat_max: Duration,
    next_ambient: Time,
    next_heartbeat: Time,
    heartbeat: Duration,
    requested: Option<Time>,
    /// The earliest moment at which another request is answered.
    next_answer: Time,
}

impl SpmSchedule {
    /// A session that begins says so at once, and again soon.
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

    /// Answers a request, but no more often than the shortest heartbeat.
    pub(super) fn request(&mut self, now: Time) {
        self.requested.get_or_insert(now.max(self.next_answer));
    }

    /// Whether nothing was sent for the shortest heartbeat.
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

    /// An SPM was sent: timers that were due begin again.
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
