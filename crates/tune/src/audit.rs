//! What is set on a machine, judged: what is in effect, what does nothing, what is wrong.

mod contradiction;
mod misspelt;

use std::collections::HashMap;
use std::fmt;

use crate::catalogue::{Catalogue, Confidence, Datum, DefaultRule, Setting, Verdict};
use crate::found::{Found, Place};
use crate::inputs::Input;
use crate::machine::Machine;
use crate::registry::Key;
use crate::same::do_the_same;

/// What an audit finds.
#[derive(Debug)]
pub struct Audit {
    /// The machine it was made for.
    pub machine: Machine,
    /// A finding for each place of a known setting that an input names, the worst first.
    pub findings: Vec<Finding>,
    /// How many values were read that are no known setting's.
    pub others: usize,
}

/// What one place is set to, and what is to be said of that.
#[derive(Debug)]
pub struct Finding {
    /// The setting.
    pub setting: &'static Setting,
    /// What was found there last: that is what counts.
    pub found: Found,
    /// What was found there before, in inputs that come earlier.
    pub before: Vec<Found>,
    /// What it stands for; `None` if it is not set, or not as Windows reads it.
    pub value: Option<Datum>,
    /// What it is by default: one, or all that may hold as long as build or edition are not known.
    pub defaults: Vec<&'static DefaultRule>,
    /// Whether it differs from the default; `None` where that is not known.
    pub differs: Option<bool>,
    /// What is to be said.
    pub remarks: Vec<Remark>,
    /// How sure that is.
    pub confidence: Confidence,
}

/// A sentence about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it makes of it.
    pub kind: Kind,
    /// The sentence.
    pub says: String,
}

/// What a remark makes of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It protects the machine less than the default does.
    Unprotected,
    /// It is wrong: something does not work.
    Fault,
    /// It is of a type that Windows does not read there.
    WrongType,
    /// It is where the setting is not, so it does nothing.
    Misspelt,
    /// Two places say different things.
    Contradiction,
    /// Its name is nearly a setting's.
    PerhapsMisspelt,
    /// It has no effect on this machine.
    NoEffect,
    /// It is outside what is allowed.
    NotAllowed,
    /// It costs something, or is worth a look.
    Doubtful,
    /// It is to be known when numbers are read.
    Context,
}

impl Kind {
    /// Its word, stable for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unprotected => "unprotected",
            Self::Fault => "fault",
            Self::WrongType => "wrong-type",
            Self::Misspelt => "misspelt",
            Self::Contradiction => "contradiction",
            Self::PerhapsMisspelt => "perhaps-misspelt",
            Self::NoEffect => "no-effect",
            Self::NotAllowed => "not-allowed",
            Self::Doubtful => "doubtful",
            Self::Context => "context",
        }
    }

    /// Whether a machine fails because of it, if that is sure enough.
    fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Unprotected | Self::Fault | Self::WrongType | Self::Misspelt
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unprotected => "protects less",
            Self::Fault => "wrong",
            Self::WrongType => "wrong type",
            Self::Misspelt => "misspelt",
            Self::Contradiction => "contradiction",
            Self::PerhapsMisspelt => "misspelt?",
            Self::NoEffect => "does nothing here",
            Self::NotAllowed => "not allowed",
            Self::Doubtful => "doubtful",
            Self::Context => "note",
        })
    }
}

impl Finding {
    /// Whether the machine fails because of it. What rests on low confidence never fails one.
    pub fn fails(&self) -> bool {
        self.confidence > Confidence::Low
            && self.remarks.iter().any(|remark| remark.kind.is_fault())
    }

    /// The worst that is said of it.
    pub fn worst(&self) -> Option<Kind> {
        self.remarks.iter().map(|remark| remark.kind).min()
    }
}

/// Judges what inputs say, for the machine that `asked` or, where that leaves it open, they tell of.
pub fn audit(inputs: &[Input], asked: &Machine) -> Audit {
    let machine = machine(inputs, asked);
    let mut findings = Vec::new();
    let mut others = 0;
    for (found, before) in last_words(inputs) {
        match judge(found, before, &machine) {
            Some(finding) => findings.push(finding),
            None => others += 1,
        }
    }
    contradiction::add(&mut findings);
    findings.sort_by_key(|finding| {
        (
            !finding.fails(),
            finding.worst().is_none(),
            finding.worst(),
            finding.differs != Some(true),
        )
    });
    Audit {
        machine,
        findings,
        others,
    }
}

/// The machine that inputs tell of, where `asked` leaves it open.
pub fn machine(inputs: &[Input], asked: &Machine) -> Machine {
    let mut machine = asked.clone();
    for input in inputs {
        // What was asked for counts, even if an input knows better.
        let edition = machine.edition;
        crate::inputs::complete(&mut machine, &input.machine);
        machine.edition = if asked.edition.is_some() {
            edition
        } else {
            machine.edition
        };
    }
    machine
}

/// For each place what was found there last, and what before; a key that is deleted takes with it
/// what was found below it.
pub(crate) fn last_words(inputs: &[Input]) -> Vec<(Found, Vec<Found>)> {
    let mut order: Vec<Vec<Found>> = Vec::new();
    let mut by_place: HashMap<String, usize> = HashMap::new();
    for input in inputs {
        for found in &input.found {
            let number = *by_place
                .entry(found.place.to_string().to_lowercase())
                .or_insert_with(|| {
                    order.push(Vec::new());
                    order.len() - 1
                });
            order[number].push(found.clone());
        }
        for (deleted, origin) in &input.deleted_keys {
            for words in &mut order {
                let last = words.last().expect("each has one");
                let Place::Registry { key, .. } = &last.place else {
                    continue;
                };
                // An input that sets the key again after deleting it has said so at a later place.
                let is_earlier = last.origin.source != origin.source;
                if is_earlier && is_below(key, deleted) {
                    let place = last.place.clone();
                    words.push(Found {
                        place,
                        value: None,
                        origin: origin.clone(),
                    });
                }
            }
        }
    }
    (order.into_iter())
        .filter_map(|mut words| Some((words.pop()?, words)))
        .collect()
}

/// Whether a key is `above` or below it.
fn is_below(key: &Key, above: &Key) -> bool {
    let (key, above) = (key.as_str().to_lowercase(), above.as_str().to_lowercase());
    key == above || key.starts_with(&format!("{above}\\"))
}

fn judge(found: Found, before: Vec<Found>, machine: &Machine) -> Option<Finding> {
    let catalogue = Catalogue::get();
    if let Some(setting) = catalogue.at(&found.place) {
        return Some(known(setting, found, before, machine));
    }
    let (setting, remark) = misspelt::find(catalogue, &found)?;
    Some(Finding {
        setting,
        value: None,
        defaults: setting.defaults_on(machine, None),
        differs: None,
        remarks: vec![remark],
        confidence: setting.confidence(machine),
        found,
        before,
    })
}

/// What is to be said of a value of a setting.
fn known(
    setting: &'static Setting,
    found: Found,
    before: Vec<Found>,
    machine: &Machine,
) -> Finding {
    let mut remarks = Vec::new();
    let mut say = |kind, says: String| remarks.push(Remark { kind, says });
    let place = Some(&found.place);
    let value = match found
        .value
        .as_ref()
        .map(|value| setting.read(&found.place, value))
    {
        Some(Ok(value)) => Some(value),
        Some(Err(wrong)) => {
            say(Kind::WrongType, format!("{wrong}: the value does nothing."));
            None
        }
        None => None,
    };
    let defaults = setting.defaults_on(machine, place);
    if let Some(value) = &value {
        if setting.is_known_to(machine) == Some(false) {
            let note = setting.builds.note.as_deref();
            let known = note.map_or(String::new(), |note| format!(" ({note})"));
            say(
                Kind::NoEffect,
                format!("Windows of this build does not know the setting{known}."),
            );
        }
        for rule in &setting.rules {
            if rule.applies(value, place, machine) == Some(true) {
                say(rule.verdict.into(), rule.says.clone());
            }
        }
        if !setting.protects.is_empty() && !setting.protects.contains(value) {
            // A default that protects no more lowers nothing.
            let protected = (defaults.iter())
                .filter_map(|rule| rule.value.effective())
                .any(|default| setting.lowers_protection(default, value));
            if protected {
                let risk = setting
                    .risk
                    .as_deref()
                    .unwrap_or("It is a security control.");
                say(Kind::Unprotected, risk.to_owned());
            }
        }
        if let Some(says) = not_allowed(setting, value) {
            say(Kind::NotAllowed, says);
        }
    }
    let differs = match (&value, &found.value) {
        (None, Some(_)) => None,
        (None, None) => Some(false),
        (Some(value), _) => differs(&defaults, |default| {
            do_the_same(setting, (default, machine), (value, machine))
        }),
    };
    Finding {
        confidence: setting.confidence(machine),
        setting,
        found,
        before,
        value,
        defaults,
        differs,
        remarks,
    }
}

/// Whether a value does what none of the defaults that may hold does; `None` where they do not tell.
fn differs(defaults: &[&DefaultRule], is_same: impl Fn(&Datum) -> bool) -> Option<bool> {
    let effective: Option<Vec<&Datum>> = (defaults.iter())
        .map(|rule| rule.value.effective())
        .collect();
    let effective = effective.filter(|effective| !effective.is_empty())?;
    let same = effective.iter().filter(|default| is_same(default)).count();
    match same {
        0 => Some(true),
        all if all == effective.len() => Some(false),
        _ => None,
    }
}

/// What is wrong with a value that is outside what the catalogue allows.
pub(crate) fn not_allowed(setting: &Setting, value: &Datum) -> Option<String> {
    let allowed = &setting.allowed;
    if allowed.values.iter().any(|named| named.is == *value) {
        return None;
    }
    let outside = match (allowed.range, value.number()) {
        (Some((least, most)), Some(number)) => !(least..=most).contains(&number),
        (Some(_), None) => return None,
        (None, _) => !allowed.values.is_empty(),
    };
    outside.then(|| match allowed.range {
        Some((least, most)) => format!("{value} is outside {least} to {most}."),
        None => format!("{value} is none of the values that are known."),
    })
}

impl From<Verdict> for Kind {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NoEffect => Self::NoEffect,
            Verdict::Fault => Self::Fault,
            Verdict::Doubtful => Self::Doubtful,
            Verdict::Context => Self::Context,
        }
    }
}

#[cfg(test)]
mod tests;
