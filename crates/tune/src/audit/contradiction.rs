//! Detection of settings whose values contradict each other.

use std::collections::HashMap;

use super::{Finding, Kind, Remark};
use crate::catalogue::Datum;
use crate::placed_value::Place;

/// Id of the legacy setting. Bit 1 of its value enables TCP timestamps.
const TCP_1323: &str = "tcp1323opts";
const TIMESTAMPS: &str = "tcp_timestamps";

/// Adds a remark to each finding whose value contradicts the value of another finding.
pub(super) fn add(findings: &mut [Finding]) {
    let mut by_setting: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, finding) in findings.iter().enumerate() {
        if is_machine_wide(finding) {
            let id = finding.setting.id.as_str();
            by_setting.entry(id).or_default().push(number);
        }
    }
    let entries = |id: &str| by_setting.get(id).map_or(&[][..], Vec::as_slice);
    let mut remarks = Vec::new();
    for (one, finding) in findings.iter().enumerate() {
        let Some(value) = &finding.value else {
            continue;
        };
        let mut say = |against: &Finding, contrary: &Datum| {
            let (place, origin) = (&against.found.place, &against.found.origin);
            remarks.push((one, format!("{place} is {contrary} ({origin}).")));
        };
        let others = if is_machine_wide(finding) {
            entries(&finding.setting.id)
        } else {
            &[]
        };
        for against in others.iter().map(|other| &findings[*other]) {
            if let Some(contrary) = against.value.as_ref().filter(|other| *other != value) {
                say(against, contrary);
            }
        }
        if finding.setting.id == TCP_1323 {
            // Each TCP template has a separate setting for timestamps.
            let stamps = findings
                .iter()
                .filter(|other| other.setting.id == TIMESTAMPS);
            for against in stamps {
                let contrary = against.value.as_ref();
                if let Some(contrary) = contrary.filter(|now| are_timestamps_contrary(value, now)) {
                    say(against, contrary);
                }
            }
        }
    }
    for (one, says) in remarks {
        findings[one].remarks.push(Remark {
            kind: Kind::Contradiction,
            says,
        });
    }
}

/// Returns true if the location of a finding exists only once on a machine. Some locations exist for each
/// adapter, device, power scheme or policy.
fn is_machine_wide(finding: &Finding) -> bool {
    match &finding.found.place {
        Place::Registry { key, .. } => {
            let places = finding.setting.places.iter();
            let mut here = places.filter(|place| place.matches(&finding.found.place));
            here.any(|place| place.open_parts(key).is_empty())
        }
        Place::Answer { object, .. } => object.is_empty(),
        Place::Boot { .. } | Place::Power { .. } | Place::Kernel { .. } => false,
    }
}

/// Returns true if the timestamp bit of the legacy setting contradicts `now`, the value of the setting that
/// replaced it.
fn are_timestamps_contrary(legacy: &Datum, now: &Datum) -> bool {
    let is_on = legacy.number().map(|bits| bits & 2 != 0);
    let now = match now {
        Datum::Number(number) => Some(*number != 0),
        Datum::Text(word) if word.eq_ignore_ascii_case("enabled") => Some(true),
        Datum::Text(word) if word.eq_ignore_ascii_case("disabled") => Some(false),
        // `allowed` is neither on nor off.
        Datum::Text(_) => None,
    };
    matches!((is_on, now), (Some(is_on), Some(now)) if is_on != now)
}
