//! Settings that only a command can change: the command, its words for values, and the command that
//! reads the value.
//!
//! Sources: <https://learn.microsoft.com/powershell/module/smbshare/set-smbserverconfiguration>,
//! <https://learn.microsoft.com/powershell/module/smbshare/set-smbclientconfiguration>,
//! <https://learn.microsoft.com/powershell/module/netadapter/set-netadapterrss>,
//! <https://learn.microsoft.com/powershell/module/netadapter/set-netadapteradvancedproperty>,
//! <https://learn.microsoft.com/powershell/module/nettcpip/set-nettcpsetting>,
//! <https://learn.microsoft.com/powershell/module/nettcpip/set-netoffloadglobalsetting>,
//! <https://learn.microsoft.com/windows-server/administration/windows-commands/netsh-interface>,
//! <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>

use registry::Value;

use super::powershell::quoted;
use crate::catalogue::{Datum, PlacePattern, Setting};
use crate::placed_value::Place;

/// Command that sets a property.
enum Setter {
    /// Cmdlet whose parameter has the name of the property.
    Cmdlet {
        set: &'static str,
        /// Parameter that selects the object, if there are several.
        object: Option<&'static str>,
        /// Properties whose values are `$true` and `$false`. The values of all other properties are words or
        /// numbers.
        switches: &'static [&'static str],
    },
    /// `Set-NetAdapterAdvancedProperty`, whose properties are registry keywords.
    AdvancedProperty,
    /// `netsh int tcp set global`.
    Netsh,
}

/// Label in the output of `netsh int tcp show global`, and the parameter of `netsh int tcp set global`
/// for it.
const NETSH: [(&str, &str); 6] = [
    ("Receive-Side Scaling State", "rss"),
    ("Receive Window Auto-Tuning Level", "autotuninglevel"),
    ("Chimney Offload State", "chimney"),
    ("NetDMA State", "netdma"),
    ("RFC 1323 Timestamps", "timestamps"),
    ("Timestamps", "timestamps"),
];

const SMB_SWITCHES: &[&str] = &[
    "EnableSecuritySignature",
    "EnableSMB1Protocol",
    "EncryptData",
    "RejectUnencryptedAccess",
    "RequireSecuritySignature",
];

fn setter(command: &str) -> Option<Setter> {
    let cmdlet = |set, object, switches| Setter::Cmdlet {
        set,
        object,
        switches,
    };
    Some(match command {
        "Get-SmbServerConfiguration" => {
            cmdlet("Set-SmbServerConfiguration -Force", None, SMB_SWITCHES)
        }
        "Get-SmbClientConfiguration" => {
            cmdlet("Set-SmbClientConfiguration -Force", None, SMB_SWITCHES)
        }
        "Get-NetAdapterRss" => cmdlet("Set-NetAdapterRss", Some("Name"), &["Enabled"]),
        "Get-NetTCPSetting" => cmdlet("Set-NetTCPSetting", Some("SettingName"), &[]),
        "Get-NetOffloadGlobalSetting" => cmdlet("Set-NetOffloadGlobalSetting", None, &[]),
        "Get-NetAdapterAdvancedProperty" => Setter::AdvancedProperty,
        "netsh int tcp show global" => Setter::Netsh,
        _ => return None,
    })
}

/// Returns true if a plan can write to a place.
pub(super) fn is_writable(pattern: &PlacePattern) -> bool {
    match pattern {
        PlacePattern::Registry { .. } | PlacePattern::Boot { .. } | PlacePattern::Power { .. } => {
            true
        }
        PlacePattern::Answer { command, property } => match setter(command) {
            Some(Setter::Netsh) => netsh_parameter(property).is_some(),
            setter => setter.is_some(),
        },
        PlacePattern::Kernel { .. } => false,
    }
}

/// Returns a description of the input that contains the current value of a place.
pub(super) fn input_for(pattern: &PlacePattern) -> String {
    match pattern {
        PlacePattern::Registry { .. } => "the hive or an export of its whole key".to_owned(),
        PlacePattern::Boot { .. } => "the output of bcdedit /enum, or the BCD store".to_owned(),
        PlacePattern::Power { .. } => "the output of powercfg /qh".to_owned(),
        PlacePattern::Answer { command, .. } => format!("the output of {command}"),
        PlacePattern::Kernel { .. } => "a WinDbg log".to_owned(),
    }
}

/// Returns true if the command for a place restarts the network adapter, which closes its connections.
pub(super) fn restarts_adapter(place: &Place) -> bool {
    matches!(place, Place::Answer { command, .. } if command.starts_with("Get-NetAdapter"))
}

/// Returns true if the value of a place can be removed. Then the default applies.
pub(super) fn is_removable(place: &Place) -> bool {
    matches!(place, Place::Registry { .. } | Place::Boot { .. })
}

/// Returns true if a command can restore the current value.
pub(super) fn is_undoable(setting: &Setting, place: &Place, found: Option<&Value>) -> bool {
    let (Place::Answer { .. }, Some(found)) = (place, found) else {
        return found.is_some() || is_removable(place);
    };
    let read = setting.read(place, found).ok();
    read.is_some_and(|datum| match datum {
        Datum::Number(_) => word(setting, place, &datum).is_some(),
        // Only known words are accepted. An unknown word may be a translation, so its meaning is unknown.
        Datum::Text(_) => setting.allows(&datum) == Some(true),
    })
}

/// Returns the word that the command accepts for a value, if there is one.
pub(super) fn word(setting: &Setting, place: &Place, value: &Datum) -> Option<String> {
    let Place::Answer {
        command, property, ..
    } = place
    else {
        return value.number().map(|number| number.to_string());
    };
    let named = (setting.allowed.values.iter()).find(|named| named.is == *value);
    match setter(command)? {
        Setter::Cmdlet { switches, .. } if is_one_of(switches, property) => match value.number() {
            Some(0) => Some("False".to_owned()),
            Some(1) => Some("True".to_owned()),
            _ => None,
        },
        Setter::AdvancedProperty => value.number().map(|number| number.to_string()),
        Setter::Cmdlet { .. } | Setter::Netsh => {
            let name = named.and_then(|named| named.name.clone());
            match (name, value) {
                (Some(name), _) => Some(name),
                (None, Datum::Text(text)) => named.map(|_| text.clone()),
                (None, Datum::Number(number)) => Some(number.to_string()),
            }
        }
    }
}

/// Returns the command line that sets a property to a word.
pub(super) fn set(command: &str, object: &str, property: &str, word: &str) -> Option<String> {
    Some(match setter(command)? {
        Setter::Cmdlet {
            set,
            object: parameter,
            switches,
        } => {
            let object = argument(parameter, object);
            let value = match (is_one_of(switches, property), word) {
                (true, "True" | "1") => "$true".to_owned(),
                (true, "False" | "0") => "$false".to_owned(),
                (true, _) => return None,
                (false, word) => quoted(word),
            };
            format!("{set}{object} -{property} {value}")
        }
        Setter::AdvancedProperty => {
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            // Drivers also accept the text that Windows displays for a number.
            let parameter = if is_number {
                "RegistryValue"
            } else {
                "DisplayValue"
            };
            format!(
                "Set-NetAdapterAdvancedProperty -Name {} -RegistryKeyword {} -{parameter} {}",
                literal(object),
                literal(property),
                quoted(word)
            )
        }
        Setter::Netsh => format!(
            "netsh.exe int tcp set global {}={}",
            netsh_parameter(property)?,
            quoted(&word.to_lowercase())
        ),
    })
}

/// Returns a PowerShell expression for the current value of a property.
pub(super) fn get(command: &str, object: &str, property: &str) -> Option<String> {
    Some(match setter(command)? {
        Setter::Cmdlet {
            object: parameter, ..
        } => {
            format!("({command}{}).{property}", argument(parameter, object))
        }
        Setter::AdvancedProperty => format!(
            "({command} -Name {} -RegistryKeyword {}).RegistryValue",
            literal(object),
            literal(property)
        ),
        Setter::Netsh => format!(
            "(netsh.exe int tcp show global | Select-String -SimpleMatch {}) -replace '^.*: *', ''",
            quoted(property)
        ),
    })
}

/// Returns the argument that selects the object, such as ` -Name 'Ethernet'`.
fn argument(parameter: Option<&str>, object: &str) -> String {
    parameter.map_or(String::new(), |name| {
        format!(" -{name} {}", literal(object))
    })
}

/// Quotes the name of an object so that it matches only this object. Parameters that select objects accept
/// wildcards. The documentation says so for `Get-NetAdapterRss` and `Set-NetAdapterAdvancedProperty`. A
/// keyword such as `*RSS` would also match other keywords.
///
/// Wildcards: <https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_wildcards>
fn literal(name: &str) -> String {
    let mut escaped = String::new();
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '`') {
            escaped.push('`');
        }
        escaped.push(letter);
    }
    quoted(&escaped)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn netsh_parameter(label: &str) -> Option<&'static str> {
    let mut known = NETSH.iter();
    known
        .find(|(known, _)| known.eq_ignore_ascii_case(label))
        .map(|(_, parameter)| *parameter)
}
