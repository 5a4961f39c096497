//! Recognition of traces that laglab's simulator wrote.

use etl::Trace;

use crate::ids::provider::LAGLAB_SIMULATOR;

/// Returns true if laglab's simulator wrote the trace. The simulator logs an event of [`LAGLAB_SIMULATOR`] at
/// the start of the trace. So this function reads only the first events.
pub fn is_simulated(trace: &Trace) -> bool {
    /// Maximum number of events that are searched. Other files of the trace can have earlier events. So the
    /// simulator's event need not be the first event.
    const SEARCHED: usize = 10_000;
    let mut events = trace.events();
    for _ in 0..SEARCHED {
        match events.next() {
            Some(event) if event.guid() == Some(LAGLAB_SIMULATOR) => return true,
            Some(_) => {}
            None => return false,
        }
    }
    false
}
