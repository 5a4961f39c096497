//! Stacks that are logged as events of their own follow the event they belong to.

use std::collections::VecDeque;

use etl::{Event, le};
use rustc_hash::FxHashSet;

/// How many times of kept events are remembered. Stacks come with their event, or when its thread
/// next returns to user mode.
const REMEMBERED: usize = 1 << 20;

/// The raw time of the event whose stack this event is: `StackWalk/Stack` and the references to
/// stacks by key all begin with it.
pub(crate) fn time_of_event(event: &Event<'_>) -> Option<i64> {
    match event.hook()? {
        0x1820 | 0x1825 | 0x1826 => le::i64(event.payload(), 0),
        _ => None,
    }
}

/// The times of the events kept last.
#[derive(Debug, Default)]
pub(crate) struct KeptTimes {
    times: FxHashSet<i64>,
    order: VecDeque<i64>,
}

impl KeptTimes {
    /// Remembers a time; times come in order.
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

    /// Whether an event of that time was kept.
    pub(crate) fn contains(&self, time: i64) -> bool {
        self.times.contains(&time)
    }
}
