//! Elements of the entries in a boot configuration (BCD) store. An element has a number, a name and a value.
//!
//! Numbers: <https://learn.microsoft.com/previous-versions/windows/desktop/bcd/bcdosloaderelementtypes>,
//! names: <https://learn.microsoft.com/windows-hardware/drivers/devtest/bcdedit--set>

use crate::Value;

/// GUID of the boot manager's entry.
pub const BOOT_MANAGER: &str = "{9dea862c-5cdd-4e70-acc1-f32b344d4795}";

/// Number of the boot manager's element that contains the GUID of the default entry.
pub const DEFAULT_OBJECT: u32 = 0x2300_0003;

/// Entries that `bcdedit` shows with a name in place of the GUID.
const WELL_KNOWN: [(&str, &str); 4] = [
    (BOOT_MANAGER, "{bootmgr}"),
    (
        "{6efb52bf-1766-41db-a6b3-0ee5eff72bd7}",
        "{bootloadersettings}",
    ),
    ("{7ea2e1ac-2e61-4728-aaa3-896d9d0a9f0e}", "{globalsettings}"),
    (
        "{7ff607e0-4395-11db-b0de-0800200c9a66}",
        "{hypervisorsettings}",
    ),
];

/// Returns the name that `bcdedit` shows for the entry with the GUID `id`. Returns `None` if `bcdedit` shows
/// the GUID.
pub fn entry_name(id: &str) -> Option<&'static str> {
    let mut known = WELL_KNOWN.iter();
    known
        .find(|(known, _)| known.eq_ignore_ascii_case(id))
        .map(|(_, name)| *name)
}

/// Numbers and names of the elements that affect how Windows runs. Bits 24 to 27 of the number are the type
/// of the element.
const ELEMENTS: [(u32, &str); 42] = [
    (0x1200_0002, "path"),
    (0x1200_0004, "description"),
    (0x1500_0007, "truncatememory"),
    (0x1600_0009, "recoveryenabled"),
    (0x1600_0010, "bootdebug"),
    (0x1600_0048, "nointegritychecks"),
    (0x1600_0049, "testsigning"),
    (0x2200_0002, "systemroot"),
    (0x2500_0020, "nx"),
    (0x2500_0021, "pae"),
    (0x2600_0022, "winpe"),
    (0x2600_0030, "nolowmem"),
    (0x2500_0031, "removememory"),
    (0x2500_0032, "increaseuserva"),
    (0x2600_0040, "vga"),
    (0x2600_0041, "quietboot"),
    (0x2500_0050, "clustermodeaddressing"),
    (0x2600_0051, "usephysicaldestination"),
    (0x2500_0052, "restrictapiccluster"),
    (0x2600_0054, "uselegacyapicmode"),
    (0x2500_0055, "x2apicpolicy"),
    (0x2600_0060, "onecpu"),
    (0x2500_0061, "numproc"),
    (0x2600_0062, "maxproc"),
    (0x2500_0063, "configflags"),
    (0x2600_0064, "maxgroup"),
    (0x2600_0065, "groupaware"),
    (0x2500_0066, "groupsize"),
    (0x2600_0070, "usefirmwarepcisettings"),
    (0x2500_0071, "msi"),
    (0x2500_0072, "pciexpress"),
    (0x2500_0080, "safeboot"),
    (0x2600_0090, "bootlog"),
    (0x2600_0091, "sos"),
    (0x2600_00a0, "debug"),
    (0x2600_00a2, "useplatformclock"),
    (0x2600_00a3, "forcelegacyplatform"),
    (0x2600_00a4, "useplatformtick"),
    (0x2600_00a5, "disabledynamictick"),
    (0x2500_00a6, "tscsyncpolicy"),
    (0x2500_00f0, "hypervisorlaunchtype"),
    (0x2600_00f2, "hypervisordebug"),
];

/// Elements whose values `bcdedit` shows as words. The word at index `n` belongs to the value `n`.
const WORDS: [(&str, &[&str]); 7] = [
    ("hypervisorlaunchtype", &["Off", "Auto"]),
    ("msi", &["Default", "ForceDisable"]),
    ("nx", &["OptIn", "OptOut", "AlwaysOff", "AlwaysOn"]),
    ("pae", &["Default", "ForceEnable", "ForceDisable"]),
    ("pciexpress", &["Default", "ForceDisable"]),
    ("tscsyncpolicy", &["Default", "Legacy", "Enhanced"]),
    ("x2apicpolicy", &["Disable", "Enable", "Default"]),
];

/// Returns the name of an element. Returns the number in hexadecimal if the element is unknown.
pub fn element_name(number: u32) -> String {
    let mut known = ELEMENTS.iter();
    known
        .find(|(known, _)| *known == number)
        .map_or_else(|| format!("{number:#010x}"), |(_, name)| (*name).to_owned())
}

/// Returns true if the element called `name` has boolean values.
pub fn is_boolean(name: &str) -> bool {
    let mut known = ELEMENTS.iter();
    known.any(|(number, known)| known.eq_ignore_ascii_case(name) && number >> 24 & 0xF == 6)
}

/// Formats the value of an element like the English `bcdedit`. Returns `None` for devices, objects and
/// lists.
pub fn element_text(number: u32, value: &Value) -> Option<String> {
    match (number >> 24 & 0xF, value) {
        (2, Value::Text(text)) => Some(text.clone()),
        (5, Value::Binary(bytes)) if bytes.len() <= 8 => {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            let integer = u64::from_le_bytes(eight);
            let name = element_name(number);
            let words = WORDS.iter().find(|(known, _)| *known == name);
            let word = words.and_then(|(_, words)| words.get(usize::try_from(integer).ok()?));
            Some(word.map_or_else(|| integer.to_string(), |word| (*word).to_owned()))
        }
        (6, Value::Binary(bytes)) => {
            let is_off = bytes.first() == Some(&0);
            Some(if is_off { "No" } else { "Yes" }.to_owned())
        }
        _ => None,
    }
}
