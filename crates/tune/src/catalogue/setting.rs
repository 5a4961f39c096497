//! One setting of the catalogue.

use std::fmt;

use registry::Value;
use serde::{Deserialize, Serialize};

use super::{Condition, Datum, DefaultRule, PlacePattern, Rule, Shown};
use crate::machine::Machine;
use crate::placed_value::Place;

/// A setting that `catalogue/*.toml` describes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Unique id. Settings of one family have the same text before the dot.
    pub id: String,
    /// Group of the setting, which is the name of its file.
    #[serde(skip)]
    pub group: &'static str,
    /// Name of the setting, usually the name of its registry value.
    pub name: String,
    /// Other names of the setting.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Storage types of the value, according to the sources.
    #[serde(rename = "type")]
    pub types: Vec<Type>,
    /// Places where Windows stores the setting. Empty if the entry is a fact and not a setting.
    #[serde(default)]
    pub places: Vec<PlacePattern>,
    /// Wrong names and places that people use for the setting, although they have no effect.
    #[serde(default)]
    pub misspellings: Vec<Misspelling>,
    /// Defaults. The first default whose condition is true applies.
    pub defaults: Vec<DefaultRule>,
    /// Allowed values of the setting.
    #[serde(default)]
    pub allowed: AllowedValues,
    /// Effect of the setting.
    pub meaning: String,
    /// Builds of Windows that support the setting.
    #[serde(default)]
    pub builds: Builds,
    /// Events after which a change takes effect. Each of them is sufficient.
    pub takes_effect: Vec<TakesEffect>,
    /// Confidence in the facts, by build.
    confidence: ConfidenceRules,
    /// Text about uncertain facts, with the reason.
    pub confidence_note: Option<String>,
    /// Risks of a change of the setting.
    pub risk: Option<String>,
    /// Values that protect the machine; empty if the setting is not a security control.
    #[serde(default)]
    pub protects: Vec<Datum>,
    /// Rules for the remarks of an audit about values.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Advice for the user: what to check before a change.
    pub advice: Option<String>,
    /// Evidence of the setting's effect in a trace or a measurement.
    pub evidence: Option<String>,
    /// Comparisons that show the effect of a change; empty if none is known.
    #[serde(default)]
    pub shows: Vec<Shown>,
    /// Command that prints the effective value of the setting.
    pub read_with: Option<String>,
    /// Result of the last check against the sources.
    pub checked: FactCheck,
    /// URLs of the sources for the facts about the setting.
    pub sources: Vec<String>,
}

/// Result of a check of the facts about a setting against its sources.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FactCheck {
    /// Date of the check, such as `2026-11-23`.
    pub on: String,
    /// Positions of the facts in the sources.
    pub found: String,
    /// Facts that no source supports.
    pub unsupported: Option<String>,
}

/// Storage type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// REG_DWORD.
    Dword,
    /// REG_QWORD.
    Qword,
    /// REG_SZ.
    Text,
    /// REG_SZ with a decimal number.
    DecimalText,
    /// REG_BINARY.
    Binary,
    /// Yes or no, in a boot entry or in the output of a command.
    Switch,
    /// One of several words, in a boot entry or in the output of a command.
    Choice,
    /// A number, in a power scheme or in the output of a command.
    Number,
    /// No stored value. The entry is a fact about an interface, a protocol or a device.
    Fact,
}

/// A wrong name or place that people use for a setting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misspelling {
    /// Wrong place that people use.
    pub place: PlacePattern,
    /// Sentence that states the mistake.
    pub why: String,
}

/// Allowed values of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedValues {
    /// Bits that Windows reads. Windows ignores all other bits.
    pub mask: Option<u64>,
    /// Smallest and largest allowed number, inclusive.
    pub range: Option<(u64, u64)>,
    /// Values with a name or a special meaning. If there is no range, only these values are allowed.
    #[serde(default)]
    pub values: Vec<NamedValue>,
    /// Additional restriction of the allowed values, as text.
    pub note: Option<String>,
}

/// A value with its name and effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedValue {
    /// Value that has this name and effect.
    pub is: Datum,
    /// Name of the value in the output of commands.
    pub name: Option<String>,
    /// Effect of the value.
    pub means: Option<String>,
}

/// Builds that support a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builds {
    /// First build that supports the setting, if known.
    pub from: Option<u32>,
    /// Last build that supports the setting, if known.
    pub until: Option<u32>,
    /// Description of the builds for the user.
    pub note: Option<String>,
}

/// Event after which a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakesEffect {
    /// The change takes effect immediately.
    Live,
    /// Creation of a connection. Existing connections keep the old value.
    NewConnections,
    /// Restart of the machine.
    Reboot,
    /// Restart of the network adapter.
    AdapterRestart,
    /// Restart of the device.
    DeviceRestart,
    /// Restart of the service that reads the setting.
    ServiceRestart,
    /// Sign-out of the user.
    SignOut,
    /// Refresh of policies (`gpupdate`).
    PolicyRefresh,
    /// The change never takes effect.
    Never,
    /// The event is not documented.
    Unknown,
}

/// Confidence in the facts about a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The facts are unverified claims. A machine never fails an audit because of such facts.
    Low,
    /// The facts have one good source, or several sources that agree but leave gaps.
    Medium,
    /// The vendor documents the facts, or they were reproduced.
    High,
}

/// One confidence for all builds, or one for each range of builds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum ConfidenceRules {
    Always(Confidence),
    ByBuild(Vec<ConfidenceRule>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfidenceRule {
    when: Condition,
    is: Confidence,
}

/// Error: the registry type of a value differs from the types in the sources of the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, but its sources state {wanted}")]
pub struct WrongType {
    setting: String,
    found: &'static str,
    wanted: String,
}

impl AllowedValues {
    /// Returns one text each for the range, the values and the note. `named` formats a value with its
    /// name and effect.
    pub fn describe(&self, named: impl Fn(&Datum, &str) -> String) -> Vec<String> {
        let range = self.range;
        let range = range.map(|(least, greatest)| format!("{least} to {greatest}"));
        let values = self.values.iter().map(|value| {
            let words = [value.name.as_deref(), value.means.as_deref()];
            let words: Vec<&str> = words.into_iter().flatten().collect();
            if words.is_empty() {
                value.is.to_string()
            } else {
                named(&value.is, &words.join(", "))
            }
        });
        let note = self.note.clone();
        range.into_iter().chain(values).chain(note).collect()
    }
}

impl Setting {
    /// Returns the part of the id before the dot. The settings of a family should be changed together.
    pub fn family(&self) -> &str {
        self.id.split('.').next().unwrap_or(&self.id)
    }

    /// Returns the default that applies on the machine at `place`. If too little is known about the
    /// machine, returns all defaults that may apply.
    pub fn defaults_on(&self, machine: &Machine, place: Option<&Place>) -> Vec<&DefaultRule> {
        let mut possible = Vec::new();
        for rule in &self.defaults {
            match rule.when.holds(machine, place) {
                Some(true) => {
                    possible.push(rule);
                    break;
                }
                None => possible.push(rule),
                Some(false) => {}
            }
        }
        possible
    }

    /// Returns true if the build of the machine supports the setting. Returns `None` if the build is needed
    /// but unknown.
    pub fn is_known_to(&self, machine: &Machine) -> Option<bool> {
        let bounds = Condition {
            from: self.builds.from,
            until: self.builds.until,
            ..Condition::default()
        };
        bounds.holds(machine, None)
    }

    /// Returns the confidence in the facts for a machine. If several confidences may apply, returns the
    /// lowest.
    pub fn confidence(&self, machine: &Machine) -> Confidence {
        match &self.confidence {
            ConfidenceRules::Always(confidence) => *confidence,
            ConfidenceRules::ByBuild(rules) => (rules.iter())
                .filter(|rule| rule.when.holds(machine, None) != Some(false))
                .map(|rule| rule.is)
                .min()
                .unwrap_or(Confidence::Low),
        }
    }

    /// Returns the confidences with their conditions.
    pub fn confidences(&self) -> Vec<(Option<&Condition>, Confidence)> {
        match &self.confidence {
            ConfidenceRules::Always(confidence) => vec![(None, *confidence)],
            ConfidenceRules::ByBuild(rules) => (rules.iter())
                .map(|rule| (Some(&rule.when), rule.is))
                .collect(),
        }
    }

    /// Returns true if a change takes effect only after a restart of the machine.
    pub fn needs_reboot(&self) -> bool {
        self.takes_effect == [TakesEffect::Reboot]
    }

    /// Returns true if `before` protects the machine and `value` does not.
    pub fn lowers_protection(&self, before: &Datum, value: &Datum) -> bool {
        self.protects.contains(before) && !self.protects.contains(value)
    }

    /// Returns true if a value is allowed. Returns `None` if the catalogue has neither a range nor a list of
    /// values. A setting whose types are numbers allows no text.
    pub fn allows(&self, value: &Datum) -> Option<bool> {
        let AllowedValues { range, values, .. } = &self.allowed;
        if values.iter().any(|named| named.is == *value) {
            return Some(true);
        }
        match (range, value.number()) {
            (Some((least, greatest)), Some(number)) => Some((*least..=*greatest).contains(&number)),
            (Some(_), None) => Some(false),
            (None, None) if self.is_number() => Some(false),
            (None, _) if values.is_empty() => None,
            (None, _) => Some(false),
        }
    }

    /// Returns true if only numbers can be stored.
    fn is_number(&self) -> bool {
        let is_number = |kind: &Type| {
            matches!(
                kind,
                Type::Dword
                    | Type::Qword
                    | Type::DecimalText
                    | Type::Binary
                    | Type::Switch
                    | Type::Number
            )
        };
        !self.types.is_empty() && self.types.iter().all(is_number)
    }

    /// Converts a stored value to the form of the catalogue: clears ignored bits, and replaces names of
    /// values and words such as `True` by their numbers.
    ///
    /// # Errors
    /// Returns an error if a registry value has another type than the sources state.
    pub fn read(&self, place: &Place, value: &Value) -> Result<Datum, WrongType> {
        let read = match place {
            Place::Registry { .. } => self.read_registry(value),
            _ => read_leniently(value).map(|datum| self.by_name(datum)),
        };
        let read = read.ok_or_else(|| WrongType {
            setting: self.name.clone(),
            found: value.type_name(),
            wanted: (self.types.iter())
                .map(Type::to_string)
                .collect::<Vec<_>>()
                .join(" or "),
        })?;
        Ok(match (read, self.allowed.mask) {
            (Datum::Number(number), Some(mask)) => Datum::Number(number & mask),
            (read, _) => read,
        })
    }

    fn read_registry(&self, value: &Value) -> Option<Datum> {
        let has = |wanted: Type| self.types.contains(&wanted);
        match value {
            Value::Dword(number) if has(Type::Dword) => Some(Datum::Number((*number).into())),
            Value::Qword(number) if has(Type::Qword) => Some(Datum::Number(*number)),
            Value::Text(text) if has(Type::DecimalText) => Some(match text.trim().parse() {
                Ok(number) => Datum::Number(number),
                Err(_) => Datum::Text(text.clone()),
            }),
            Value::Text(text) if has(Type::Text) => Some(Datum::Text(text.clone())),
            Value::Binary(bytes) if has(Type::Binary) => Some(mask_of(bytes)),
            _ => None,
        }
    }

    /// Replaces the name of a value, such as `enabled`, by the value.
    fn by_name(&self, datum: Datum) -> Datum {
        let named = (self.allowed.values.iter()).find(|value| {
            let name = value.name.as_ref();
            name.is_some_and(|name| Datum::Text(name.clone()) == datum)
        });
        match (named, &datum) {
            (Some(named), _) => named.is.clone(),
            (None, Datum::Text(text)) => {
                let is_one =
                    |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
                let has_words = self.types.contains(&Type::Choice);
                match () {
                    () if has_words => datum,
                    () if is_one(["yes", "true", "on", "enabled"]) => Datum::Number(1),
                    () if is_one(["no", "false", "off", "disabled"]) => Datum::Number(0),
                    () => datum,
                }
            }
            (None, Datum::Number(_)) => datum,
        }
    }

    /// Parses a value that the user typed: a decimal or `0x` hexadecimal number, the name of a value, or
    /// text.
    pub fn parse(&self, text: &str) -> Datum {
        let datum = self.by_name(match number(text) {
            Some(number) if !self.types.contains(&Type::Text) => Datum::Number(number),
            _ => Datum::Text(text.to_owned()),
        });
        match (datum, self.allowed.mask) {
            (Datum::Number(number), Some(mask)) => Datum::Number(number & mask),
            (datum, _) => datum,
        }
    }
}

/// Parses a decimal or `0x` hexadecimal number.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Converts a value of a boot entry or of the output of a command. Text may contain a number.
fn read_leniently(value: &Value) -> Option<Datum> {
    match value {
        Value::Text(text) | Value::Expandable(text) => Some(match number(text) {
            Some(number) => Datum::Number(number),
            None => Datum::Text(text.trim().to_owned()),
        }),
        Value::Dword(number) => Some(Datum::Number((*number).into())),
        Value::Qword(number) => Some(Datum::Number(*number)),
        Value::Binary(bytes) => Some(mask_of(bytes)),
        Value::None | Value::List(_) | Value::Other(..) => None,
    }
}

/// Converts up to 8 bytes to a little-endian number, and more bytes to text.
fn mask_of(bytes: &[u8]) -> Datum {
    let mut low = [0; 8];
    match bytes.len() {
        0..=8 => {
            low[..bytes.len()].copy_from_slice(bytes);
            Datum::Number(u64::from_le_bytes(low))
        }
        _ => Datum::Text(Value::Binary(bytes.to_vec()).to_string()),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dword => "REG_DWORD",
            Type::Qword => "REG_QWORD",
            Type::Text => "REG_SZ",
            Type::DecimalText => "REG_SZ with a decimal number",
            Type::Binary => "REG_BINARY",
            Type::Switch => "yes or no",
            Type::Choice => "a word",
            Type::Number => "a number",
            Type::Fact => "a fact, not a setting",
        })
    }
}

impl fmt::Display for TakesEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TakesEffect::Live => "immediately",
            TakesEffect::NewConnections => "for new connections",
            TakesEffect::Reboot => "after a restart of the machine",
            TakesEffect::AdapterRestart => "after a restart of the adapter",
            TakesEffect::DeviceRestart => "after a restart of the device",
            TakesEffect::ServiceRestart => "after a restart of its service",
            TakesEffect::SignOut => "after signing out",
            TakesEffect::PolicyRefresh => "after a refresh of policies (gpupdate)",
            TakesEffect::Never => "never",
            TakesEffect::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        })
    }
}
