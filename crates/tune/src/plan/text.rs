//! A plan for people to read before they carry it out.

use std::fmt::Write as _;

use super::{Change, Plan, command};
use crate::catalogue::TakesEffect;
use crate::found::Place;
use crate::registry::Value;

/// The plan as Markdown.
pub(super) fn describe(plan: &Plan) -> String {
    let mut text = String::from("# Plan\n\n");
    let machine = &plan.machine;
    let name = machine
        .name
        .as_deref()
        .unwrap_or("a machine without a known name");
    let build = machine
        .build
        .map_or("unknown".to_owned(), |build| build.to_string());
    let edition = machine
        .edition
        .map_or("unknown".to_owned(), |edition| edition.to_string());
    let _ = writeln!(text, "For {name}, build {build}, edition {edition}.");
    for change in &plan.changes {
        describe_change(&mut text, change);
    }
    text.push_str(
        "\n## Steps\n\n\
         1. Measure, as said above, and keep what was measured.\n\
         2. Run check.ps1: each place must be as before.\n\
         3. Run apply.ps1 as administrator, or import apply.reg; on the machine itself \
         `laglab tune apply DIR --apply` does the same after it wrote a backup.\n\
         4. Do what makes the changes take effect.\n\
         5. Run check.ps1: each place must be as after.\n\
         6. Measure again under the same load, and compare.\n\
         7. To go back, run undo.ps1 or import undo.reg (`laglab tune apply DIR --undo --apply`).\n",
    );
    text
}

fn describe_change(text: &mut String, change: &Change) {
    let setting = change.setting;
    let shown = |value: &Option<Value>| match (value, &change.place) {
        (None, _) => "not set".to_owned(),
        (Some(value), Place::Registry { .. }) => format!("{value} ({})", value.type_name()),
        (Some(value), _) => value.to_string(),
    };
    let _ = writeln!(
        text,
        "\n## {}\n\n- Where: `{}`\n- Now: {}\n- Then: {}\n- {}",
        setting.name,
        change.place,
        shown(&change.from),
        shown(&change.to),
        setting.meaning
    );
    if let Some(found) = &change.found {
        let _ = writeln!(text, "- Found in {}", found.origin);
    }
    let effects: Vec<String> = setting
        .takes_effect
        .iter()
        .map(TakesEffect::to_string)
        .collect();
    let _ = writeln!(text, "- Takes effect: {}", effects.join(", or "));
    if let Some(risk) = &change.lowers {
        let _ = writeln!(text, "- **Lowers protection**, which was accepted: {risk}");
    } else if let Some(risk) = &setting.risk {
        let _ = writeln!(text, "- Risk: {risk}");
    }
    if change.has_effect == Some(false) {
        text.push_str(
            "- **Does nothing here**: Windows of this build does not know the setting.\n",
        );
    }
    if let Some(advice) = &setting.advice {
        let _ = writeln!(text, "- Before: {advice}");
    }
    let _ = writeln!(text, "- Measure with: {}", measure_with(setting.group));
    if let Some(evidence) = &setting.evidence {
        let _ = writeln!(text, "- Look at: {evidence}");
    }
    if let Some(command) = &setting.read_with {
        let _ = writeln!(text, "- What is in effect, tells: `{command}`");
    }
    let program = match &change.place {
        Place::Boot { .. } => Some("bcdedit"),
        Place::Power { .. } => Some("powercfg"),
        Place::Answer { command, .. } if command.starts_with("netsh") => Some("netsh"),
        Place::Answer { .. } => Some("PowerShell's own command"),
        Place::Registry { .. } | Place::Kernel { .. } => None,
    };
    if let Some(program) = program {
        let _ = writeln!(
            text,
            "- Only in the scripts, which call {program}: the .reg files lack it."
        );
    }
    if command::restarts_adapter(&change.place) {
        text.push_str("- **Restarts the adapter**: connections over it break off, yours too if it is remote.\n");
    }
    let _ = writeln!(
        text,
        "- Sure: {}",
        match &setting.confidence_note {
            Some(note) => note.clone(),
            None => "see `laglab tune explain`".to_owned(),
        }
    );
}

/// What shows whether a change to a setting of the group did anything.
fn measure_with(group: &str) -> &'static str {
    match group {
        "timer" => "`laglab measure sleep`",
        "nic" | "rss" | "sockets" | "tcp" | "qos" | "services" => "`laglab measure net`",
        "smb" | "dfs" | "storage" => "`laglab measure files` on the share or volume",
        _ => "`laglab measure sleep`, and a trace of the same load for `laglab explain`",
    }
}
