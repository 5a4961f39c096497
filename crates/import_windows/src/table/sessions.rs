//! `trace`: the sessions that recorded the trace.

use tables::Sessions;
use tables::import::UnreadableEvents;

use crate::recording::info_of;
use crate::register::{TraceFacts, WholeTable};

impl WholeTable for Sessions {
    fn build(facts: &TraceFacts<'_>, _: &mut UnreadableEvents) -> Sessions {
        Sessions::from_info(&info_of(facts.trace))
    }
}
