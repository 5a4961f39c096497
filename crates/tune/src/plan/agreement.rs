//! Comparison of a plan's values with those of a machine.

use crate::found::Place;
use crate::inputs::Input;
use crate::state::{State, States};

/// Returns the places that one of the plan's files (`apply.reg` or `undo.reg`) sets or deletes, if the inputs of
/// the machine know them. The second value is true if the place has the value of the file.
pub fn agreement(planned: &[Input], machine: &[Input]) -> Vec<(Place, bool)> {
    let states = States::new(machine);
    let places = planned.iter().flat_map(|input| &input.found);
    let known = places.filter_map(|wanted| match states.state(&wanted.place) {
        State::Unknown => None,
        state => Some((wanted.place.clone(), state.value() == wanted.value.as_ref())),
    });
    known.collect()
}
