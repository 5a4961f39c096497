//! Time for which a thread waited for other threads while the other threads were ready and got no CPU.

use std::ops::Range;

use tables::StoreError;

use super::holder_times::{self, Most};
use super::holders::Holders;
use super::path::{self, Leg, Runs, Thread};
use crate::ranges::union;
use crate::{Case, Evidence, duration};

/// Maximum number of runs that are followed back. The number is limited because the SQL queries list every
/// run.
const LEGS: usize = 1000;

/// Threads that were ready without a CPU while another thread waited for them.
pub(crate) struct StarvedThreads {
    /// Time for which the other threads were ready without a CPU, in nanoseconds.
    pub(crate) ns: i64,
    /// Two pieces of evidence: the times of the other threads, and the processes that ran while the other threads were
    /// ready.
    pub(crate) evidence: [Evidence; 2],
    most: Option<Most>,
}

impl StarvedThreads {
    /// Follows the waits of `thread` back to the threads for which it waited.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or the user cancelled.
    pub(crate) fn read(
        case: &Case<'_>,
        thread: Thread,
        waits: &[Range<i64>],
    ) -> Result<StarvedThreads, StoreError> {
        let mut runs = Runs::new(case)?;
        let mut legs: Vec<Leg> = Vec::new();
        for wait in waits {
            let room = LEGS - legs.len();
            legs.extend(path::path(&mut runs, thread, wait, room)?);
        }
        let ready = legs.iter().filter(|leg| leg.parts()[1] > 0);
        let ready = ready.map(|leg| {
            let (since, start) = (leg.run.since_ns(), leg.run.start_ns);
            since.max(leg.range.start)..start.min(leg.range.end)
        });
        let stretches = union(ready.collect());
        let holders = Holders::read(case, &stretches)?;
        let who_ran = holder_times::by_process(case, None, &stretches, &holders);
        Ok(StarvedThreads {
            ns: legs.iter().map(|leg| leg.parts()[1]).sum(),
            evidence: [
                path::sums("Time of the threads that it waited for", &legs),
                who_ran.evidence,
            ],
            most: who_ran.most,
        })
    }

    /// Returns the process that used most CPU time while the other threads were ready.
    pub(crate) fn who_ran(&self, case: &Case<'_>) -> Option<String> {
        let most = self.most.as_ref()?;
        Some(case.processes(most.process_row, most.process_id))
    }

    /// Returns a sentence about the time for which the other threads were ready, and about the process that used most
    /// CPU time in this time.
    pub(crate) fn sentence(&self, case: &Case<'_>) -> String {
        let who = self.who_ran(case).map_or(String::new(), |process| {
            format!(", while {process} used most CPU time")
        });
        format!(
            " For {} of this waiting time, the threads that it waited for were ready and got no \
             CPU{who}. The lock did not cause this part of the wait.",
            duration(self.ns)
        )
    }
}
