//! Texts about machines, defaults and values.

use registry::Value;
use tune::catalogue::DefaultRule;
use tune::machine::{Edition, Machine};
use tune::state::State;

/// Describes a machine. For unknown properties, the text names the options that set them.
pub(super) fn machine(machine: &Machine) -> String {
    let name = machine
        .name
        .as_deref()
        .unwrap_or("a machine of unknown name");
    let build = match machine.build {
        Some(build) => match facts::windows_release(build) {
            Some(release) => format!("{release} (build {build})"),
            None => format!("Windows build {build}"),
        },
        None => "unknown build of Windows (give --build)".to_owned(),
    };
    let edition = machine.edition.map(Edition::word);
    let edition = edition.unwrap_or("unknown (give --edition)");
    format!("{name}, {build}, edition {edition}")
}

/// Describes a default value and the machines that have it.
pub(super) fn default_rule(rule: &DefaultRule) -> String {
    match rule.when.to_string() {
        when if when.is_empty() => rule.value.to_string(),
        when => format!("{} on {when}", rule.value),
    }
}

/// Describes whether a value is set, and its content.
pub(super) fn state(state: &State) -> String {
    match state {
        State::Set(found) => value(found.value.as_ref()),
        State::Absent => "not set".to_owned(),
        State::Unknown => "unknown".to_owned(),
    }
}

/// Formats a value; "not set" for `None`.
pub(super) fn value(value: Option<&Value>) -> String {
    value.map_or("not set".to_owned(), Value::to_string)
}
