//! `docs/settings.md`, written from the catalogue.

use std::fmt::Write;

use crate::catalogue::{Catalogue, Setting};

const INTRODUCTION: &str = "\
# Settings

<!-- Written by `UPDATE_EXPECT=1 cargo test -p tune`; edit catalogue/*.toml. -->

What `laglab tune` knows of settings. `<adapter>` and the like stand for a name that machines differ in.
Where defaults hang on the build or edition, the first that holds counts. *Confidence* is how well a row
is supported: what is of low confidence never fails a machine.
";

/// The documentation of all settings, as Markdown.
pub fn reference() -> String {
    let catalogue = Catalogue::get();
    let mut text = INTRODUCTION.to_owned();
    for group in catalogue.groups() {
        let _ = write!(text, "\n## {}\n\n{}\n", group.title, group.about);
        for setting in catalogue.settings() {
            if setting.group == group.name {
                describe(&mut text, setting);
            }
        }
    }
    text
}

fn describe(text: &mut String, setting: &Setting) {
    let _ = write!(
        text,
        "\n### {}\n\n{}\n\n",
        escaped(&setting.name),
        escaped(&setting.meaning)
    );
    let mut item = |label: &str, what: &str| {
        if !what.is_empty() {
            let _ = writeln!(text, "- *{label}:* {what}");
        }
    };
    let code = |what: &dyn std::fmt::Display| format!("`{what}`");
    item("Id", &code(&setting.id));
    let aliases: Vec<String> = setting.aliases.iter().map(|alias| code(&alias)).collect();
    item("Also called", &aliases.join(", "));
    let places: Vec<String> = setting.places.iter().map(|place| code(&place)).collect();
    item("Kept at", &places.join("; "));
    for misspelling in &setting.misspellings {
        item(
            "Not at",
            &format!(
                "{} ({})",
                code(&misspelling.place),
                escaped(&misspelling.why)
            ),
        );
    }
    let types: Vec<String> = setting.types.iter().map(ToString::to_string).collect();
    item("Type", &types.join(" or "));
    let defaults = setting.defaults.iter().map(|default| {
        let mut told = escaped(&default.value.to_string());
        let when = default.when.to_string();
        if !when.is_empty() {
            let _ = write!(told, " ({when})");
        }
        if let Some(note) = &default.note {
            let _ = write!(told, " ({})", escaped(note));
        }
        told
    });
    item(
        "By default",
        &defaults.collect::<Vec<_>>().join("; otherwise "),
    );
    item("May be", &allowed(setting));
    item(
        "Builds",
        &escaped(setting.builds.note.as_deref().unwrap_or_default()),
    );
    let effects: Vec<String> = setting
        .takes_effect
        .iter()
        .map(ToString::to_string)
        .collect();
    item("A change counts", &effects.join(", or "));
    let sure = setting
        .confidences()
        .into_iter()
        .map(|(when, confidence)| match when {
            Some(when) => format!("{confidence} ({when})"),
            None => confidence.to_string(),
        });
    item("Confidence", &sure.collect::<Vec<_>>().join(", "));
    item(
        "What is not sure",
        &escaped(setting.confidence_note.as_deref().unwrap_or_default()),
    );
    if !setting.protects.is_empty() {
        let values: Vec<String> = setting.protects.iter().map(ToString::to_string).collect();
        item("Protects the machine at", &escaped(&values.join(", ")));
    }
    item(
        "Risk",
        &escaped(setting.risk.as_deref().unwrap_or_default()),
    );
    for rule in &setting.rules {
        let when = rule.when.to_string();
        let when = if when.is_empty() {
            when
        } else {
            format!(" ({when})")
        };
        item("An audit says", &format!("{}{when}", escaped(&rule.says)));
    }
    item(
        "Advice",
        &escaped(setting.advice.as_deref().unwrap_or_default()),
    );
    item(
        "Seen by",
        &escaped(setting.evidence.as_deref().unwrap_or_default()),
    );
    item(
        "In effect",
        &escaped(setting.read_with.as_deref().unwrap_or_default()),
    );
    let sources: Vec<String> = setting
        .sources
        .iter()
        .map(|url| format!("<{url}>"))
        .collect();
    item("Sources", &sources.join(", "));
}

fn allowed(setting: &Setting) -> String {
    let all = setting
        .allowed
        .told(|value, words| format!("{value} ({words})"));
    escaped(&all.join("; "))
}

/// Text that Markdown shows as it is. What stands between `backticks` in the catalogue is code.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut is_code = false;
    for letter in text.chars() {
        is_code ^= letter == '`';
        if !is_code && matches!(letter, '*' | '<' | '>' | '\\' | '_') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
