//! State of an input while it is read.

use std::sync::Arc;

use registry::{Key, Value};

use super::{Complaint, Complaints, Format, Input};
use crate::machine::Machine;
use crate::observation::{Observation, Quantity, Subject};
use crate::placed_value::{InputPosition, Origin, Place, PlacedValue};

/// Collects the findings and complaints of one input.
pub(super) struct Reading {
    pub(super) input: Input,
    source: Arc<str>,
}

impl Reading {
    pub(super) fn new(name: &str, format: Format) -> Self {
        Self {
            input: Input {
                name: name.to_owned(),
                format,
                found: Vec::new(),
                observed: Vec::new(),
                deleted_keys: Vec::new(),
                policy_names: Vec::new(),
                machine: Machine::default(),
                complaints: Complaints::default(),
            },
            source: name.into(),
        }
    }

    /// Adds a value that the input sets. If `value` is `None`, the input deletes the value.
    pub(super) fn found(&mut self, place: Place, value: Option<Value>, at: InputPosition) {
        let origin = self.origin(at);
        self.input.found.push(PlacedValue {
            place,
            value,
            origin,
        });
    }

    /// Adds a registry value. If `value` is `None`, the input deletes the value.
    pub(super) fn registry(
        &mut self,
        key: &Key,
        name: &str,
        value: Option<Value>,
        at: InputPosition,
    ) {
        let place = Place::Registry {
            key: key.clone(),
            name: name.to_owned(),
        };
        self.found(place, value, at);
    }

    /// Adds a property in the output of a command. An empty value is not added, so the property stays
    /// unknown.
    pub(super) fn answer(
        &mut self,
        command: &str,
        object: &str,
        name: &str,
        value: &str,
        at: InputPosition,
    ) {
        if value.trim().is_empty() {
            return;
        }
        let place = Place::Answer {
            command: command.into(),
            object: object.into(),
            property: name.into(),
        };
        self.found(place, Some(Value::Text(value.to_owned())), at);
    }

    /// Adds a value that is not a setting.
    pub(super) fn observed(
        &mut self,
        name: &'static str,
        subject: Option<Subject>,
        quantity: Quantity,
        at: InputPosition,
    ) {
        let origin = self.origin(at);
        self.input.observed.push(Observation {
            name,
            subject,
            quantity,
            origin,
        });
    }

    /// Adds a registry key that the input deletes.
    pub(super) fn deleted(&mut self, key: Key, at: InputPosition) {
        let origin = self.origin(at);
        self.input.deleted_keys.push((key, origin));
    }

    /// Adds a complaint, unless the list already contains it.
    pub(super) fn complain(&mut self, at: InputPosition, what: impl Into<String>) {
        let complaints = &mut self.input.complaints;
        let what = what.into();
        let complaint = Complaint { at, what };
        if complaints.first.contains(&complaint) {
            return;
        }
        complaints.count += 1;
        if complaints.first.len() < Complaints::MAX_LISTED {
            complaints.first.push(complaint);
        }
    }

    fn origin(&self, at: InputPosition) -> Origin {
        let source = Arc::clone(&self.source);
        Origin { source, at }
    }
}

/// Returns the position for the index of a line. Line numbers start at 1.
pub(super) fn line(index: usize) -> InputPosition {
    InputPosition::Line(u32::try_from(index + 1).unwrap_or(u32::MAX))
}
