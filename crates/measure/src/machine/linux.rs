//! Description of a Linux machine.

use rustix::time::{ClockId, clock_getres};

use super::{Machine, Virtualised};

pub(super) fn describe() -> Machine {
    let release = rustix::system::uname();
    Machine {
        name: Some(release.nodename().to_string_lossy().into_owned())
            .filter(|name| !name.is_empty()),
        cpu: cpu(),
        kernel: Some(format!("Linux {}", release.release().to_string_lossy())),
        is_real_time: is_real_time(&release.version().to_string_lossy()),
        virtualised: Virtualised::NotSaid,
        load: text("/proc/loadavg")
            .as_deref()
            .and_then(|text| text.split_whitespace().next()?.parse().ok()),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hz: hz(),
        ..Machine::default()
    }
}

fn text(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn cpu() -> Option<String> {
    let text = text("/proc/cpuinfo")?;
    let named = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    named.filter(|name| !name.is_empty())
}

/// Returns true if the kernel is a real-time kernel. Only a kernel with PREEMPT_RT has the file
/// `/sys/kernel/realtime`. The version text of such a kernel also contains `PREEMPT_RT`.
fn is_real_time(version: &str) -> Option<bool> {
    match text("/sys/kernel/realtime") {
        Some(says) => Some(says == "1"),
        None => Some(version.contains("PREEMPT_RT")),
    }
}

/// Returns the number of timer ticks per second. The coarse clock advances with the kernel's tick,
/// so its resolution is the length of a tick.
fn hz() -> Option<u32> {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let ns = tick.tv_sec * 1_000_000_000 + tick.tv_nsec;
    let hz = (ns > 0).then(|| (1e9 / ns as f64).round() as u32);
    hz.filter(|hz| (1..=10_000).contains(hz))
}
