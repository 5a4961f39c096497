//! Scheduling requests of a probe, and the system's answers to them.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Scheduling policy of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Default policy of the system.
    #[default]
    Default,
    /// SCHED_FIFO with a priority from 1 to 99. The thread runs before all threads of lower
    /// priority until it waits.
    Fifo(u8),
    /// SCHED_RR with a priority from 1 to 99. It works like SCHED_FIFO, but threads of the same
    /// priority take turns.
    RoundRobin(u8),
    /// SCHED_DEADLINE. The thread has a time budget in each period and runs before the threads of
    /// all other policies.
    Deadline {
        /// Time budget in each period.
        runtime: Duration,
        /// Length of a period.
        period: Duration,
    },
    /// Priority THREAD_PRIORITY_TIME_CRITICAL of Windows.
    TimeCritical,
    /// Task "Pro Audio" of the multimedia class scheduler (MMCSS) of Windows.
    Multimedia,
}

/// Scheduling requests for a thread. All other properties keep the system's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Scheduling policy of the thread.
    pub policy: Policy,
    /// Number of the CPU, from 0, to which the thread is pinned.
    pub cpu: Option<u32>,
    /// Nice value from -20 (favoured) to 19. On Windows, the thread gets the closest thread
    /// priority.
    pub nice: Option<i8>,
    /// True if all memory of the program is to be locked in RAM.
    pub lock_memory: bool,
    /// Timer slack of Linux: the time by which a sleep may end late, so that the kernel can wake
    /// several threads at once. The default is 50 µs. Real-time threads have no slack.
    pub timer_slack: Option<Duration>,
}

/// A request and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The request.
    pub asked: String,
    /// Reason for the refusal and advice; `None` if the request was granted.
    pub refused: Option<String>,
}

impl Grant {
    /// Returns a request with its outcome.
    pub fn new(asked: impl fmt::Display, outcome: Result<(), impl fmt::Display>) -> Grant {
        Grant {
            asked: asked.to_string(),
            refused: outcome.err().map(|error| error.to_string()),
        }
    }

    /// Returns true if the request was granted.
    pub fn is_granted(&self) -> bool {
        self.refused.is_none()
    }

    /// Formats a setting and marks its refused requests. Without the marks, readers could attribute numbers
    /// to a setting that was not in effect.
    pub fn describe(setting: &impl fmt::Display, grants: &[Grant]) -> String {
        let outcome = |wish: &str| {
            let mut refused = grants.iter().filter(|grant| !grant.is_granted());
            if refused.any(|grant| grant.asked == wish) {
                format!("{wish} (refused)")
            } else {
                wish.to_owned()
            }
        };
        let setting = setting.to_string();
        let wishes: Vec<String> = setting.split(", ").map(outcome).collect();
        wishes.join(", ")
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refused {
            None => write!(f, "{}: granted", self.asked),
            Some(why) => write!(f, "{}: refused: {why}", self.asked),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Default => f.write_str("default scheduling"),
            Policy::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Policy::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            Policy::Deadline { runtime, period } => {
                write!(f, "SCHED_DEADLINE {runtime:?} of {period:?}")
            }
            Policy::TimeCritical => f.write_str("time-critical priority"),
            Policy::Multimedia => f.write_str("MMCSS Pro Audio"),
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.policy != Policy::Default {
            parts.push(self.policy.to_string());
        }
        parts.extend(self.nice.map(|nice| format!("nice {nice}")));
        parts.extend(self.cpu.map(|cpu| format!("CPU {cpu}")));
        let slack = self.timer_slack;
        parts.extend(slack.map(|slack| format!("timer slack {slack:?}")));
        if self.lock_memory {
            parts.push("memory locked".to_owned());
        }
        if parts.is_empty() {
            write!(f, "{}", Policy::Default)
        } else {
            f.write_str(&parts.join(", "))
        }
    }
}

impl Scheduling {
    /// Applies all requests to the calling thread until the thread ends. Memory is locked for the whole
    /// program. A refused request does not stop the other requests. The returned grants report the refusal.
    ///
    /// A thread that polls under a real-time policy must use [`Spin`](crate::Spin).
    pub fn apply(&self) -> Vec<Grant> {
        let mut grants = Vec::new();
        let mut ask = |asked: String, outcome| grants.push(Grant::new(asked, outcome));
        if let Some(cpu) = self.cpu {
            ask(format!("CPU {cpu}"), system::pin(cpu));
        }
        if let Some(nice) = self.nice {
            ask(format!("nice {nice}"), system::set_nice(nice));
        }
        if self.lock_memory {
            ask("memory locked".to_owned(), system::lock_memory());
        }
        if let Some(slack) = self.timer_slack {
            ask(
                format!("timer slack {slack:?}"),
                system::set_timer_slack(slack),
            );
        }
        // The policy is set last, because a real-time thread may not be allowed to make the other
        // requests.
        if self.policy != Policy::Default {
            ask(self.policy.to_string(), system::set_policy(self.policy));
        }
        grants
    }

    /// Runs `work` in a new thread with these requests applied.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    ///
    /// # Panics
    /// Panics if `work` panics.
    pub fn run<T: Send>(
        &self,
        work: impl FnOnce(&[Grant]) -> T + Send,
    ) -> std::io::Result<(T, Vec<Grant>)> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("probe".to_owned())
                .spawn_scoped(scope, || {
                    let grants = self.apply();
                    (work(&grants), grants)
                })?;
            match thread.join() {
                Ok(done) => Ok(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn impossible_requests_are_refused_with_a_reason() {
        let impossible = Scheduling {
            policy: Policy::Fifo(120),
            cpu: Some(100_000),
            nice: None,
            lock_memory: false,
            timer_slack: None,
        };
        let (ran, grants) = impossible.run(|grants| grants.len()).unwrap();
        assert_eq!((ran, grants.len()), (2, 2));
        for (grant, asked) in grants.iter().zip(["CPU 100000", "SCHED_FIFO 120"]) {
            assert_eq!(grant.asked, asked);
            let why = grant.refused.as_deref().unwrap();
            assert!(why.len() > 10, "{grant}");
        }
        assert_eq!(
            Grant::describe(&impossible, &grants),
            "SCHED_FIFO 120 (refused), CPU 100000 (refused)"
        );
    }

    #[test]
    fn settings_and_grants_use_the_same_names() {
        let everything = Scheduling {
            policy: Policy::Deadline {
                runtime: Duration::from_micros(200),
                period: Duration::from_millis(1),
            },
            cpu: Some(3),
            nice: Some(-5),
            lock_memory: true,
            timer_slack: Some(Duration::from_nanos(1)),
        };
        let text = everything.to_string();
        let mut grants: Vec<Grant> = text
            .split(", ")
            .map(|wish| Grant::new(wish, Ok::<(), Refusal>(())))
            .collect();
        assert_eq!(grants.len(), 5);
        assert_eq!(Grant::describe(&everything, &grants), text);
        grants[1].refused = Some("not permitted".to_owned());
        assert_eq!(
            Grant::describe(&everything, &grants),
            "SCHED_DEADLINE 200µs of 1ms, nice -5 (refused), CPU 3, timer slack 1ns, memory locked"
        );
        // A refused grant adds no mark if the setting did not contain its request.
        let failed = [Grant::new("nanosleep", Err("it failed"))];
        assert_eq!(Grant::describe(&everything, &failed), text);
    }

    #[test]
    fn nothing_is_requested_by_default() {
        assert_eq!(Scheduling::default().apply(), []);
        assert_eq!(Scheduling::default().to_string(), "default scheduling");
        let pinned = Scheduling {
            cpu: Some(1),
            lock_memory: true,
            ..Scheduling::default()
        };
        assert_eq!(pinned.to_string(), "CPU 1, memory locked");
    }
}
