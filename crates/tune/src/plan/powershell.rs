//! Scripts of a plan for Windows PowerShell 5.1 and later.

use std::fmt::Write as _;

use registry::{Key, Value};

use super::{Change, Plan, command};
use crate::placed_value::Place;

const START: &str = "#Requires -RunAsAdministrator\r\n$ErrorActionPreference = 'Stop'\r\n";

/// Returns the script that applies the changes.
pub(super) fn apply(plan: &Plan) -> String {
    script(
        "Applies the changes of plan.md",
        plan.changes.iter(),
        |change| &change.to,
    )
}

/// Returns the script that undoes the changes in reverse order.
pub(super) fn undo(plan: &Plan) -> String {
    let changes = plan.changes.iter().rev();
    script("Undoes the changes of plan.md", changes, |change| {
        &change.from
    })
}

fn script<'a>(
    what: &str,
    changes: impl Iterator<Item = &'a Change>,
    value: impl Fn(&Change) -> &Option<Value>,
) -> String {
    let mut text = format!("# {what}. Run check.ps1 before and after.\r\n{START}");
    for change in changes {
        text.push_str("\r\n");
        match (&change.place, value(change)) {
            (Place::Registry { key, name }, Some(value)) => {
                let (kind, literal) = typed(value);
                let _ = write!(
                    text,
                    "[Microsoft.Win32.Registry]::SetValue({}, {}, {literal}, '{kind}')\r\n",
                    quoted(&key.long()),
                    quoted(name)
                );
            }
            (Place::Registry { key, name }, None) => remove(&mut text, key, name),
            (Place::Boot { entry, element }, Some(Value::Text(value))) => {
                let _ = write!(
                    text,
                    "bcdedit.exe /set {} {} {}\r\n{}",
                    quoted(entry),
                    quoted(element),
                    quoted(&value.to_lowercase()),
                    stop("bcdedit")
                );
            }
            (Place::Boot { entry, element }, _) => {
                let _ = write!(
                    text,
                    "bcdedit.exe /deletevalue {} {}\r\n{}",
                    quoted(entry),
                    quoted(element),
                    stop("bcdedit")
                );
            }
            (
                Place::Power {
                    scheme,
                    subgroup,
                    setting,
                    on_battery,
                },
                Some(Value::Dword(value)),
            ) => {
                let supply = if *on_battery { "dc" } else { "ac" };
                // Changed values of the active power scheme take effect when the scheme is activated
                // again.
                let _ = write!(
                    text,
                    "powercfg.exe /set{supply}valueindex {scheme} {subgroup} {setting} {value}\r\n{}\
                     if (\"$(powercfg.exe /getactivescheme)\" -match '{scheme}') {{\r\n\
                     \x20 powercfg.exe /setactive {scheme}\r\n  {}}}\r\n",
                    stop("powercfg"),
                    stop("powercfg")
                );
            }
            (
                Place::Answer {
                    command,
                    object,
                    property,
                },
                Some(Value::Text(word)),
            ) => {
                if let Some(line) = command::set(command, object, property, word) {
                    let _ = write!(text, "{line}\r\n");
                    if line.starts_with("netsh") {
                        text.push_str(&stop("netsh"));
                    }
                }
            }
            // Plans contain no other kinds of places.
            _ => {}
        }
    }
    text
}

/// Returns the line that stops the script if `program` failed. By default, PowerShell continues.
fn stop(program: &str) -> String {
    format!("if ($LASTEXITCODE -ne 0) {{ throw '{program} failed' }}\r\n")
}

fn remove(text: &mut String, key: &Key, name: &str) {
    let long = key.long();
    let (hive, path) = long.split_once('\\').unwrap_or((&long, ""));
    let hive = match hive {
        "HKEY_CURRENT_USER" => "CurrentUser",
        "HKEY_USERS" => "Users",
        "HKEY_CLASSES_ROOT" => "ClassesRoot",
        "HKEY_CURRENT_CONFIG" => "CurrentConfig",
        _ => "LocalMachine",
    };
    let _ = write!(
        text,
        "$key = [Microsoft.Win32.Registry]::{hive}.OpenSubKey({}, $true)\r\n\
         if ($null -ne $key) {{ $key.DeleteValue({}, $false); $key.Close() }}\r\n",
        quoted(path),
        quoted(name)
    );
}

/// Returns the script that prints the value of each place, and whether it is the old or the new value.
pub(super) fn check(plan: &Plan) -> String {
    let mut text = String::from(
        "# Prints for each setting of plan.md whether it has the value before or after the change. Changes nothing.\r\n\
         $ErrorActionPreference = 'Stop'\r\n\
         function Get-Shown($Key, $Name) {\r\n\
         \x20 $item = Get-Item -LiteralPath $Key -ErrorAction SilentlyContinue\r\n\
         \x20 if ($null -eq $item -or $item.GetValueNames() -notcontains $Name) { return 'not set' }\r\n\
         \x20 $value = $item.GetValue($Name, $null, 'DoNotExpandEnvironmentNames')\r\n\
         \x20 $kind = $item.GetValueKind($Name)\r\n\
         \x20 if ($value -is [byte[]]) { $value = ($value | ForEach-Object { $_.ToString('x2') }) -join ',' }\r\n\
         \x20 if ($value -is [string[]]) { $value = $value -join '|' }\r\n\
         \x20 return \"$kind $value\"\r\n\
         }\r\n\
         function Get-Element($Entry, $Element) {\r\n\
         \x20 $line = @(bcdedit.exe /enum $Entry) -match \"^$Element\\s\"\r\n\
         \x20 if ($line.Count -eq 0) { return 'not set' }\r\n\
         \x20 return ($line[0] -replace '^\\S+\\s+', '').Trim().ToLowerInvariant()\r\n\
         }\r\n\
         function Get-Power($Scheme, $Subgroup, $Setting, $Last) {\r\n\
         \x20 $numbers = @(powercfg.exe /qh $Scheme $Subgroup $Setting | Select-String ': 0x([0-9a-f]+)\\s*$')\r\n\
         \x20 return [string][Convert]::ToUInt32($numbers[-$Last].Matches[0].Groups[1].Value, 16)\r\n\
         }\r\n\
         $rows = @(\r\n",
    );
    for (place, change) in plan.changes.iter().enumerate() {
        let comma = if place == 0 { "" } else { ",\r\n" };
        let _ = write!(
            text,
            "{comma}  [pscustomobject]@{{ Place = {}; Now = {{ {} }}; Before = {}; After = {} }}",
            quoted(&change.place.to_string()),
            now(&change.place),
            quoted(&shown(change, change.from.as_ref())),
            quoted(&shown(change, change.to.as_ref()))
        );
    }
    text.push_str(
        "\r\n)\r\n\
         foreach ($row in $rows) {\r\n\
         \x20 $now = [string](& $row.Now)\r\n\
         \x20 $state = if ($now -ceq $row.After) { 'after' } elseif ($now -ceq $row.Before) { 'before' } else { 'neither' }\r\n\
         \x20 '{0,-8} {1} = {2} (before: {3}; after: {4})' -f $state, $row.Place, $now, $row.Before, $row.After\r\n\
         }\r\n",
    );
    text
}

/// Returns a PowerShell expression for the current value of a place, in the form of [`shown`].
fn now(place: &Place) -> String {
    match place {
        Place::Registry { key, name } => format!(
            "Get-Shown {} {}",
            quoted(&format!("Registry::{}", key.long())),
            quoted(name)
        ),
        Place::Boot { entry, element } => {
            format!("Get-Element {} {}", quoted(entry), quoted(element))
        }
        Place::Power {
            scheme,
            subgroup,
            setting,
            on_battery,
        } => {
            // The last number that `powercfg` prints is the value on battery, and the number before it
            // is the value on mains.
            let last = if *on_battery { 1 } else { 2 };
            format!("Get-Power '{scheme}' '{subgroup}' '{setting}' {last}")
        }
        Place::Answer {
            command,
            object,
            property,
        } => {
            let now = command::get(command, object, property).unwrap_or_default();
            format!("([string]({now})).ToLowerInvariant()")
        }
        // Plans contain no kernel variables.
        Place::Kernel { .. } => String::new(),
    }
}

/// Returns the registry type and the PowerShell literal of a value.
fn typed(value: &Value) -> (&'static str, String) {
    let bytes = |bytes: &[u8]| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        format!("[byte[]]@({})", bytes.join(", "))
    };
    match value {
        Value::Text(text) => ("String", quoted(text)),
        Value::Expandable(text) => ("ExpandString", quoted(text)),
        // In .NET, DWord and QWord values are signed numbers.
        Value::Dword(number) => ("DWord", format!("[int]({})", number.cast_signed())),
        Value::Qword(number) => ("QWord", format!("[long]({})", number.cast_signed())),
        Value::List(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
            ("MultiString", format!("[string[]]@({})", lines.join(", ")))
        }
        Value::Binary(data) => ("Binary", bytes(data)),
        // The .NET functions cannot write these types, but undo.reg can.
        Value::None => ("None", bytes(&[])),
        Value::Other(_, data) => ("None", bytes(data)),
    }
}

/// Formats a value in the same form as `check.ps1`.
fn shown(change: &Change, value: Option<&Value>) -> String {
    match (&change.place, value) {
        (_, None) => "not set".to_owned(),
        (Place::Registry { .. }, Some(value)) => shown_in_registry(value),
        (Place::Power { .. }, Some(Value::Dword(number))) => number.to_string(),
        (place, Some(value)) => {
            // In JSON output a property has a number where PowerShell text output has a word.
            let datum = change.setting.read(place, value).ok();
            let word = datum.and_then(|datum| command::word(change.setting, place, &datum));
            let text = match (place, value, word) {
                (Place::Answer { .. }, _, Some(word)) => word,
                (_, Value::Text(text), _) => text.clone(),
                (_, value, _) => value.to_string(),
            };
            text.to_lowercase()
        }
    }
}

fn shown_in_registry(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("String {text}"),
        Value::Expandable(text) => format!("ExpandString {text}"),
        Value::Dword(number) => format!("DWord {}", number.cast_signed()),
        Value::Qword(number) => format!("QWord {}", number.cast_signed()),
        Value::List(lines) => format!("MultiString {}", lines.join("|")),
        value @ Value::Binary(_) => format!("Binary {value}"),
        value => format!("None {value}"),
    }
}

/// Quotes text in single quotation marks. Inside them, PowerShell interprets only single quotation marks
/// and their typographic variants.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for letter in text.chars() {
        if matches!(letter, '\'' | '\u{2018}'..='\u{201B}') {
            quoted.push(letter);
        }
        quoted.push(letter);
    }
    quoted.push('\'');
    quoted
}
