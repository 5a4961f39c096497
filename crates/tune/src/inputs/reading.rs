//! What a reader has read so far.

use super::{Complaint, Complaints, Input};
use crate::found::{At, Found, Origin, Place};
use crate::machine::Machine;
use crate::registry::{Key, Value};

/// An input while it is read.
pub(super) struct Reading {
    pub(super) input: Input,
}

impl Reading {
    pub(super) fn new(name: &str, format: super::Format) -> Self {
        Self {
            input: Input {
                name: name.to_owned(),
                format,
                found: Vec::new(),
                deleted_keys: Vec::new(),
                policy_names: Vec::new(),
                machine: Machine::default(),
                complaints: Complaints::default(),
            },
        }
    }

    /// The input says that `place` is `value`.
    pub(super) fn found(&mut self, place: Place, value: Option<Value>, at: At) {
        let origin = self.origin(at);
        self.input.found.push(Found {
            place,
            value,
            origin,
        });
    }

    /// The input says that a value of the registry is `value`.
    pub(super) fn registry(&mut self, key: &Key, name: &str, value: Option<Value>, at: At) {
        let place = Place::Registry {
            key: key.clone(),
            name: name.to_owned(),
        };
        self.found(place, value, at);
    }

    /// The input says that a command answers `value`, if that is not empty.
    pub(super) fn answer(&mut self, command: &str, object: &str, name: &str, value: &str, at: At) {
        let place = Place::Answer {
            command: command.to_owned(),
            object: object.to_owned(),
            property: name.to_owned(),
        };
        let value = (!value.is_empty()).then(|| Value::Text(value.to_owned()));
        self.found(place, value, at);
    }

    /// The input deletes a key.
    pub(super) fn deleted(&mut self, key: Key, at: At) {
        let origin = self.origin(at);
        self.input.deleted_keys.push((key, origin));
    }

    /// Something in the input could not be read.
    pub(super) fn complain(&mut self, at: At, what: impl Into<String>) {
        let complaints = &mut self.input.complaints;
        let what = what.into();
        let complaint = Complaint { at, what };
        // What is said once need not be said again.
        if complaints.first.contains(&complaint) {
            return;
        }
        complaints.count += 1;
        if complaints.first.len() < Complaints::KEPT {
            complaints.first.push(complaint);
        }
    }

    fn origin(&self, at: At) -> Origin {
        Origin {
            source: self.input.name.clone(),
            at,
        }
    }
}

/// The number of a line, for its index.
pub(super) fn line(index: usize) -> At {
    At::Line(u32::try_from(index + 1).unwrap_or(u32::MAX))
}
