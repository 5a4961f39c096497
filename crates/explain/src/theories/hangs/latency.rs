//! Division of the time of a thread by its critical path, for comparisons of two traces.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tables::{Identities, Options, Store, StoreError};

use crate::chain::disk_waits::DiskWaits;
use crate::chain::interruptions::Interruptions;
use crate::chain::parts::{self, What, Who};
use crate::chain::path::{self, Leg, Runs, Thread};
use crate::chain::wakers::Wakers;
use crate::{Case, Reader, Scope};

/// Maximum number of steps of a path.
const LEGS: usize = 20_000;

/// State of a thread on a critical path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathTime {
    /// The thread ran.
    Ran,
    /// A DPC or service routine interrupted the thread.
    Interrupted,
    /// The thread was ready, but had no CPU.
    Ready,
    /// The thread waited for its request to a disk.
    Disk,
    /// The thread waited for a page.
    Page,
    /// The thread waited for data from the network.
    Network,
    /// The thread waited until a DPC of this driver readied it.
    Driver(String),
    /// The thread waited for this reason; 255 if the reason is unknown.
    Waited(u8),
    /// The machine was suspended.
    Suspended,
    /// The path does not reach this time.
    Unknown,
    /// The path does not reach this time, because it has the maximum number of steps.
    TooFar,
}

/// Key of a part of a critical path's time: the program of the thread on the path, and the state of this thread. The
/// program is `None` for the thread whose time is divided.
pub type PathPart = (Option<String>, PathTime);

/// Divides the time of the thread `thread_row` within the ranges by its critical path. While the thread waited for
/// another thread, the path follows the other thread. The values of the parts are nanoseconds; their sum is the total
/// length of the ranges.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn divided(
    store: &Store,
    thread_row: u32,
    ranges: &[Range<i64>],
    options: Options<'_>,
) -> Result<BTreeMap<PathPart, i64>, StoreError> {
    store.make(&crate::theories::tables(), options)?;
    let names = Arc::new(Identities::read(store, options)?);
    let is_cancelled = || !(options.progress)(0);
    let reader = Reader::new(store, Arc::clone(&names), None, &is_cancelled);
    let case = Case::read(reader, Scope::default())?;
    let id = names.thread_id(thread_row).unwrap_or(0);
    let thread = Thread {
        id,
        row: Some(thread_row),
    };
    let details = DiskWaits::read(&case, ranges.to_vec())?;
    let mut runs = Runs::new(&case)?;
    let mut sums: BTreeMap<PathPart, i64> = BTreeMap::new();
    let own = Who {
        process_row: None,
        process_id: None,
        thread_id: id,
        thread_row: Some(thread_row),
    };
    let paths = ranges.iter();
    let paths = paths.map(|range| path::path(&mut runs, thread, range, LEGS));
    let paths: Vec<Vec<Leg>> = paths.collect::<Result<_, StoreError>>()?;
    let wakers = Wakers::read(&case, paths.iter().flatten())?;
    let inside = Interruptions::read(&case, paths.iter().flatten())?;
    for (range, path) in ranges.iter().zip(&paths) {
        let sources = (&details, &wakers, &inside);
        for part in parts::parts(path, sources, own, range, &case.survey.suspend_gaps) {
            let time = match part.what {
                What::Ran => PathTime::Ran,
                What::Interrupted(_) => PathTime::Interrupted,
                What::Ready => PathTime::Ready,
                What::Disk(_) => PathTime::Disk,
                What::Page => PathTime::Page,
                What::Network(_) => PathTime::Network,
                What::Driver(image) => {
                    let module = names.module(Some(image)).unwrap_or("unknown modules");
                    PathTime::Driver(module.to_owned())
                }
                What::Waited(reason) | What::WaitedFor(reason, _) => PathTime::Waited(reason),
                What::MachineSuspended => PathTime::Suspended,
                What::Unknown if path.len() >= LEGS => PathTime::TooFar,
                What::Unknown => PathTime::Unknown,
            };
            *sums
                .entry((program(&names, thread, part.who), time))
                .or_default() += part.ns;
        }
    }
    sums.retain(|_, ns| *ns > 0);
    Ok(sums)
}

/// Returns the program of a thread on the path. Returns `None` for the thread whose time is divided.
fn program(names: &Identities, thread: Thread, who: Who) -> Option<String> {
    let is_own = who.thread_id == thread.id && who.thread_row == thread.row;
    let process = names.process(who.process_row, who.process_id);
    (!is_own).then(|| process.name.unwrap_or("unknown processes").to_owned())
}
