//! One setting: all that is known of it.

use std::fmt;

use serde::Deserialize;

use super::{Datum, DefaultRule, PlacePattern, Rule, When};
use crate::found::Place;
use crate::machine::Machine;
use crate::registry::Value;

/// What is known of a setting.
///
/// Shapes and words are those of `catalogue/*.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its id, unique in the catalogue; settings of one family share what is before the dot.
    pub id: String,
    /// Its group: the name of the file it is in.
    #[serde(skip)]
    pub group: &'static str,
    /// What it is called, in most cases the name of its value.
    pub name: String,
    /// What else it is called.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Types that Windows reads it in.
    #[serde(rename = "type")]
    pub types: Vec<Type>,
    /// Where it is kept; none for what is no setting of a machine but a fact that explains one.
    #[serde(default)]
    pub places: Vec<PlacePattern>,
    /// Places and names that are mistaken for it and do nothing.
    #[serde(default)]
    pub misspellings: Vec<Misspelling>,
    /// What it is when nobody has set it; of those that hold the first counts.
    pub defaults: Vec<DefaultRule>,
    /// What it may be.
    #[serde(default)]
    pub allowed: Allowed,
    /// What it does.
    pub meaning: String,
    /// Builds that know it.
    #[serde(default)]
    pub builds: Builds,
    /// When a change takes effect: after any one of these.
    pub takes_effect: Vec<TakesEffect>,
    /// How sure that is, by build.
    confidence: Sureness,
    /// What is not sure, and why.
    pub confidence_note: Option<String>,
    /// What a change may break.
    pub risk: Option<String>,
    /// Values under which it protects the machine; none for what is no security control.
    #[serde(default)]
    pub protects: Vec<Datum>,
    /// What an audit says of values.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// What to look at before a change.
    pub advice: Option<String>,
    /// What in a trace or a measurement would show its effect.
    pub evidence: Option<String>,
    /// The command that tells what is in effect, whatever was set.
    pub read_with: Option<String>,
    /// Where all this is from.
    pub sources: Vec<String>,
}

/// How a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// REG_DWORD.
    Dword,
    /// REG_QWORD.
    Qword,
    /// REG_SZ.
    Text,
    /// REG_SZ that holds a decimal number.
    DecimalText,
    /// REG_BINARY.
    Binary,
    /// Yes or no, of the boot configuration or of a command.
    Switch,
    /// One of several words, of the boot configuration or of a command.
    Choice,
    /// A number, of a power scheme or of a command.
    Number,
    /// None: a fact about an interface, a protocol or a device.
    Fact,
}

/// A place where somebody may have believed the setting to be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misspelling {
    /// The place.
    pub place: PlacePattern,
    /// What is wrong with it.
    pub why: String,
}

/// What a setting may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    /// Only these bits are read.
    pub mask: Option<u64>,
    /// The least and the greatest number.
    pub range: Option<(u64, u64)>,
    /// Values that have a name or a meaning of their own; without a range there are no others.
    #[serde(default)]
    pub values: Vec<NamedValue>,
    /// What cannot be said so.
    pub note: Option<String>,
}

/// A value with its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedValue {
    /// The value.
    pub is: Datum,
    /// Its name, as commands write it.
    pub name: Option<String>,
    /// What it does.
    pub means: Option<String>,
}

/// Builds that know a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builds {
    /// The first that does; none if no bound is known.
    pub from: Option<u32>,
    /// The last that does; none if no bound is known.
    pub until: Option<u32>,
    /// The same in words.
    pub note: Option<String>,
}

/// What has to happen until a change counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakesEffect {
    /// Nothing.
    Live,
    /// Connections have to be made anew.
    NewConnections,
    /// The machine has to be started anew.
    Reboot,
    /// The adapter has to be restarted.
    AdapterRestart,
    /// The device has to be restarted.
    DeviceRestart,
    /// A service has to be restarted.
    ServiceRestart,
    /// The user has to sign out.
    SignOut,
    /// Policies have to be applied anew (`gpupdate`).
    PolicyRefresh,
    /// It never does.
    Never,
    /// Nobody has said.
    Unknown,
}

/// How well something is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Hearsay. Nothing may fail because of it.
    Low,
    /// One good source, or several that agree but do not say all.
    Medium,
    /// Documented by the vendor, or reproduced.
    High,
}

/// A confidence, or several by build.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Sureness {
    Always(Confidence),
    ByBuild(Vec<SureWhen>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SureWhen {
    when: When,
    is: Confidence,
}

/// A value that Windows does not read, because of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, but Windows reads {wanted} there")]
pub struct WrongType {
    setting: String,
    found: &'static str,
    wanted: String,
}

impl Allowed {
    /// Its range, its values and its note, a text each; `named` puts a value before its name and what
    /// it does.
    pub fn told(&self, named: impl Fn(&Datum, &str) -> String) -> Vec<String> {
        let range = self.range;
        let range = range.map(|(least, greatest)| format!("{least} to {greatest}"));
        let values = self.values.iter().map(|value| {
            let words = [value.name.as_deref(), value.means.as_deref()];
            let words: Vec<&str> = words.into_iter().flatten().collect();
            match words.is_empty() {
                true => value.is.to_string(),
                false => named(&value.is, &words.join(", ")),
            }
        });
        let note = self.note.clone();
        range.into_iter().chain(values).chain(note).collect()
    }
}

impl Setting {
    /// What is before the dot of its id: the same for settings that were made to be set together.
    pub fn family(&self) -> &str {
        self.id.split('.').next().unwrap_or(&self.id)
    }

    /// The defaults that hold on the machine for the setting at `place`: one if all that they hang on
    /// is known, else all that may hold.
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

    /// Whether Windows of this build knows the setting; `None` if the build is unknown and matters.
    pub fn is_known_to(&self, machine: &Machine) -> Option<bool> {
        let bounds = When {
            from: self.builds.from,
            until: self.builds.until,
            ..When::default()
        };
        bounds.holds(machine, None)
    }

    /// How sure what is said of it is for this machine; the least that may hold.
    pub fn confidence(&self, machine: &Machine) -> Confidence {
        match &self.confidence {
            Sureness::Always(confidence) => *confidence,
            Sureness::ByBuild(rules) => (rules.iter())
                .filter(|rule| rule.when.holds(machine, None) != Some(false))
                .map(|rule| rule.is)
                .min()
                .unwrap_or(Confidence::Low),
        }
    }

    /// The confidences, each with where it holds.
    pub fn confidences(&self) -> Vec<(Option<&When>, Confidence)> {
        match &self.confidence {
            Sureness::Always(confidence) => vec![(None, *confidence)],
            Sureness::ByBuild(rules) => (rules.iter())
                .map(|rule| (Some(&rule.when), rule.is))
                .collect(),
        }
    }

    /// Whether only a restart of the machine makes a change count.
    pub fn needs_reboot(&self) -> bool {
        self.takes_effect == [TakesEffect::Reboot]
    }

    /// Whether the value protects the machine less than `before` did.
    pub fn lowers_protection(&self, before: &Datum, value: &Datum) -> bool {
        self.protects.contains(before) && !self.protects.contains(value)
    }

    /// Whether it may be this; `None` if what it may be cannot be told by a range or a list.
    pub fn allows(&self, value: &Datum) -> Option<bool> {
        let Allowed { range, values, .. } = &self.allowed;
        if values.iter().any(|named| named.is == *value) {
            return Some(true);
        }
        match (range, value.number()) {
            (Some((least, greatest)), Some(number)) => Some((*least..=*greatest).contains(&number)),
            (Some(_), None) => Some(false),
            (None, _) if values.is_empty() => None,
            (None, _) => Some(false),
        }
    }

    /// The value as the catalogue writes it: without bits that are not read, names and words such as
    /// `True` as what they stand for.
    ///
    /// # Errors
    /// If it is in the registry in another type than Windows reads.
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

    /// A value that was given by the name of one, as that one.
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

    /// The value that people typed: a number in decimal or `0x` hexadecimal, a name, or a text.
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

/// A number as people and commands write it.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a command or the boot configuration says: a number, if it is one.
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

/// Bytes as a little-endian number, or as text of them if there are too many.
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
            Type::Fact => "a fact, no setting",
        })
    }
}

impl fmt::Display for TakesEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TakesEffect::Live => "at once",
            TakesEffect::NewConnections => "for new connections",
            TakesEffect::Reboot => "after a restart of the machine",
            TakesEffect::AdapterRestart => "after a restart of the adapter",
            TakesEffect::DeviceRestart => "after a restart of the device",
            TakesEffect::ServiceRestart => "after a restart of its service",
            TakesEffect::SignOut => "after signing out",
            TakesEffect::PolicyRefresh => "when policies are applied anew (gpupdate)",
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
