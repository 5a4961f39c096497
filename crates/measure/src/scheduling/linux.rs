//! What Linux is asked for. Its allowance of unsafe code is for setting a scheduling policy, for
//! which there is no safe wrapper: the kernel reads a structure from the address of a local variable
//! that lives longer than the call, and writes nothing.
#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::mm::MlockAllFlags;
use rustix::thread::CpuSet;

use super::Policy;

const NO_RIGHT: &str = "no right to; run as root, or with CAP_SYS_NICE or a limit on rtprio \
                        (ulimit -r) that allows it";

const NO_RIGHT_TO_NICE: &str = "no right to; run as root, or with CAP_SYS_NICE";

pub(super) fn pin(cpu: u32) -> Result<(), String> {
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(format!("there is no CPU {cpu}"));
    }
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &only).map_err(|error| match error {
        rustix::io::Errno::INVAL => {
            format!("there is no CPU {cpu}, or it is off or not this process's to use")
        }
        other => other.to_string(),
    })
}

pub(super) fn set_nice(nice: i8) -> Result<(), String> {
    // On Linux a nice value is of a thread; none stands for the calling one.
    rustix::process::setpriority_process(None, nice.into()).map_err(|error| match error {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => NO_RIGHT_TO_NICE.to_owned(),
        other => other.to_string(),
    })
}

pub(super) fn lock_memory() -> Result<(), String> {
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    rustix::mm::mlockall(all).map_err(|error| match error {
        rustix::io::Errno::NOMEM | rustix::io::Errno::PERM => {
            "more than the limit on locked memory (ulimit -l); run as root or with CAP_IPC_LOCK"
                .to_owned()
        }
        other => other.to_string(),
    })
}

pub(super) fn set_timer_slack(slack: Duration) -> Result<(), String> {
    // 0 would stand for the default.
    let ns = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX).max(1);
    rustix::thread::set_current_timer_slack(NonZeroU64::new(ns)).map_err(|error| error.to_string())
}

pub(super) fn set_policy(policy: Policy) -> Result<(), String> {
    let done = match policy {
        Policy::Usual => fixed(libc::SCHED_OTHER, 0),
        Policy::Fifo(priority) => fixed(libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => fixed(libc::SCHED_RR, priority),
        Policy::Deadline { runtime, period } => deadline(runtime, period),
        Policy::TimeCritical | Policy::Multimedia => {
            return Err("it is one of Windows; on Linux ask for fifo, rr or deadline".to_owned());
        }
    };
    done.map_err(|error| match (error.raw_os_error(), policy) {
        (Some(libc::EPERM), Policy::Deadline { .. }) if has_right() && is_kept_from_cpus() => {
            "a deadline is kept over all CPUs, so such a thread must be allowed on each; ask for no \
             single CPU"
                .to_owned()
        }
        // No limit on rtprio allows it.
        (Some(libc::EPERM), Policy::Deadline { .. }) => NO_RIGHT_TO_NICE.to_owned(),
        (Some(libc::EPERM), _) => NO_RIGHT.to_owned(),
        (Some(libc::EINVAL), Policy::Deadline { .. }) => {
            "the time must be at least 1 µs and at most the period".to_owned()
        }
        (Some(libc::EINVAL), _) => "priorities are 1 to 99".to_owned(),
        (Some(libc::EBUSY), _) => "too much time of the CPUs is promised already".to_owned(),
        _ => error.to_string(),
    })
}

/// Whether the calling thread has CAP_SYS_NICE.
fn has_right() -> bool {
    let sets = rustix::thread::capabilities(None);
    sets.is_ok_and(|sets| {
        sets.effective
            .contains(rustix::thread::CapabilitySet::SYS_NICE)
    })
}

/// Whether the calling thread may not run on some CPU that is there.
fn is_kept_from_cpus() -> bool {
    // SAFETY: it is handed a number and gives one.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let allowed = rustix::thread::sched_getaffinity(None);
    allowed.is_ok_and(|allowed| i64::from(allowed.count()) < online)
}

/// Threads that this one starts do not inherit it.
fn fixed(policy: libc::c_int, priority: u8) -> io::Result<()> {
    // SAFETY: plain numbers, of which all zero are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the structure lives until the call has returned; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn deadline(runtime: Duration, period: Duration) -> io::Result<()> {
    /// `struct sched_attr` of its first version (sched_setattr(2)).
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
    // SAFETY: the structure says its own size and lives until the call has returned; 0 is the
    // calling thread and no flags.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, address, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
