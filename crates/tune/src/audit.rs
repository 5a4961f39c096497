//! Audit of the settings of a machine: values that are wrong, ignored, or differ from the default.

mod contradiction;
mod misspelt;

use std::fmt;

use serde::Serialize;

use crate::catalogue::{Catalogue, Confidence, Datum, DefaultRule, Setting, Type, Verdict};
use crate::inputs::Input;
use crate::machine::Machine;
use crate::placed_value::{Place, PlacedValue};
use crate::same::have_same_effect;
use crate::state::{History, States};

/// Result of an audit.
#[derive(Debug)]
pub struct Audit {
    /// The audited machine.
    pub machine: Machine,
    /// Findings, the worst first. There is a finding for each location in the inputs (such as a registry value)
    /// that stores a known setting or is probably a misspelling of such a location.
    pub findings: Vec<Finding>,
    /// Number of locations in the inputs that have no finding.
    pub others: usize,
}

/// Result of the audit of one location.
#[derive(Debug)]
pub struct Finding {
    /// Setting that the location stores. If the name or location is misspelt, this field contains the setting that was
    /// meant.
    pub setting: &'static Setting,
    /// Last value that the inputs contain for the location. It overrides the earlier values.
    pub found: PlacedValue,
    /// Earlier values that the inputs contain for the location.
    pub before: Vec<PlacedValue>,
    /// Value, converted to a number or text as in the catalogue. `None` if the value is not set, has the wrong
    /// type, or has a misspelt name or location.
    pub value: Option<Datum>,
    /// Default of the setting. If the build or edition is unknown, the list contains all defaults that may
    /// apply.
    pub defaults: Vec<&'static DefaultRule>,
    /// True if the value differs from the default. `None` if this is unknown.
    pub differs: Option<bool>,
    /// Remarks on the value.
    pub remarks: Vec<Remark>,
    /// Confidence in the facts about the setting.
    pub confidence: Confidence,
}

/// A remark on a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Kind of the remark.
    pub kind: Kind,
    /// Remark as a sentence for the user.
    pub says: String,
}

/// Kind of a remark, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The value gives the machine less protection than the default does.
    Unprotected,
    /// The value is wrong, so something does not work.
    Fault,
    /// The type of the value differs from the type in the sources, so Windows may ignore the value.
    WrongType,
    /// The name or location is a known misspelling, so the value has no effect.
    Misspelt,
    /// The value contradicts the value of another setting.
    Contradiction,
    /// The name is similar to the name of a known setting.
    PerhapsMisspelt,
    /// The value has no effect on this machine.
    NoEffect,
    /// The value is not allowed.
    NotAllowed,
    /// The value costs something or should be checked.
    Doubtful,
    /// The value is neither good nor bad, but the user must know it to interpret measurements.
    Context,
}

impl Kind {
    /// Returns true if a remark of this kind is a failure of the machine. The caller must also check that the
    /// confidence in the facts is above low.
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
            Self::Unprotected => "less protection",
            Self::Fault => "wrong",
            Self::WrongType => "wrong type",
            Self::Misspelt => "misspelt",
            Self::Contradiction => "contradiction",
            Self::PerhapsMisspelt => "misspelt?",
            Self::NoEffect => "no effect here",
            Self::NotAllowed => "not allowed",
            Self::Doubtful => "doubtful",
            Self::Context => "note",
        })
    }
}

impl Finding {
    /// Returns true if the machine fails the audit because of this finding. If the confidence in the facts is
    /// low, returns false.
    pub fn fails(&self) -> bool {
        self.confidence > Confidence::Low
            && self.remarks.iter().any(|remark| remark.kind.is_fault())
    }

    /// Returns the kind of the worst remark.
    pub fn worst(&self) -> Option<Kind> {
        self.remarks.iter().map(|remark| remark.kind).min()
    }
}

/// Judges the settings in the inputs. The build and edition in `given` override the build and edition in the
/// inputs.
pub fn audit(inputs: &[Input], given: &Machine) -> Audit {
    let machine = machine(inputs, given);
    let mut findings = Vec::new();
    let mut others = 0;
    for (place, history) in States::new(inputs).into_histories() {
        match judge(place, &history, &machine) {
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

/// Returns the machine `given`. Unknown fields are filled from the machine that the inputs identify.
pub fn machine(inputs: &[Input], given: &Machine) -> Machine {
    let mut machine = given.clone();
    for input in inputs {
        let edition = machine.edition;
        crate::inputs::complete(&mut machine, &input.machine);
        machine.edition = if given.edition.is_some() {
            edition
        } else {
            machine.edition
        };
    }
    machine
}

/// Judges the value of a known setting, or a value whose name or location is a misspelling of a known setting.
/// Returns `None` for all other values.
fn judge(place: &Place, history: &History<'_>, machine: &Machine) -> Option<Finding> {
    let catalogue = Catalogue::get();
    let value = || history.last.into_found(place);
    let before = || {
        let before = history.before.iter();
        before.map(|said| said.into_found(place)).collect()
    };
    if let Some(setting) = catalogue.at(place) {
        return Some(judge_setting(setting, value(), before(), machine));
    }
    history.last.value?;
    let (setting, remark) = misspelt::find(catalogue, place)?;
    Some(Finding {
        setting,
        value: None,
        defaults: setting.defaults_on(machine, None),
        differs: None,
        remarks: vec![remark],
        confidence: setting.confidence(machine),
        found: value(),
        before: before(),
    })
}

/// Judges a value of a setting.
fn judge_setting(
    setting: &'static Setting,
    found: PlacedValue,
    before: Vec<PlacedValue>,
    machine: &Machine,
) -> Finding {
    let place = Some(&found.place);
    let mut remarks = Vec::new();
    let read = found
        .value
        .as_ref()
        .map(|value| setting.read(&found.place, value));
    let value = match read {
        Some(Ok(value)) => Some(value),
        Some(Err(wrong)) => {
            let says = format!("{wrong}: Windows may ignore it.");
            let kind = Kind::WrongType;
            remarks.push(Remark { kind, says });
            None
        }
        None => None,
    };
    let defaults = setting.defaults_on(machine, place);
    if let Some(value) = &value {
        remarks.extend(remarks_on(setting, value, place, &defaults, machine));
    }
    let differs = match (&value, &found.value) {
        (None, Some(_)) => None,
        (None, None) => Some(false),
        (Some(value), _) => differs(&defaults, |default| {
            have_same_effect(setting, (default, machine), (value, machine))
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

/// Returns the remarks on a value of a setting.
fn remarks_on(
    setting: &Setting,
    value: &Datum,
    place: Option<&Place>,
    defaults: &[&DefaultRule],
    machine: &Machine,
) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut say = |kind, says: String| remarks.push(Remark { kind, says });
    if setting.is_known_to(machine) == Some(false) {
        let note = setting.builds.note.as_deref();
        let known = note.map_or(String::new(), |note| format!(" ({note})"));
        say(
            Kind::NoEffect,
            format!("This build of Windows does not know the setting{known}."),
        );
    }
    // Only if every possible default protects the machine, the value certainly lowers protection.
    let lowered = (defaults.iter())
        .filter_map(|rule| rule.value.effective())
        .filter(|default| setting.lowers_protection(default, value))
        .count();
    let is_lowered = lowered > 0 && lowered == defaults.len();
    let risk = is_lowered.then(|| setting.risk.as_deref().unwrap_or(SECURITY_CONTROL));
    for rule in &setting.rules {
        // A rule with the same text as the risk is left out, because the remark about the risk already contains this
        // text.
        if risk != Some(rule.says.as_str()) && rule.applies(value, place, machine) == Some(true) {
            say(rule.verdict.into(), rule.says.clone());
        }
    }
    if let Some(risk) = risk {
        say(Kind::Unprotected, risk.to_owned());
    } else if lowered > 0 {
        say(Kind::Doubtful, unknown_default(machine));
    }
    if let Some(says) = not_allowed(setting, value) {
        say(Kind::NotAllowed, format!("{says}."));
    }
    remarks
}

/// Risk text for a security setting whose catalogue entry has no text about the risk.
pub(crate) const SECURITY_CONTROL: &str = "The setting is a security control.";

/// Returns the remark on a value that is less protection than only some of the possible defaults.
fn unknown_default(machine: &Machine) -> String {
    let unknown = [
        (machine.build.is_none(), "--build"),
        (machine.edition.is_none(), "--edition"),
    ];
    let options = unknown.iter().filter(|(is_unknown, _)| *is_unknown);
    let options: Vec<&str> = options.map(|(_, option)| *option).collect();
    format!(
        "On some builds and editions, the default protects more. The default of this machine is unknown: give {}.",
        options.join(" and ")
    )
}

/// Returns true if a value differs from the default. Returns `None` if the value differs from only some of
/// the possible defaults, or if a default is unknown.
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

/// Returns the reason why a value is not allowed, without a full stop. Returns `None` if it is allowed.
pub(crate) fn not_allowed(setting: &Setting, value: &Datum) -> Option<String> {
    // A mask of more than 8 bytes is converted to text.
    let is_long_mask = value.number().is_none() && setting.types.contains(&Type::Binary);
    if is_long_mask || setting.allows(value) != Some(false) {
        return None;
    }
    Some(match (setting.allowed.range, value.number()) {
        (Some((least, most)), Some(_)) => format!("{value} is outside {least} to {most}"),
        (Some((least, most)), None) => format!("{value} is not a number from {least} to {most}"),
        (None, _) => format!("{value} is not a known value"),
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
