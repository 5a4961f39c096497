//! What a probe asks of the scheduler, and what it gets.

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

/// How the system is asked to choose a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// As it does any.
    #[default]
    Usual,
    /// SCHED_FIFO: before all others of lower priority, until it waits. 1 to 99.
    Fifo(u8),
    /// SCHED_RR: as FIFO, but taking turns with others of its priority. 1 to 99.
    RoundRobin(u8),
    /// SCHED_DEADLINE: that much time in each period, before all others.
    Deadline {
        /// The time it may use.
        runtime: Duration,
        /// In each of these.
        period: Duration,
    },
    /// Windows: the priority THREAD_PRIORITY_TIME_CRITICAL.
    TimeCritical,
    /// Windows: the multimedia class scheduler (MMCSS), as "Pro Audio".
    Multimedia,
}

/// What a thread asks for. What is not asked for stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// How it is chosen.
    pub policy: Policy,
    /// The only CPU that it may run on, from 0.
    pub cpu: Option<u32>,
    /// Its nice value: -20 (favoured) to 19. On Windows the nearest priority of threads.
    pub nice: Option<i8>,
    /// All memory of the program stays in RAM.
    pub lock_memory: bool,
    /// Linux: how much later than asked for a sleep may end, so that the kernel can wake several at
    /// once. 50 µs unless changed; real-time threads have none.
    pub timer_slack: Option<Duration>,
}

/// One thing that was asked for, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// What was asked for.
    pub asked: String,
    /// Why it was refused, and what to do; none if it was granted.
    pub refused: Option<String>,
}

impl Grant {
    /// What was asked for, and whether the system agreed.
    pub fn new(asked: impl fmt::Display, outcome: Result<(), String>) -> Grant {
        Grant {
            asked: asked.to_string(),
            refused: outcome.err(),
        }
    }

    /// Whether it was granted.
    pub fn is_granted(&self) -> bool {
        self.refused.is_none()
    }

    /// A setting's wishes, separated by commas, each that was refused marked as such: numbers are not
    /// to be taken for those of a setting that they were not measured under.
    pub fn outcome_of(setting: &impl fmt::Display, grants: &[Grant]) -> String {
        let outcome = |wish: &str| {
            let mut refused = grants.iter().filter(|grant| !grant.is_granted());
            match refused.any(|grant| grant.asked == wish) {
                true => format!("{wish} (refused)"),
                false => wish.to_owned(),
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
            Policy::Usual => f.write_str("usual scheduling"),
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
        let mut asked = Vec::new();
        if self.policy != Policy::Usual {
            asked.push(self.policy.to_string());
        }
        asked.extend(self.nice.map(|nice| format!("nice {nice}")));
        asked.extend(self.cpu.map(|cpu| format!("CPU {cpu}")));
        let slack = self.timer_slack;
        asked.extend(slack.map(|slack| format!("timer slack {slack:?}")));
        if self.lock_memory {
            asked.push("memory locked".to_owned());
        }
        match asked.is_empty() {
            true => write!(f, "{}", Policy::Usual),
            false => f.write_str(&asked.join(", ")),
        }
    }
}

impl Scheduling {
    /// Asks for all of it, for the calling thread until it ends; memory is locked for the whole
    /// program. A refusal stops nothing: what was refused is said.
    ///
    /// Whoever polls under a real-time policy must use [`Spin`](crate::Spin).
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
        // Last: what is asked for before it may not be allowed to a real-time thread.
        if self.policy != Policy::Usual {
            ask(self.policy.to_string(), system::set_policy(self.policy));
        }
        grants
    }

    /// Runs something in a thread of its own that has asked for this, so that it ends with it.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Panics
    /// If `work` does.
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

    #[test]
    fn what_cannot_be_granted_is_refused_with_a_reason_and_stops_nothing() {
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
            Grant::outcome_of(&impossible, &grants),
            "SCHED_FIFO 120 (refused), CPU 100000 (refused)"
        );
    }

    #[test]
    fn every_wish_is_named_in_the_setting_as_its_grant_names_it() {
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
        let asked = everything.to_string();
        let mut grants: Vec<Grant> = asked
            .split(", ")
            .map(|wish| Grant::new(wish, Ok(())))
            .collect();
        assert_eq!(grants.len(), 5);
        assert_eq!(Grant::outcome_of(&everything, &grants), asked);
        grants[1].refused = Some("no right to".to_owned());
        assert_eq!(
            Grant::outcome_of(&everything, &grants),
            "SCHED_DEADLINE 200µs of 1ms, nice -5 (refused), CPU 3, timer slack 1ns, memory locked"
        );
        // Another thing that failed marks nothing.
        let failed = [Grant::new("nanosleep", Err("it failed".to_owned()))];
        assert_eq!(Grant::outcome_of(&everything, &failed), asked);
    }

    #[test]
    fn what_is_not_asked_for_is_not_done() {
        assert_eq!(Scheduling::default().apply(), []);
        assert_eq!(Scheduling::default().to_string(), "usual scheduling");
        let pinned = Scheduling {
            cpu: Some(1),
            lock_memory: true,
            ..Scheduling::default()
        };
        assert_eq!(pinned.to_string(), "CPU 1, memory locked");
    }
}
