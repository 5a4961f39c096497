//! Description of a plan for the user, as Markdown.

use std::fmt::Write as _;

use registry::Value;
use wording::MarkdownCode;

use super::{Change, Plan, command};
use crate::catalogue::TakesEffect;
use crate::placed_value::Place;

/// Formats the plan as Markdown.
pub(super) fn describe(plan: &Plan) -> String {
    let mut text = String::from("# Plan\n\n");
    let machine = &plan.machine;
    let name = machine.name.as_deref().map(code);
    let name = name.unwrap_or_else(|| "a machine of unknown name".to_owned());
    let unknown = || "unknown".to_owned();
    let build = machine
        .build
        .map_or_else(unknown, |build| build.to_string());
    let edition = (machine.edition).map_or_else(unknown, |edition| edition.to_string());
    let _ = writeln!(text, "For {name}, build {build}, edition {edition}.");
    for change in &plan.changes {
        describe_change(&mut text, change);
    }
    text.push_str(
        "\n## Steps\n\n\
         1. Run the commands for *before* in measure.toml.\n\
         2. Run check.ps1: every value must be the value before the change.\n\
         3. Run apply.ps1 as administrator, or import apply.reg. On the machine itself, \
         `laglab tune apply DIR --apply` does the same and writes a backup first.\n\
         4. Make the changes take effect.\n\
         5. Run check.ps1: every value must be the value after the change.\n\
         6. Run the commands for *after* in measure.toml, under the same load.\n\
         7. `laglab prove verdict DIR` compares both measurements and shows whether the changes helped.\n\
         8. To undo, run undo.ps1 or import undo.reg (`laglab tune apply DIR --undo --apply`).\n",
    );
    text
}

/// Formats a text of an input, which may contain anything.
fn code(text: &str) -> String {
    MarkdownCode(text).to_string()
}

fn describe_change(text: &mut String, change: &Change) {
    let setting = change.setting;
    let shown = |value: &Option<Value>| match (value, &change.place) {
        (None, _) => "not set".to_owned(),
        (Some(value), Place::Registry { .. }) => {
            format!("{} ({})", code(&value.to_string()), value.type_name())
        }
        (Some(value), _) => code(&value.to_string()),
    };
    let _ = writeln!(text, "\n## {}\n", setting.name);
    let mut item = |label: &str, what: &str| {
        let _ = writeln!(text, "- {label}: {what}");
    };
    item("Where", &code(&change.place.to_string()));
    item("Now", &shown(&change.from));
    item("Then", &shown(&change.to));
    item("Effect", &setting.meaning);
    if let Some(found) = &change.found {
        item("Found in", &code(&found.origin.to_string()));
    }
    let effects = setting.takes_effect.iter().map(TakesEffect::to_string);
    item("Takes effect", &effects.collect::<Vec<_>>().join(", or "));
    if let Some(risk) = &change.lowers {
        item("**Lowers protection** (accepted)", risk);
    } else if let Some(risk) = &setting.risk {
        item("Risk", risk);
    }
    if change.is_done() {
        item("**No change**", "the setting already has this value");
    }
    if change.has_effect == Some(false) {
        item(
            "**No effect here**",
            "this build of Windows does not know the setting",
        );
    }
    if let Some(advice) = &setting.advice {
        item("Before", advice);
    }
    for shown in &setting.shows {
        item("Shown by", &format!("{}. {}", shown.with, shown.why));
    }
    if setting.shows.is_empty() {
        item(
            "Shown by",
            "no comparison of laglab is known to show the effect",
        );
    }
    if let Some(evidence) = &setting.evidence {
        item("Look at", evidence);
    }
    if let Some(command) = &setting.read_with {
        item("Effective value", &format!("`{command}`"));
    }
    let program = match &change.place {
        Place::Boot { .. } => Some("bcdedit"),
        Place::Power { .. } => Some("powercfg"),
        Place::Answer { command, .. } if command.starts_with("netsh") => Some("netsh"),
        Place::Answer { .. } => Some("a PowerShell cmdlet"),
        Place::Registry { .. } | Place::Kernel { .. } => None,
    };
    if let Some(program) = program {
        item(
            "Only in the scripts",
            &format!("they call {program}; the .reg files do not have this change"),
        );
    }
    if command::restarts_adapter(&change.place) {
        item(
            "**Restarts the adapter**",
            "connections over it end, including a remote session",
        );
    }
    let note = setting.confidence_note.as_deref();
    item("Confidence", note.unwrap_or("see `laglab tune explain`"));
}
