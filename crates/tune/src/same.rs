//! Whether two values of a setting are one to Windows.

use crate::catalogue::{Datum, Setting};
use crate::decode::quantum::Win32PrioritySeparation;
use crate::machine::Machine;

/// The setting of which many numbers are one meaning, which is another on servers.
const QUANTA: &str = "win32prioritysep";

/// Whether values of a setting do the same, each on its machine. Where an edition is not known, it is
/// taken to be that of the other machine; if neither is, they must do so on clients and on servers.
pub(crate) fn do_the_same(
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
