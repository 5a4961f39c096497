//! A setting of the catalogue, and what a value of it stands for.

use std::io::{self, Write};

use serde::Serialize;
use tune::catalogue::{Setting, Verdict};
use tune::machine::Machine;

use super::quantum::{self, Decoded};
use crate::cli::Failure;
use crate::output;

/// A setting, in its stable shape for programs.
#[derive(Serialize)]
struct Explained<'c> {
    id: &'c str,
    group: &'c str,
    name: &'c str,
    aliases: &'c [String],
    types: Vec<String>,
    places: Vec<String>,
    misspellings: Vec<Misspelt<'c>>,
    meaning: &'c str,
    defaults: Vec<ByDefault<'c>>,
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
    value: Option<OfValue<'c>>,
}

#[derive(Serialize)]
struct Misspelt<'c> {
    place: String,
    why: &'c str,
}

#[derive(Serialize)]
struct ByDefault<'c> {
    value: String,
    when: String,
    note: Option<&'c str>,
}

/// What is to be said of a value.
#[derive(Serialize)]
struct OfValue<'c> {
    value: String,
    means: Option<String>,
    is_allowed: Option<bool>,
    findings: Vec<Finding<'c>>,
    quantum: Option<Decoded>,
}

#[derive(Serialize)]
struct Finding<'c> {
    verdict: &'static str,
    says: &'c str,
    /// Whether it holds for the machine; `null` where too little is known of it.
    holds: Option<bool>,
    when: String,
}

/// Explains all settings that a name means.
pub(super) fn explain(
    settings: &[&Setting],
    value: Option<&str>,
    machine: &Machine,
    json: bool,
) -> Result<(), Failure> {
    let explained: Vec<Explained<'_>> = settings
        .iter()
        .map(|setting| Explained::new(setting, value, machine))
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

impl<'c> Explained<'c> {
    fn new(setting: &'c Setting, value: Option<&str>, machine: &Machine) -> Explained<'c> {
        Explained {
            id: &setting.id,
            group: setting.group,
            name: &setting.name,
            aliases: &setting.aliases,
            types: setting.types.iter().map(ToString::to_string).collect(),
            places: setting.places.iter().map(ToString::to_string).collect(),
            misspellings: (setting.misspellings.iter())
                .map(|misspelling| Misspelt {
                    place: misspelling.place.to_string(),
                    why: &misspelling.why,
                })
                .collect(),
            meaning: &setting.meaning,
            defaults: (setting.defaults_on(machine, None).into_iter())
                .map(|default| ByDefault {
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
            value: value.map(|value| OfValue::new(setting, value, machine)),
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
        many("Kept at", &self.places, out)?;
        for Misspelt { place, why } in &self.misspellings {
            entry(out, "Not at", &format!("{place} ({why})"))?;
        }
        entry(out, "Type", &self.types.join(" or "))?;
        let defaults: Vec<String> = self.defaults.iter().map(ByDefault::line).collect();
        many("By default", &defaults, out)?;
        many("May be", &self.allowed, out)?;
        if let Some(builds) = self.builds {
            let here = match self.known_to_build {
                Some(false) => "; this build does not know it",
                _ => "",
            };
            entry(out, "Builds", &format!("{builds}{here}"))?;
        }
        entry(out, "A change counts", &self.takes_effect.join(", or "))?;
        let sure = match self.confidence_note {
            Some(note) => format!("{}. {note}", self.confidence),
            None => self.confidence.clone(),
        };
        entry(out, "Confidence", &sure)?;
        if self.protects_the_machine {
            entry(
                out,
                "Security",
                "it protects the machine: a change is never advised for speed",
            )?;
        }
        for (label, text) in [
            ("Risk", self.risk),
            ("Advice", self.advice),
            ("Seen in a trace by", self.evidence),
            ("In effect", self.read_with),
        ] {
            if let Some(text) = text {
                entry(out, label, text)?;
            }
        }
        many("Sources", self.sources, out)
    }
}

impl ByDefault<'_> {
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

/// A line with a label before it.
fn entry(out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
    output::paragraph(out, &format!("{label:<18} {text}"))
}

/// What the setting may be, a line each.
fn allowed(setting: &Setting) -> Vec<String> {
    let allowed = &setting.allowed;
    allowed.told(|value, words| format!("{value}: {words}"))
}

impl<'c> OfValue<'c> {
    fn new(setting: &'c Setting, text: &str, machine: &Machine) -> OfValue<'c> {
        let value = setting.parse(text);
        let named = (setting.allowed.values.iter()).find(|named| named.is == value);
        let means = named.and_then(|named| {
            let words = [named.name.clone(), named.means.clone()];
            let words: Vec<String> = words.into_iter().flatten().collect();
            (!words.is_empty()).then(|| words.join(", "))
        });
        let findings = setting.rules.iter().filter_map(|rule| {
            let holds = rule.applies(&value, None, machine);
            (holds != Some(false)).then(|| Finding {
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
        OfValue {
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
            (None, Some(false)) => " is none of the values that it may have".to_owned(),
            (None, _) => String::new(),
        };
        writeln!(out)?;
        output::paragraph(out, &format!("{}{means}", self.value))?;
        for Finding {
            verdict,
            says,
            holds,
            when,
        } in &self.findings
        {
            let verdict = match (*verdict, holds) {
                ("no effect", Some(true)) => "It has no effect here. ".to_owned(),
                (_, Some(true)) => String::new(),
                (_, _) => format!("On {when}: "),
            };
            output::warning(out, &format!("{verdict}{says}"))?;
        }
        Ok(())
    }
}

/// The whole number that was typed, with bits that are not read.
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
    fn numbers_are_read_in_both_bases() {
        assert_eq!(raw("0xffff3f91"), Some(0xffff_3f91));
        assert_eq!(raw("4294918033"), Some(0xffff_3f91));
        assert_eq!(raw("0x1ffff3f91"), None);
        assert_eq!(raw("two"), None);
    }
}
