//! Parts of a time range by the chain of threads that led to its end: what each thread of the chain did, and for how long.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{StoreError, WaitKind, linux_states};

use super::disk_waits::{DiskWaits, FromDisk};
use super::interruptions::Interruptions;
use super::path::{self, Leg, Run, Runs, Thread};
use super::wakers::{Waker, Wakers};
use crate::drivers::is_of_disks;
use crate::survey::MESSAGES;
use crate::{Case, Name, SuspendGaps, labels};

/// Maximum number of steps that are followed back to find the longest part of a time range.
const PART_LEGS: usize = 1_000;

/// Kind of a wait for something other than a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A lock, or another object that one thread in user mode passes to the next.
    Lock,
    /// An object, such as an event, that another thread or a timer signals.
    Object,
    /// The answer to a local call (RPC, ALPC).
    Call,
    /// The end of a requested time.
    Sleep,
    /// An object of the kernel, mostly a device.
    Device,
    /// Memory, mostly a page from a disk.
    Memory,
    /// CPU rate control of a job.
    RateControl,
    /// The resumption of a thread that a program suspended.
    Suspended,
    /// A reason that is not recorded.
    Unknown,
    /// The answer to a message that the thread sent to a window of another thread (SendMessage).
    SentMessage,
    /// Several waits and runs between two waits for messages of windows.
    Response,
}

impl Kind {
    /// Returns the kind of a wait with this reason. Returns `None` if the thread has nothing to do while it
    /// waits, or if this reason does not mean a wait.
    pub(crate) fn from_reason(reason: u8) -> Option<Kind> {
        Some(match reason {
            0 | 7 => Kind::Device,
            1..=3 | 8..=10 | 18 | 19 | 23 => Kind::Memory,
            4 | 11 => Kind::Sleep,
            5 | 12 => Kind::Suspended,
            6 => Kind::Object,
            17 => Kind::Call,
            21 | 27..=29 | 34 | 35 | 37 => Kind::Lock,
            24 => Kind::RateControl,
            _ => return None,
        })
    }
}

/// State of a thread of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    Ran,
    /// DPCs and service routines on this CPU interrupted the thread.
    Interrupted(u16),
    Ready,
    Disk(u32),
    Page,
    /// Waited for data from the network. The number is an index of [`Wakers::remotes`].
    Network(u32),
    /// Waited until a DPC of a driver readied the thread. The number is the row of the driver's module in
    /// `images`.
    Driver(u32),
    /// Waited for this reason; 255 if the reason is unknown.
    Waited(u8),
    /// Waited in this state of Linux, for an object of this kind.
    WaitedFor(u8, WaitKind),
    MachineSuspended,
    /// Unknown, because the chain is not followed further back.
    Unknown,
}

/// Process by its row in `processes` and its id.
pub(crate) type Process = (Option<u32>, Option<u32>);

/// Sources of the details of steps.
pub(crate) type Sources<'s> = (&'s DiskWaits, &'s Wakers, &'s Interruptions);

/// Thread of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Who {
    pub(crate) process_row: Option<u32>,
    pub(crate) process_id: Option<u32>,
    pub(crate) thread_id: u32,
    pub(crate) thread_row: Option<u32>,
}

/// Part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) who: Who,
    pub(crate) what: What,
    pub(crate) ns: i64,
}

pub(crate) fn who(run: &Run) -> Who {
    Who {
        process_row: run.process_row,
        process_id: run.process_id,
        thread_id: run.thread_id,
        thread_row: run.thread_row,
    }
}

/// Divides the time range of a path into parts, the longest first. The sum of their lengths is the length of
/// the range. The path may not reach the start of the range; the time before the path counts as unknown time
/// of the thread `own`.
pub(crate) fn parts(
    legs: &[Leg],
    (disk_waits, wakers, interruptions): Sources<'_>,
    own: Who,
    range: &Range<i64>,
    gaps: &SuspendGaps,
) -> Vec<Part> {
    let mut sums: FxHashMap<(Who, What), i64> = FxHashMap::default();
    let mut add = |who: Who, what: What, ns: i64| {
        if ns > 0 {
            *sums.entry((who, what)).or_default() += ns;
        }
    };
    for leg in legs {
        let [waited, was_ready, ran] = leg.parts();
        let who = who(&leg.run);
        add(who, waited_for(leg, disk_waits, wakers), waited);
        add(who, What::Ready, was_ready);
        let interruptions_ns = interruptions.time_ns(leg).min(ran);
        add(who, What::Interrupted(leg.run.cpu), interruptions_ns);
        add(who, What::Ran, ran - interruptions_ns);
        add(who, What::MachineSuspended, leg.slept_ns());
    }
    let covered: i64 = legs.iter().map(|leg| leg.range.end - leg.range.start).sum();
    let unknown_ns = range.end - range.start - covered;
    let first = legs.last().map_or(range.end, |leg| leg.range.start);
    let before = range.start..first.max(range.start);
    let asleep_ns = gaps.asleep_ns(&before).min(unknown_ns);
    add(own, What::MachineSuspended, asleep_ns);
    add(own, What::Unknown, unknown_ns - asleep_ns);
    let parts = sums.into_iter();
    let mut parts: Vec<Part> = parts
        .map(|((who, what), ns)| Part { who, what, ns })
        .collect();
    parts.sort_by_key(|part| Reverse((part.ns, part.who, part.what)));
    parts
}

/// Returns a clause about the longest part of the range: what a thread did on the chain of threads that led to the wake of
/// `thread` at the end of the range. Returns `None` if the trace does not show it.
pub(crate) fn longest_part(
    case: &Case<'_>,
    thread: Thread,
    range: &Range<i64>,
) -> Result<Option<String>, StoreError> {
    let legs = path::path(&mut Runs::new(case)?, thread, range, PART_LEGS)?;
    let disk_waits = DiskWaits::read(case, vec![range.clone()])?;
    let wakers = Wakers::read(case, legs.iter())?;
    let own = Who {
        process_row: None,
        process_id: None,
        thread_id: thread.id,
        thread_row: thread.row,
    };
    let interruptions = Interruptions::read(case, legs.iter())?;
    let sources = (&disk_waits, &wakers, &interruptions);
    let parts = parts(&legs, sources, own, range, &case.survey.suspend_gaps);
    let known = parts.iter().find(|part| part.what != What::Unknown);
    Ok(known.map(|part| activity(case, &wakers, part)))
}

/// Returns the cause for which the thread of a step waited: a disk, a page, the network, a driver or a wait reason.
fn waited_for(leg: &Leg, disk_waits: &DiskWaits, wakers: &Wakers) -> What {
    let until = leg.run.since_ns().min(leg.range.end);
    let range: Range<i64> = leg.range.start..until;
    if range.is_empty() {
        return What::Unknown;
    }
    match disk_waits.of_wait(leg.run.thread_id, &range) {
        Some(FromDisk::Request(disk)) => What::Disk(disk),
        Some(FromDisk::Page) => What::Page,
        None => match wakers.waker(leg) {
            Some(Waker::Network(remote)) => What::Network(remote),
            Some(Waker::Driver(image_row)) => What::Driver(image_row),
            None => {
                let reason = leg.run.previous_wait_reason.unwrap_or(u8::MAX);
                let kind = leg.run.wait_kind;
                let kind = kind.filter(|_| linux_states::is_wait_reason(reason));
                kind.map_or(What::Waited(reason), |kind| What::WaitedFor(reason, kind))
            }
        },
    }
}

/// Returns the names of a thread and its process.
pub(crate) fn thread_name(case: &Case<'_>, who: &Who) -> String {
    case.thread(
        (who.thread_row, who.thread_id),
        (who.process_row, who.process_id),
    )
}

/// Returns a clause that says what a thread of a chain did, such as `thread 8 of mail.exe (4) waited for disk 1`.
pub(crate) fn activity(case: &Case<'_>, wakers: &Wakers, part: &Part) -> String {
    let who = thread_name(case, &part.who);
    match part.what {
        What::Ran => format!("{who} ran"),
        What::Interrupted(cpu) => format!("DPCs and ISRs on CPU {cpu} interrupted {who}"),
        What::Ready => format!("{who} was ready without a CPU"),
        What::Disk(disk) => format!("{who} waited for disk {disk}"),
        What::Page => format!("{who} waited for pages from disk"),
        What::Network(remote) => {
            format!("{who} waited for data from {}", wakers.remote_name(remote))
        }
        What::Driver(row) => format!("{who} waited for {}", driver(case, row)),
        What::MachineSuspended => case.survey.suspend_gaps.clause().to_owned(),
        What::Unknown => format!("{who} waited for an unknown reason"),
        What::WaitedFor(_, kind) => match kind {
            WaitKind::Sleep => format!("{who} slept"),
            WaitKind::Lock => format!("{who} waited for a lock"),
            WaitKind::Futex => format!("{who} waited for a lock or a condition variable"),
            WaitKind::Disk => format!("{who} waited for a disk"),
            WaitKind::Page => format!("{who} waited for pages from disk"),
            WaitKind::Message => format!("{who} waited for a message or an event"),
            WaitKind::Child => format!("{who} waited for the end of a child process"),
            WaitKind::Stopped => format!("{who} was stopped"),
            WaitKind::Frozen => format!("{who} was frozen"),
        },
        What::Waited(reason) => {
            let name = labels::wait_reason(reason);
            match Kind::from_reason(reason) {
                Some(Kind::Sleep) => format!("{who} slept ({name})"),
                Some(Kind::RateControl) => format!("CPU rate control stopped {who} ({name})"),
                Some(Kind::Suspended) => format!("{who} was suspended ({name})"),
                Some(Kind::Device) => format!("{who} waited for a device ({name})"),
                _ if reason == MESSAGES => format!("{who} waited for messages ({name})"),
                _ if reason == u8::MAX => format!("{who} waited"),
                _ => format!("{who} waited ({name})"),
            }
        }
    }
}

/// Returns words for a device, by the driver whose DPC ended the wait.
pub(crate) fn driver(case: &Case<'_>, image_row: u32) -> String {
    match case.module_label(Some(image_row)) {
        Some(module) if is_of_disks(module) => format!("a disk of the driver {}", Name(module)),
        module => format!("a device of the driver {}", Name(module.unwrap_or("?"))),
    }
}
