//! Stacks that are logged as separate events, after the event to which they belong.

use std::collections::VecDeque;

use etl::{Event, le};
use events::ids::hook;
use rustc_hash::FxHashSet;

/// Number of kept events whose times are stored. Recent times are enough: a stack is logged directly after its event,
/// or when the thread next returns to user mode.
const REMEMBERED: usize = 1 << 20;

/// Returns the raw time of the event to which a stack belongs. `event` is `StackWalk/Stack` or a reference to a stack
/// by key. Both begin with this time. Returns `None` for other events.
pub(crate) fn time_of_event(event: &Event<'_>) -> Option<i64> {
    match event.hook()? {
        hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER => le::i64(event.payload(), 0),
        _ => None,
    }
}

/// Times of the events that were kept most recently.
#[derive(Debug, Default)]
pub(crate) struct KeptTimes {
    times: FxHashSet<i64>,
    order: VecDeque<i64>,
}

impl KeptTimes {
    /// Adds the time of a kept event. Times must be added in ascending order.
    pub(crate) fn add(&mut self, time: i64) {
        if !self.times.insert(time) {
            return;
        }
        self.order.push_back(time);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
    }

    /// Returns true if a recently kept event has the time `time`.
    pub(crate) fn contains(&self, time: i64) -> bool {
        self.times.contains(&time)
    }
}
