//! Explanation of a setting, and of one of its values.

use std::io::{self, Write};

use serde::Serialize;
use tune::catalogue::{FactCheck, Setting, Verdict};
use tune::machine::Machine;

use super::quantum::{self, DecodedQuantum};
use crate::cli::Failure;
use crate::output;

/// JSON output: explanation of a setting. Programs rely on its fields.
#[derive(Serialize)]
struct SettingJson<'c> {
    id: &'c str,
    group: &'c str,
    name: &'c str,
    aliases: &'c [String],
    types: Vec<String>,
    places: Vec<String>,
    misspellings: Vec<MisspellingJson<'c>>,
    meaning: &'c str,
    defaults: Vec<DefaultJson<'c>>,
    allowed: Vec<String>,
    builds: Option<&'c str>,
    known_to_build: Option<bool>,
    takes_effect: Vec<String>,
    needs_reboot: bool,
    confidence: String,
    confidence_note: Option<&'c str>,
    protects_the_machine: bool,
    risk: Option<&'c str>,
    advice: Option<&'c str>,
    evidence: Option<&'c str>,
    read_with: Option<&'c str>,
    sources: &'c [String],
    checked: &'c FactCheck,
    value: Option<ValueJson<'c>>,
}

#[derive(Serialize)]
struct MisspellingJson<'c> {
    place: String,
    why: &'c str,
}

#[derive(Serialize)]
struct DefaultJson<'c> {
    value: String,
    when: String,
    note: Option<&'c str>,
}

/// JSON output: explanation of one value of a setting.
#[derive(Serialize)]
struct ValueJson<'c> {
    value: String,
    means: Option<String>,
    is_allowed: Option<bool>,
    findings: Vec<FindingJson<'c>>,
    quantum: Option<DecodedQuantum>,
}

#[derive(Serialize)]
struct FindingJson<'c> {
    verdict: &'static str,
    says: &'c str,
    /// True if the finding applies to the machine; `null` if unknown.
    holds: Option<bool>,
    when: String,
}

/// Prints explanations of settings that have the same name.
///
/// # Errors
/// Returns an error if none of the settings allows the value.
pub(super) fn explain(
    settings: &[&Setting],
    value: Option<&str>,
    machine: &Machine,
    json: bool,
) -> Result<(), Failure> {
    let refuses =
        |setting: &&Setting, text: &str| setting.allows(&setting.parse(text)) == Some(false);
    if let Some(text) = value
        && settings.iter().all(|setting| refuses(setting, text))
    {
        return Err(not_allowed(settings, text));
    }
    let explained: Vec<SettingJson<'_>> = settings
        .iter()
        .map(|setting| SettingJson::new(setting, value, machine))
        .collect();
    if json {
        output::json(&explained)?;
        return Ok(());
    }
    let mut out = output::for_people();
    for (number, setting) in explained.iter().enumerate() {
        match number {
            0 => output::first_heading(&mut out, setting.name)?,
            _ => output::heading(&mut out, setting.name)?,
        }
        setting.write(&mut out)?;
    }
    out.flush()?;
    Ok(())
}

impl<'c> SettingJson<'c> {
    fn new(setting: &'c Setting, value: Option<&str>, machine: &Machine) -> SettingJson<'c> {
        SettingJson {
            id: &setting.id,
            group: setting.group,
            name: &setting.name,
            aliases: &setting.aliases,
            types: setting.types.iter().map(ToString::to_string).collect(),
            places: setting.places.iter().map(ToString::to_string).collect(),
            misspellings: (setting.misspellings.iter())
                .map(|misspelling| MisspellingJson {
                    place: misspelling.place.to_string(),
                    why: &misspelling.why,
                })
                .collect(),
            meaning: &setting.meaning,
            defaults: (setting.defaults_on(machine, None).into_iter())
                .map(|default| DefaultJson {
                    value: default.value.to_string(),
                    when: default.when.to_string(),
                    note: default.note.as_deref(),
                })
                .collect(),
            allowed: allowed(setting),
            builds: setting.builds.note.as_deref(),
            known_to_build: setting.is_known_to(machine),
            takes_effect: setting
                .takes_effect
                .iter()
                .map(ToString::to_string)
                .collect(),
            needs_reboot: setting.needs_reboot(),
            confidence: setting.confidence(machine).to_string(),
            confidence_note: setting.confidence_note.as_deref(),
            protects_the_machine: !setting.protects.is_empty(),
            risk: setting.risk.as_deref(),
            advice: setting.advice.as_deref(),
            evidence: setting.evidence.as_deref(),
            read_with: setting.read_with.as_deref(),
            sources: &setting.sources,
            checked: &setting.checked,
            value: value.map(|value| ValueJson::new(setting, value, machine)),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::paragraph(out, self.meaning)?;
        if let Some(value) = &self.value {
            value.write(out)?;
        }
        writeln!(out)?;
        let many = |label: &str, lines: &[String], out: &mut dyn Write| -> io::Result<()> {
            for (number, line) in lines.iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                entry(out, label, line)?;
            }
            Ok(())
        };
        many("Stored at", &self.places, out)?;
        for MisspellingJson { place, why } in &self.misspellings {
            entry(out, "No effect at", &format!("{place} ({why})"))?;
        }
        entry(out, "Type", &self.types.join(" or "))?;
        let defaults: Vec<String> = self.defaults.iter().map(DefaultJson::line).collect();
        many("Default", &defaults, out)?;
        many("Allowed", &self.allowed, out)?;
        if let Some(builds) = self.builds {
            let here = match self.known_to_build {
                Some(false) => "; this build does not support it",
                _ => "",
            };
            entry(out, "Builds", &format!("{builds}{here}"))?;
        }
        entry(out, "Takes effect", &self.takes_effect.join(", or "))?;
        let confidence = match self.confidence_note {
            Some(note) => format!("{}. {note}", self.confidence),
            None => self.confidence.clone(),
        };
        entry(out, "Confidence", &confidence)?;
        if self.protects_the_machine {
            entry(
                out,
                "Security",
                "this setting protects the machine: never change it for speed alone",
            )?;
        }
        for (label, text) in [
            ("Risk", self.risk),
            ("Advice", self.advice),
            ("Evidence", self.evidence),
            ("Effective value", self.read_with),
        ] {
            if let Some(text) = text {
                entry(out, label, text)?;
            }
        }
        many("Sources", self.sources, out)?;
        let FactCheck {
            on,
            found,
            unsupported,
        } = self.checked;
        entry(out, "Checked", &format!("{on}, source by source: {found}"))?;
        match unsupported {
            Some(unsupported) => entry(out, "Unconfirmed", unsupported),
            None => Ok(()),
        }
    }
}

impl DefaultJson<'_> {
    fn line(&self) -> String {
        let mut line = self.value.clone();
        if !self.when.is_empty() {
            line += &format!(" ({})", self.when);
        }
        if let Some(note) = self.note {
            line += &format!(": {note}");
        }
        line
    }
}

/// Writes a line with a label.
fn entry(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    output::paragraph(out, &format!("{label:<18} {text}"))
}

/// Returns the error for a value that none of the settings allows.
fn not_allowed(settings: &[&Setting], value: &str) -> Failure {
    let mut allowed: Vec<String> = Vec::new();
    for setting in settings {
        let mut described = (setting.allowed).describe(|value, words| format!("{value} ({words})"));
        if described.is_empty() {
            described.extend(setting.types.iter().map(ToString::to_string));
        }
        described.retain(|text| !allowed.contains(text));
        allowed.extend(described);
    }
    let name = settings.first().map_or("", |setting| setting.name.as_str());
    let allowed = allowed.join("; ");
    Failure::Input(format!(
        "cannot explain {name}={value}: this value is not allowed; allowed: {allowed}"
    ))
}

/// Returns a line for each allowed value.
fn allowed(setting: &Setting) -> Vec<String> {
    let allowed = &setting.allowed;
    allowed.describe(|value, words| format!("{value}: {words}"))
}

impl<'c> ValueJson<'c> {
    fn new(setting: &'c Setting, text: &str, machine: &Machine) -> ValueJson<'c> {
        let value = setting.parse(text);
        let named = (setting.allowed.values.iter()).find(|named| named.is == value);
        let means = named.and_then(|named| {
            let words = [named.name.clone(), named.means.clone()];
            let words: Vec<String> = words.into_iter().flatten().collect();
            (!words.is_empty()).then(|| words.join(", "))
        });
        let findings = setting.rules.iter().filter_map(|rule| {
            let holds = rule.applies(&value, None, machine);
            (holds != Some(false)).then(|| FindingJson {
                verdict: match rule.verdict {
                    Verdict::NoEffect => "no effect",
                    Verdict::Fault => "fault",
                    Verdict::Doubtful => "doubtful",
                    Verdict::Context => "context",
                },
                says: &rule.says,
                holds,
                when: rule.when.to_string(),
            })
        });
        ValueJson {
            means,
            is_allowed: setting.allows(&value),
            findings: findings.collect(),
            quantum: match (setting.id == quantum::ID, raw(text)) {
                (true, Some(raw)) => Some(quantum::decode(raw, machine)),
                _ => None,
            },
            value: value.to_string(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(decoded) = &self.quantum {
            writeln!(out)?;
            return quantum::write(decoded, out);
        }
        let means = match (&self.means, self.is_allowed) {
            (Some(means), _) => format!(": {means}"),
            (None, Some(false)) => " is not an allowed value".to_owned(),
            (None, _) => String::new(),
        };
        writeln!(out)?;
        output::paragraph(out, &format!("{}{means}", self.value))?;
        for FindingJson {
            verdict,
            says,
            holds,
            when,
        } in &self.findings
        {
            let verdict = match (*verdict, holds) {
                ("no effect", Some(true)) => "No effect here. ".to_owned(),
                (_, Some(true)) => String::new(),
                (_, _) => format!("On {when}: "),
            };
            output::warning(out, &format!("{verdict}{says}"))?;
        }
        Ok(())
    }
}

/// Parses a number with all its bits, including bits that Windows ignores.
fn raw(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match digits {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_in_both_bases() {
        assert_eq!(raw("0xffff3f91"), Some(0xffff_3f91));
        assert_eq!(raw("4294918033"), Some(0xffff_3f91));
        assert_eq!(raw("0x1ffff3f91"), None);
        assert_eq!(raw("two"), None);
    }
}
