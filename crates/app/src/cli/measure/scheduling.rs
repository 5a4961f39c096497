//! Options for scheduling, and their words in `--vs`.

use std::time::Duration;

use measure::{Policy, Scheduling};
use wording::{DefaultUnit, parse_duration};

use crate::cli::integer::integer;

/// Scheduling options. If the system refuses an option, the output says so and the measurement continues
/// without the option.
#[derive(clap::Args)]
pub(super) struct SchedulingOptions {
    /// Real-time scheduling: fifo, rr, deadline (Linux), time-critical, mmcss (Windows); fifo and rr accept a
    /// priority, such as fifo:80 [without a value: fifo:80, on Windows time-critical]
    #[arg(
        long,
        value_name = "POLICY",
        value_parser = policy,
        num_args = 0..=1,
        default_missing_value = if cfg!(windows) { "time-critical" } else { "fifo" },
        help_heading = "Scheduling"
    )]
    realtime: Option<Policy>,
    /// Run only on the CPU with this number; the first CPU is 0
    #[arg(long, value_name = "CPU", help_heading = "Scheduling")]
    cpu: Option<u32>,
    /// Nice value: -20 (highest priority) to 19
    #[arg(
        long,
        value_name = "NICE",
        value_parser = integer::<i8>(-20, 19),
        allow_negative_numbers = true,
        help_heading = "Scheduling"
    )]
    nice: Option<i8>,
    /// Keep all memory of the program in RAM (mlockall)
    #[arg(long, help_heading = "Scheduling")]
    lock_memory: bool,
    /// Linux: timer slack, the time by which sleeps may end late; 1ns practically disables it
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Scheduling")]
    slack: Option<Duration>,
}

impl SchedulingOptions {
    pub(super) fn scheduling(&self) -> Scheduling {
        Scheduling {
            policy: self.realtime.unwrap_or_default(),
            cpu: self.cpu,
            nice: self.nice,
            lock_memory: self.lock_memory,
            timer_slack: self.slack,
        }
    }
}

/// Words that [`take_word`] accepts, for error messages.
pub(super) const SCHEDULING_WORDS: &str =
    "usual, fifo:N, rr:N, deadline, time-critical, mmcss, cpu:N, nice:N, slack:TIME or locked";

/// Applies one word of a `--vs` setting: `usual`, a policy, `cpu:1`, `nice:-5`, `slack:1ns`, `locked`.
/// Returns false if the word is not one of them.
///
/// # Errors
/// Returns an error if the value is invalid, or an earlier word set the same option.
pub(super) fn take_word(word: &str, into: &mut Scheduling) -> Result<bool, String> {
    let before = *into;
    let once = |is_set: bool| {
        if is_set {
            Err(format!(
                "`{word}` conflicts with an earlier word that sets the same option; remove one"
            ))
        } else {
            Ok(())
        }
    };
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{word}`: invalid number"))
    };
    match word.split_once(':') {
        None if word == "usual" => once(before != Scheduling::default())?,
        None if word == "locked" => into.lock_memory = true,
        Some(("cpu", cpu)) => {
            once(before.cpu.is_some())?;
            into.cpu = Some(number(cpu)?);
        }
        Some(("nice", nice)) => {
            once(before.nice.is_some())?;
            let nice = nice.parse().ok().filter(|nice| (-20..=19).contains(nice));
            into.nice = Some(nice.ok_or_else(|| format!("`{word}`: expected -20 to 19"))?);
        }
        Some(("slack", slack)) => {
            once(before.timer_slack.is_some())?;
            into.timer_slack = Some(time(slack)?);
        }
        _ => match policy(word) {
            Ok(policy) => {
                once(before.policy != Policy::Default)?;
                into.policy = policy;
            }
            Err(_) if !POLICIES.contains(&word.split(':').next().unwrap_or_default()) => {
                return Ok(false);
            }
            Err(why) => return Err(why),
        },
    }
    Ok(true)
}

const POLICIES: [&str; 5] = ["fifo", "rr", "deadline", "time-critical", "mmcss"];

/// Default priority of real-time threads. The priority is higher than the priorities of other threads on a
/// usual system, and lower than the priorities of the kernel's watchdogs.
const PRIORITY: u8 = 80;

fn policy(text: &str) -> Result<Policy, String> {
    let (name, priority) = match text.split_once(':') {
        Some((name, priority)) => (name, Some(priority)),
        None => (text, None),
    };
    let with_priority = |policy: fn(u8) -> Policy| match priority.map(str::parse) {
        None => Ok(policy(PRIORITY)),
        Some(Ok(priority @ 1..=99)) => Ok(policy(priority)),
        Some(_) => Err(format!("`{text}`: expected a priority from 1 to 99")),
    };
    match (name, priority) {
        ("fifo", _) => with_priority(Policy::Fifo),
        ("rr", _) => with_priority(Policy::RoundRobin),
        // In each period of 1 ms, a probe needs this runtime, which is far below the kernel's limit.
        ("deadline", None) => Ok(Policy::Deadline {
            runtime: Duration::from_micros(200),
            period: Duration::from_millis(1),
        }),
        ("time-critical", None) => Ok(Policy::TimeCritical),
        ("mmcss", None) => Ok(Policy::Multimedia),
        _ => Err(format!("expected one of {}", POLICIES.join(", "))),
    }
}

/// Parses a duration. A number without a unit is milliseconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text, DefaultUnit::Milliseconds)
        .and_then(|ns| u64::try_from(ns).ok())
        .map(Duration::from_nanos)
        .ok_or_else(|| "expected a time such as 1ms, 500us, 100ns or 10s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_by_their_names() {
        assert_eq!(policy("fifo"), Ok(Policy::Fifo(80)));
        assert_eq!(policy("rr:3"), Ok(Policy::RoundRobin(3)));
        assert_eq!(policy("mmcss"), Ok(Policy::Multimedia));
        for odd in ["fifo:0", "fifo:100", "rr:x", "batch", "mmcss:1", ""] {
            assert!(policy(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn words_make_a_setting() {
        let mut setting = Scheduling::default();
        for word in ["fifo:7", "cpu:1", "nice:-5", "slack:1ns", "locked"] {
            assert_eq!(take_word(word, &mut setting), Ok(true), "{word}");
        }
        let expected = Scheduling {
            policy: Policy::Fifo(7),
            cpu: Some(1),
            nice: Some(-5),
            lock_memory: true,
            timer_slack: Some(Duration::from_nanos(1)),
        };
        assert_eq!(setting, expected);
        assert_eq!(take_word("resolution:1", &mut setting), Ok(false));
        for twice in ["rr:10", "cpu:0", "nice:1", "slack:2ns", "usual"] {
            let refused = take_word(twice, &mut setting).unwrap_err();
            assert!(refused.contains("sets the same"), "{refused}");
        }
        assert_eq!(setting, expected);
        let mut setting = Scheduling::default();
        assert_eq!(take_word("usual", &mut setting), Ok(true));
        assert_eq!(setting, Scheduling::default());
        for odd in ["fifo:200", "cpu:one", "nice:40", "slack:-1"] {
            assert!(take_word(odd, &mut setting).is_err(), "{odd}");
        }
    }
}
