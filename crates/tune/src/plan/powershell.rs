//! A plan as scripts for Windows PowerShell 5.1 and later.

use std::fmt::Write as _;

use super::{Change, Plan};
use crate::found::Place;
use crate::registry::{Key, Value};

const START: &str = "#Requires -RunAsAdministrator\r\n$ErrorActionPreference = 'Stop'\r\n";

/// Makes the changes.
pub(super) fn apply(plan: &Plan) -> String {
    script(
        "Makes the changes of plan.md",
        plan.changes.iter(),
        |change| &change.to,
    )
}

/// Undoes them, the last first.
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
                    "bcdedit.exe /set {} {} {}\r\n{STOP}",
                    quoted(entry),
                    quoted(element),
                    quoted(&value.to_lowercase())
                );
            }
            (Place::Boot { entry, element }, _) => {
                let _ = write!(
                    text,
                    "bcdedit.exe /deletevalue {} {}\r\n{STOP}",
                    quoted(entry),
                    quoted(element)
                );
            }
            // A plan has no other places.
            _ => {}
        }
    }
    text
}

/// Programs do not stop a script by failing.
const STOP: &str = "if ($LASTEXITCODE -ne 0) { throw 'bcdedit failed' }\r\n";

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

/// Says of each place what is there, and whether that is as before or as after the change.
pub(super) fn check(plan: &Plan) -> String {
    let mut text = String::from(
        "# Says whether the places of plan.md are as before or as after the change. Changes nothing.\r\n\
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
         $rows = @(\r\n",
    );
    let registry = plan
        .changes
        .iter()
        .filter_map(|change| match &change.place {
            Place::Registry { key, name } => Some((change, key, name)),
            _ => None,
        });
    for (place, (change, key, name)) in registry.enumerate() {
        let comma = if place == 0 { "" } else { ",\r\n" };
        let _ = write!(
            text,
            "{comma}  [pscustomobject]@{{ Key = {}; Name = {}; Before = {}; After = {} }}",
            quoted(&format!("Registry::{}", key.long())),
            quoted(name),
            quoted(&shown(change.from.as_ref())),
            quoted(&shown(change.to.as_ref()))
        );
    }
    text.push_str(
        "\r\n)\r\n\
         foreach ($row in $rows) {\r\n\
         \x20 $now = Get-Shown $row.Key $row.Name\r\n\
         \x20 $state = if ($now -ceq $row.After) { 'after' } elseif ($now -ceq $row.Before) { 'before' } else { 'neither' }\r\n\
         \x20 '{0,-8} {1}\\{2} = {3}' -f $state, $row.Key, $row.Name, $now\r\n\
         }\r\n",
    );
    for change in &plan.changes {
        if let Place::Boot { entry, .. } = &change.place {
            let _ = write!(text, "bcdedit.exe /enum {}\r\n", quoted(entry));
        }
    }
    text
}

/// A value's kind and how a script writes it.
fn typed(value: &Value) -> (&'static str, String) {
    let bytes = |bytes: &[u8]| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        format!("[byte[]]@({})", bytes.join(", "))
    };
    match value {
        Value::Text(text) => ("String", quoted(text)),
        Value::Expandable(text) => ("ExpandString", quoted(text)),
        // What .NET keeps of both is signed.
        Value::Dword(number) => ("DWord", format!("[int]({})", number.cast_signed())),
        Value::Qword(number) => ("QWord", format!("[long]({})", number.cast_signed())),
        Value::List(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
            ("MultiString", format!("[string[]]@({})", lines.join(", ")))
        }
        Value::Binary(data) => ("Binary", bytes(data)),
        // Bytes of types that .NET cannot write: undo.reg can.
        Value::None => ("None", bytes(&[])),
        Value::Other(_, data) => ("None", bytes(data)),
    }
}

/// The value as `check.ps1` shows it.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(Value::Text(text)) => format!("String {text}"),
        Some(Value::Expandable(text)) => format!("ExpandString {text}"),
        Some(Value::Dword(number)) => format!("DWord {}", number.cast_signed()),
        Some(Value::Qword(number)) => format!("QWord {}", number.cast_signed()),
        Some(Value::List(lines)) => format!("MultiString {}", lines.join("|")),
        Some(value @ Value::Binary(_)) => format!("Binary {value}"),
        Some(value) => format!("None {value}"),
    }
}

/// Text in single quotation marks, between which PowerShell takes all but those as it is; it takes
/// typographic ones for the same.
fn quoted(text: &str) -> String {
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
