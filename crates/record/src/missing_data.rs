//! Reasons why a theory has no answer, and advice for the next recording.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::Needs;
use crate::advice::{command, merged};
use crate::linux::Advice;

/// Data that a theory needs and that a recording lacks. Formatted, it is advice that can follow the word "record".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingData {
    /// Events of Windows.
    Events(&'static Needs),
    /// Events or facts of Linux.
    LinuxEvents(&'static Advice),
    /// Ranks of threads. Only Windows 10 1709 and later record them, so recording on the same machine again would not
    /// help.
    Ranks,
    /// Files of a single system without a restart in between.
    OneSystem,
}

impl fmt::Display for MissingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingData::Events(needs) => needs.fmt(f),
            MissingData::LinuxEvents(advice) => advice.fmt(f),
            MissingData::Ranks => f.write_str(
                "a machine with Windows 10 1709 or later: only these versions record ranks",
            ),
            MissingData::OneSystem => f.write_str(
                "one system without a restart in between, or explain these files one by one",
            ),
        }
    }
}

impl Serialize for MissingData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl MissingData {
    /// Returns true if complete recordings can lack this data, because the events occur only if something happens.
    pub fn is_rare(self) -> bool {
        matches!(self, MissingData::Events(needs) if needs.only_if_any)
    }

    /// Formats the data that several theories lack, each kind once. The text can follow the word "record". Returns
    /// `None` if no theory lacks data.
    pub fn advice(all: &[MissingData]) -> Option<String> {
        let events = events(all);
        let others = all.iter().filter_map(|missing| match missing {
            MissingData::Events(_) => None,
            MissingData::Ranks if !events.is_empty() => Some(format!("for ranks, {missing}")),
            _ => Some(missing.to_string()),
        });
        let others: BTreeSet<String> = others.collect();
        let events = (!events.is_empty()).then(|| merged(&events));
        let texts: Vec<String> = events.into_iter().chain(others).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Formats the shortest way to record the data that several theories lack: one command of laglab for Windows, or
    /// the events of Linux. The text can follow the word "record". Returns `None` if no theory lacks data.
    pub fn command(all: &[MissingData]) -> Option<String> {
        let events = events(all);
        if events.is_empty() {
            MissingData::advice(all)
        } else {
            Some(command(&events))
        }
    }
}

/// Returns the needs of the theories that lack events of Windows.
fn events(all: &[MissingData]) -> Vec<&'static Needs> {
    let events = all.iter().filter_map(|missing| match missing {
        MissingData::Events(needs) => Some(*needs),
        _ => None,
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{linux, needs};

    #[test]
    fn advice_names_each_missing_thing_once() {
        let events = |theory| MissingData::Events(needs::for_theory(theory).unwrap());
        assert_eq!(MissingData::advice(&[]), None);
        assert_eq!(
            MissingData::advice(&[MissingData::Ranks, MissingData::Ranks]),
            Some(MissingData::Ranks.to_string())
        );
        let saturation = events("saturation");
        let both = MissingData::advice(&[MissingData::Ranks, saturation, saturation]);
        let both = both.unwrap();
        assert_eq!(both.matches("context switches").count(), 1, "{both}");
        assert!(both.contains("; for ranks, a machine with "), "{both}");
        let of_linux = |theory| MissingData::LinuxEvents(linux::for_theory(theory).unwrap());
        let waits = of_linux("long-waits");
        assert_eq!(
            MissingData::advice(&[waits, of_linux("saturation")]),
            Some(waits.to_string())
        );
    }
}
