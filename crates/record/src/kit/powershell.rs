//! PowerShell script that records with WPR. It runs on PowerShell 7 and on Windows PowerShell 5.1, which is
//! part of Windows 10.

use super::Kit;
use super::commands::SETTINGS;
use super::readme::megabytes;

/// Text of the script with placeholders such as `@NAME@`.
const TEMPLATE: &str = include_str!("record.ps1");

pub(super) fn write(kit: &Kit) -> String {
    let settings: Vec<String> = SETTINGS
        .iter()
        .map(|(label, key)| format!("    '{label}' = '{key}'"))
        .collect();
    let node = kit.node.map_or("$null".to_owned(), |node| node.to_string());
    let packets = if kit.has_packets() { "$true" } else { "$false" };
    TEMPLATE
        .replace("@QUESTION@", kit.investigation.question())
        .replace("@NAME@", &kit.name())
        .replace("@PROFILE@", &kit.profile_argument(&kit.profile_file()))
        .replace("@RATE@", &megabytes(kit.cost().busy_bytes_per_second))
        .replace("@NODE@", &node)
        .replace("@PACKETS@", packets)
        .replace("@SETTINGS@", &settings.join("\n"))
}
