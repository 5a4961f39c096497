//! Which machine it is, by its registry.

use crate::found::{Found, Place};
use crate::machine::{Edition, Machine};
use crate::registry::{Key, Value};

/// Where the registry says which Windows it is.
const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
/// Where it says what kind: `WinNT`, `ServerNT`, or `LanmanNT` on a domain controller.
const PRODUCT: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\ProductOptions";
/// Where it says the machine's name.
const NAME: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName";

/// The keys that tell of the machine.
pub(super) const KEYS: [&str; 3] = [VERSION, PRODUCT, NAME];

/// What the values of the registry among `found` tell.
pub(super) fn of(found: &[Found]) -> Machine {
    let mut machine = Machine::default();
    let [version, product, computer] = KEYS.map(Key::new);
    for Found { place, value, .. } in found {
        let (Place::Registry { key, name }, Some(Value::Text(text))) = (place, value) else {
            continue;
        };
        let text = text.trim();
        let (key, name) = (Some(key), name.to_ascii_lowercase());
        if key == version.as_ref() {
            match name.as_str() {
                "currentbuildnumber" | "currentbuild" => {
                    machine.build = machine.build.or(text.parse().ok());
                }
                "editionid" => machine.edition = machine.edition.or(edition(text)),
                _ => {}
            }
        } else if key == product.as_ref() && name == "producttype" {
            // Says more of a server than its edition does, and nothing of which client it is.
            machine.edition = match text.to_ascii_lowercase().as_str() {
                "servernt" => Some(Edition::Server),
                "lanmannt" => Some(Edition::DomainController),
                _ => machine.edition,
            };
        } else if key == computer.as_ref() && name == "computername" {
            machine.name = Some(text.to_owned());
        }
    }
    machine
}

/// The edition of an `EditionID`, such as `Core` (Home), `ProfessionalWorkstation`, `EnterpriseS`.
fn edition(id: &str) -> Option<Edition> {
    let starts = |prefix: &str| {
        let start = id.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if starts("Server") {
        Some(Edition::Server)
    } else if starts("Core") || starts("Home") {
        Some(Edition::Home)
    } else if starts("Professional") {
        Some(Edition::Pro)
    } else if starts("Enterprise") || starts("Education") || starts("IoTEnterprise") {
        Some(Edition::Enterprise)
    } else {
        None
    }
}

/// Completes what is known of a machine by what another input tells of it.
pub fn complete(machine: &mut Machine, other: &Machine) {
    machine.name = machine.name.take().or_else(|| other.name.clone());
    machine.build = machine.build.or(other.build);
    machine.edition = match (machine.edition, other.edition) {
        // A member server by its edition may be a domain controller by its product type.
        (Some(Edition::Server), Some(Edition::DomainController)) => other.edition,
        (known, other) => known.or(other),
    };
}
