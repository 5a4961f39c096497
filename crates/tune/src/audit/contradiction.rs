//! Places that say different things of one setting.

use super::{Finding, Kind, Remark};
use crate::catalogue::Datum;
use crate::found::Place;

/// The legacy value whose bit 1 is TCP timestamps, and the setting that says the same now.
const TCP_1323: &str = "tcp1323opts";
const TIMESTAMPS: &str = "tcp_timestamps";

/// Adds to findings that another one contradicts what that says.
pub(super) fn add(findings: &mut [Finding]) {
    let mut said = Vec::new();
    for (one, finding) in findings.iter().enumerate() {
        for (other, against) in findings.iter().enumerate() {
            let is_pair = finding.setting.id == against.setting.id
                && is_about_the_machine(&finding.found.place)
                && is_about_the_machine(&against.found.place);
            let (Some(value), Some(contrary)) = (&finding.value, &against.value) else {
                continue;
            };
            let contrary_to = if is_pair && one != other {
                value != contrary
            } else {
                finding.setting.id == TCP_1323
                    && against.setting.id == TIMESTAMPS
                    && are_timestamps_contrary(value, contrary)
            };
            if contrary_to {
                let says = format!(
                    "{} says {contrary} ({}).",
                    against.found.place, against.found.origin
                );
                said.push((one, says));
            }
        }
    }
    for (one, says) in said {
        findings[one].remarks.push(Remark {
            kind: Kind::Contradiction,
            says,
        });
    }
}

/// Whether a place is there once on a machine, not once for each adapter, scheme or policy.
fn is_about_the_machine(place: &Place) -> bool {
    match place {
        Place::Registry { key, .. } => !key.as_str().contains(['{', '}']),
        Place::Answer { object, .. } => object.is_empty(),
        Place::Boot { .. } | Place::Power { .. } | Place::Kernel { .. } => false,
    }
}

/// Whether the legacy bit for timestamps says the opposite of what is in effect.
fn are_timestamps_contrary(legacy: &Datum, now: &Datum) -> bool {
    let asked = legacy.number().map(|bits| bits & 2 != 0);
    let now = match now {
        Datum::Number(number) => Some(*number != 0),
        Datum::Text(word) if word.eq_ignore_ascii_case("enabled") => Some(true),
        Datum::Text(word) if word.eq_ignore_ascii_case("disabled") => Some(false),
        // `allowed` is neither.
        Datum::Text(_) => None,
    };
    matches!((asked, now), (Some(asked), Some(now)) if asked != now)
}
