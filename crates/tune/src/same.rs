//! Comparison of two values of a setting by their effect.

use rules::quantum::Win32PrioritySeparation;

use crate::catalogue::{Datum, Setting};
use crate::machine::Machine;

/// Id of the setting `Win32PrioritySeparation`. Many of its values have the same effect, and clients and
/// servers interpret it differently.
const QUANTA: &str = "win32prioritysep";

/// Returns true if two values have the same effect, each on its own machine. If the edition of one machine is
/// unknown, the edition of the other machine is assumed. If both are unknown, the effect must be the same on
/// clients and on servers.
pub(crate) fn have_same_effect(
    setting: &Setting,
    (a, machine_a): (&Datum, &Machine),
    (b, machine_b): (&Datum, &Machine),
) -> bool {
    let (Some(first), Some(second)) = (quanta(setting, a), quanta(setting, b)) else {
        return a == b;
    };
    let edition_a = machine_a.edition.or(machine_b.edition);
    let edition_b = machine_b.edition.or(machine_a.edition);
    let kinds = match (edition_a, edition_b) {
        (Some(a), Some(b)) => vec![(a.is_server(), b.is_server())],
        _ => vec![(false, false), (true, true)],
    };
    (kinds.iter()).all(|(a, b)| first.decode(*a) == second.decode(*b))
}

fn quanta(setting: &Setting, value: &Datum) -> Option<Win32PrioritySeparation> {
    let number = value.number().filter(|_| setting.id == QUANTA)?;
    u32::try_from(number).ok().map(Win32PrioritySeparation)
}
