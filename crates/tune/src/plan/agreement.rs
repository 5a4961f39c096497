//! Comparison of the values in a plan with the values of a machine.

use crate::inputs::Input;
use crate::placed_value::Place;
use crate::state::{State, States};

/// Returns the places that one of the plan's files (`apply.reg` or `undo.reg`) sets or deletes, each with a
/// flag. The flag is true if the machine has the value of the file at this place. If the inputs of the machine
/// do not show the state of a place, the place is left out.
pub fn agreement(planned: &[Input], machine: &[Input]) -> Vec<(Place, bool)> {
    let states = States::new(machine);
    let places = planned.iter().flat_map(|input| &input.found);
    let known = places.filter_map(|wanted| match states.state(&wanted.place) {
        State::Unknown => None,
        state => Some((wanted.place.clone(), state.value() == wanted.value.as_ref())),
    });
    known.collect()
}
