//! Machines and values in words, as several subcommands tell them.

use serde::Serialize;
use tune::catalogue::DefaultRule;
use tune::found::Found;
use tune::known::State;
use tune::registry::Value;

/// Which machine something is about, in its stable shape for programs.
#[derive(Serialize)]
pub(super) struct Machine {
    name: Option<String>,
    build: Option<u32>,
    edition: Option<&'static str>,
}

impl Machine {
    pub(super) fn new(machine: &tune::machine::Machine) -> Machine {
        Machine {
            name: machine.name.clone(),
            build: machine.build,
            edition: machine.edition.map(tune::machine::Edition::word),
        }
    }

    /// The same in a sentence, with what is to be done about what is not known.
    pub(super) fn sentence(&self) -> String {
        let name = self
            .name
            .as_deref()
            .unwrap_or("a machine without a known name");
        let build = match self.build {
            Some(build) => match crate::windows_release::windows_release(build) {
                Some(release) => format!("{release} (build {build})"),
                None => format!("Windows build {build}"),
            },
            None => "Windows of an unknown build (say --build)".to_owned(),
        };
        let edition = self.edition.unwrap_or("unknown (say --edition)");
        format!("{name}, {build}, edition {edition}")
    }
}

/// A default with where it holds.
pub(super) fn default_rule(rule: &DefaultRule) -> String {
    match rule.when.to_string() {
        when if when.is_empty() => rule.value.to_string(),
        when => format!("{} on {when}", rule.value),
    }
}

/// What is known of a place.
pub(super) fn state(state: &State) -> String {
    match state {
        State::Said(Found {
            value: Some(value), ..
        }) => value.to_string(),
        State::Said(_) | State::Absent => "not set".to_owned(),
        State::Unknown => "not told".to_owned(),
    }
}

/// A value, or that there is none.
pub(super) fn value(value: Option<&Value>) -> String {
    value.map_or("not set".to_owned(), Value::to_string)
}
