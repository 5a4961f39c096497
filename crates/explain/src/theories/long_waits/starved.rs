//! Time that threads waited for others which could run and got no CPU.

use std::ops::Range;

use tables::StoreError;

use super::held::{self, Most};
use super::holders::Holders;
use super::path::{self, Leg, Runs, Thread};
use crate::ranges::union;
use crate::{Case, Evidence, duration};

/// Runs that are followed back: queries name each.
const LEGS: usize = 1000;

/// Those for whom a thread waited could run and got no CPU.
pub(in crate::theories) struct Starved {
    /// For so long, in nanoseconds.
    pub(in crate::theories) ns: i64,
    /// What they did, and who ran instead.
    pub(in crate::theories) evidence: [Evidence; 2],
    most: Option<Most>,
}

impl Starved {
    /// Follows waits of a thread back to those that made it wait.
    ///
    /// # Errors
    /// If a table cannot be read, or the user stopped it.
    pub(in crate::theories) fn read(
        case: &Case<'_>,
        thread: Thread,
        waits: &[Range<i64>],
    ) -> Result<Starved, StoreError> {
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
        let who_ran = held::by_process(case, None, &stretches, &holders);
        Ok(Starved {
            ns: legs.iter().map(|leg| leg.parts()[1]).sum(),
            evidence: [
                path::sums("What those did for whom it waited", &legs),
                who_ran.evidence,
            ],
            most: who_ran.most,
        })
    }

    /// How long, and who ran instead.
    pub(in crate::theories) fn sentence(&self, case: &Case<'_>) -> String {
        let who = self.most.as_ref().map_or(String::new(), |most| {
            let process = case.processes(most.process_row, most.process_id);
            format!(", while {process} had most of the CPUs")
        });
        format!(
            " For {} of this those for whom it waited could run and got no CPU{who}: that was not the \
             lock's doing.",
            duration(self.ns)
        )
    }
}
