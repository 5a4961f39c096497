//! Scheduling on Linux. Unsafe code is allowed for setting a policy, because there is no safe
//! wrapper. The kernel reads a local structure that outlives the call, and writes nothing.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::mm::MlockAllFlags;
use rustix::thread::CpuSet;

use super::Policy;
use crate::Refusal;

const RAISE_RTPRIO: &str = "run as root, with CAP_SYS_NICE, or with a higher limit on rtprio \
                            (ulimit -r)";

const RUN_AS_ROOT: &str = "run as root, or with CAP_SYS_NICE";

pub(super) fn pin(cpu: u32) -> Result<(), Refusal> {
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(Refusal::Invalid(format!("there is no CPU {cpu}")));
    }
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &only).map_err(|error| match error {
        rustix::io::Errno::INVAL => Refusal::Invalid(format!(
            "CPU {cpu} does not exist, is offline, or is not available to this process"
        )),
        other => Refusal::system(other, ""),
    })
}

pub(super) fn set_nice(nice: i8) -> Result<(), Refusal> {
    // On Linux, a nice value belongs to a thread. `None` means the calling thread.
    rustix::process::setpriority_process(None, nice.into()).map_err(|error| match error {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Refusal::system(error, RUN_AS_ROOT),
        other => Refusal::system(other, ""),
    })
}

pub(super) fn lock_memory() -> Result<(), Refusal> {
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    rustix::mm::mlockall(all).map_err(|error| match error {
        rustix::io::Errno::NOMEM | rustix::io::Errno::PERM => Refusal::system(
            error,
            "raise the limit on locked memory (ulimit -l), or run as root or with CAP_IPC_LOCK",
        ),
        other => Refusal::system(other, ""),
    })
}

pub(super) fn set_timer_slack(slack: Duration) -> Result<(), Refusal> {
    // A timer slack of 0 would select the default.
    let ns = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX).max(1);
    rustix::thread::set_current_timer_slack(NonZeroU64::new(ns))
        .map_err(|error| Refusal::system(error, ""))
}

pub(super) fn set_policy(policy: Policy) -> Result<(), Refusal> {
    let done = match policy {
        Policy::Default => fixed(libc::SCHED_OTHER, 0),
        Policy::Fifo(priority) => fixed(libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => fixed(libc::SCHED_RR, priority),
        Policy::Deadline { runtime, period } => deadline(runtime, period),
        Policy::TimeCritical | Policy::Multimedia => {
            return Err(Refusal::Unsupported(
                "it exists on Windows only; on Linux use fifo, rr or deadline",
            ));
        }
    };
    done.map_err(|error| {
        let advice = match (error.raw_os_error(), policy) {
            (Some(libc::EPERM), Policy::Deadline { .. }) if has_right() && is_kept_from_cpus() => {
                "SCHED_DEADLINE needs a thread that may run on all CPUs; do not choose a CPU"
            }
            // A higher limit on rtprio does not help with SCHED_DEADLINE.
            (Some(libc::EPERM), Policy::Deadline { .. }) => RUN_AS_ROOT,
            (Some(libc::EPERM), _) => RAISE_RTPRIO,
            (Some(libc::EINVAL), Policy::Deadline { .. }) => {
                "use a time of at least 1 µs and at most the period"
            }
            (Some(libc::EINVAL), _) => "use a priority from 1 to 99",
            (Some(libc::EBUSY), _) => "too much CPU time is reserved already",
            _ => "",
        };
        Refusal::system(error, advice)
    })
}

/// Returns true if the calling thread has CAP_SYS_NICE.
fn has_right() -> bool {
    let sets = rustix::thread::capabilities(None);
    sets.is_ok_and(|sets| {
        sets.effective
            .contains(rustix::thread::CapabilitySet::SYS_NICE)
    })
}

/// Returns true if there is an online CPU on which the calling thread may not run.
fn is_kept_from_cpus() -> bool {
    // SAFETY: the call takes a number and returns a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let allowed = rustix::thread::sched_getaffinity(None);
    allowed.is_ok_and(|allowed| i64::from(allowed.count()) < online)
}

/// Sets a policy with a fixed priority. Child threads do not inherit this policy.
fn fixed(policy: libc::c_int, priority: u8) -> io::Result<()> {
    // SAFETY: the structure holds only numbers, for which zero is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the structure outlives the call; 0 means the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn deadline(runtime: Duration, period: Duration) -> io::Result<()> {
    /// First version of `struct sched_attr` (sched_setattr(2)).
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    const SCHED_DEADLINE: u32 = 6;
    const RESET_ON_FORK: u64 = 1;

    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: SCHED_DEADLINE,
        flags: RESET_ON_FORK,
        runtime_ns: ns(runtime),
        deadline_ns: ns(period),
        period_ns: ns(period),
        ..Attributes::default()
    };
    let address: *const Attributes = &attributes;
    // SAFETY: the structure contains its size and outlives the call. The first 0 means the calling
    // thread, and the second 0 means no flags.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, address, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
