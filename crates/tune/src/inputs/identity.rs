//! Identification of a machine by its registry values.

use registry::{Key, Value};

use crate::machine::{Edition, Machine};
use crate::placed_value::{Place, PlacedValue};

/// Registry key with the build and edition.
const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
/// Registry key with the product type: `WinNT`, `ServerNT`, or `LanmanNT` on a domain controller.
const PRODUCT: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\ProductOptions";
/// Registry key with the name of the machine.
const NAME: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName";

/// Registry keys that identify the machine.
pub(super) const KEYS: [&str; 3] = [VERSION, PRODUCT, NAME];

/// Identifies the machine from registry values.
pub(super) fn identify(found: &[PlacedValue]) -> Machine {
    let mut machine = Machine::default();
    let [version, product, computer] = KEYS.map(Key::new);
    for PlacedValue { place, value, .. } in found {
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
            // The product type shows that a machine is a server or a domain controller, but not which
            // client edition it has.
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

/// Returns the edition for an `EditionID`, such as `Core` (Home), `ProfessionalWorkstation`,
/// `EnterpriseS`.
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

/// Fills the unknown fields of `machine` from `other`.
pub fn complete(machine: &mut Machine, other: &Machine) {
    machine.name = machine.name.take().or_else(|| other.name.clone());
    machine.build = machine.build.or(other.build);
    machine.edition = match (machine.edition, other.edition) {
        // The edition in `machine` is only "server". The product type in another input shows a domain
        // controller.
        (Some(Edition::Server), Some(Edition::DomainController)) => other.edition,
        (known, other) => known.or(other),
    };
}
