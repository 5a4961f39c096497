//! Plans of changes: files to apply, undo and check them, and a description for the user.

mod agreement;
mod command;
mod powershell;
mod request;
mod text;

use registry::{Entry, Key, Value};

use crate::audit;
use crate::catalogue::{Catalogue, Datum, PlacePattern, Setting, Type};
use crate::inputs::Input;
use crate::inputs::reg::{self, ControlCharacter};
use crate::machine::Machine;
use crate::placed_value::{Place, PlacedValue};
use crate::state::{State, States};

pub use agreement::agreement;
pub use request::{Request, RequestError};

/// Planned changes of a machine.
#[derive(Debug)]
pub struct Plan {
    /// Machine to be changed.
    pub machine: Machine,
    /// Changes in the requested order.
    pub changes: Vec<Change>,
}

/// A planned change.
#[derive(Debug)]
pub struct Change {
    /// Setting to be changed.
    pub setting: &'static Setting,
    /// Place of the setting.
    pub place: Place,
    /// Current value; `None` if it is not set.
    pub from: Option<Value>,
    /// Entry of the inputs that contains the current value. `None` if the setting is not set.
    pub found: Option<PlacedValue>,
    /// New value; `None` to remove the setting.
    pub to: Option<Value>,
    /// Risk of the change; `None` if the change does not lower protection.
    pub lowers: Option<String>,
    /// True if the build of Windows supports the setting; `None` if unknown.
    pub has_effect: Option<bool>,
}

impl Change {
    /// Returns true if the setting already has the new value.
    pub fn is_done(&self) -> bool {
        self.from == self.to
    }
}

/// Reason why a change cannot be planned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The setting is unknown.
    #[error("unknown setting {0}: laglab tune explain lists all settings")]
    UnknownSetting(String),
    /// Several settings match the name in the request.
    #[error("several settings are named {name}: give one of these ids: {}", ids.join(", "))]
    Several {
        /// Name in the request.
        name: String,
        /// Ids of the settings.
        ids: Vec<String>,
    },
    /// The setting is at a place that a plan cannot change.
    #[error(
        "cannot plan a change of {name}: plans write only to the registry, the boot configuration, power schemes, and \
         properties that Set-Smb…, Set-NetAdapter…, Set-NetTCPSetting, Set-NetOffloadGlobalSetting and netsh set"
    )]
    NotWritable {
        /// Name in the request.
        name: String,
    },
    /// Several objects, such as adapters, have the setting, and the request does not select one.
    #[error("{name} exists several times: give {name}@PART=VALUE with one of {}", found.join(", "))]
    WhichPart {
        /// Name in the request.
        name: String,
        /// Names of the objects.
        found: Vec<String>,
    },
    /// The requested value is invalid.
    #[error("invalid value {name}={value}: {why}")]
    Value {
        /// Name in the request.
        name: String,
        /// Value in the request.
        value: String,
        /// Reason why the value is invalid.
        why: String,
    },
    /// The current value is unknown, so the change could not be undone.
    #[error(
        "cannot plan the undo of {what}: its current value is unknown; give --from with {input}"
    )]
    UnknownNow {
        /// Place of the setting. If the place is also unknown, the name of the setting.
        what: String,
        /// Description of an input that would contain the current value.
        input: String,
    },
    /// No command can restore the current value.
    #[error(
        "cannot plan the undo of {place}: no command accepts its current value {found}; give --from with the \
         PowerShell output as JSON (ConvertTo-Json), which is the same in all languages"
    )]
    NotUndoable {
        /// Place of the setting.
        place: String,
        /// Current value.
        found: String,
    },
    /// The change lowers protection, and the user did not accept the risk.
    #[error("{name}={value} lowers protection: {risk} To accept this, add --accept-risk {name}")]
    LowersProtection {
        /// Name in the request.
        name: String,
        /// Value in the request.
        value: String,
        /// Description of the risk.
        risk: String,
    },
    /// A name cannot be written to a `.reg` file.
    #[error(transparent)]
    Name(#[from] ControlCharacter),
}

impl Plan {
    /// Plans the requested changes from the current values in the inputs. A change may lower protection only
    /// if `accepted` contains the name or id of the setting.
    ///
    /// # Errors
    /// Returns an error if a setting or value is invalid, or if a change cannot be undone or lowers
    /// protection without acceptance.
    pub fn new(
        requests: &[Request],
        inputs: &[Input],
        given: &Machine,
        accepted: &[String],
    ) -> Result<Self, PlanError> {
        let machine = audit::machine(inputs, given);
        let states = States::new(inputs);
        let changes = requests
            .iter()
            .map(|request| change(request, &states, &machine, accepted))
            .collect::<Result<_, _>>()?;
        Ok(Self { machine, changes })
    }

    /// Returns the names and contents of the plan's files.
    ///
    /// # Errors
    /// Returns an error if a name cannot be written to a `.reg` file.
    pub fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, PlanError> {
        // Windows PowerShell recognises UTF-8 only if the file starts with a byte order mark.
        let script = |text: String| format!("\u{FEFF}{text}").into_bytes();
        Ok(vec![
            (APPLY, reg::to_bytes(&self.entries(|change| &change.to))?),
            (UNDO, reg::to_bytes(&self.entries(|change| &change.from))?),
            ("apply.ps1", script(powershell::apply(self))),
            ("undo.ps1", script(powershell::undo(self))),
            ("check.ps1", script(powershell::check(self))),
            ("plan.md", text::describe(self).into_bytes()),
        ])
    }

    fn entries(&self, value: impl Fn(&Change) -> &Option<Value>) -> Vec<Entry> {
        let changes = self.changes.iter();
        changes
            .filter_map(|change| match &change.place {
                Place::Registry { key, name } => Some(Entry {
                    key: key.clone(),
                    name: name.clone(),
                    value: value(change).clone(),
                }),
                _ => None,
            })
            .collect()
    }
}

/// Name of the file that applies the registry changes.
pub const APPLY: &str = "apply.reg";

/// Name of the file that undoes the registry changes.
pub const UNDO: &str = "undo.reg";

fn change(
    request: &Request,
    states: &States<'_>,
    machine: &Machine,
    accepted: &[String],
) -> Result<Change, PlanError> {
    let setting = setting(&request.name)?;
    let place = place(setting, request, states)?;
    let current = match states.state(&place) {
        State::Set(current) => Some(current),
        State::Absent => None,
        State::Unknown => {
            let pattern = setting
                .places
                .iter()
                .find(|pattern| pattern.matches(&place));
            return Err(PlanError::UnknownNow {
                what: place.to_string(),
                input: pattern.map_or(String::new(), command::input_for),
            });
        }
    };
    let from = current.as_ref().and_then(|current| current.value.clone());
    if !command::is_undoable(setting, &place, from.as_ref()) {
        return Err(PlanError::NotUndoable {
            place: place.to_string(),
            found: from.map_or("empty".to_owned(), |value| value.to_string()),
        });
    }
    let to = match &request.value {
        Some(text) => Some(value(setting, &request.name, &place, text)?),
        None if command::is_removable(&place) => None,
        None => {
            return Err(PlanError::Value {
                name: request.name.clone(),
                value: "absent".to_owned(),
                why: "no command removes this setting; give a value".to_owned(),
            });
        }
    };
    let effective = |value: &Option<Value>| match value {
        Some(value) => setting.read(&place, value).ok(),
        None => {
            let defaults = setting.defaults_on(machine, Some(&place));
            let first = defaults.first();
            first.and_then(|rule| rule.value.effective().cloned())
        }
    };
    let lowers = lowers(setting, effective(&from), effective(&to));
    if let Some(risk) = &lowers {
        let is_accepted = |name: &String| {
            name.eq_ignore_ascii_case(&request.name) || name.eq_ignore_ascii_case(&setting.id)
        };
        if !accepted.iter().any(is_accepted) {
            return Err(PlanError::LowersProtection {
                name: request.name.clone(),
                value: request.value.clone().unwrap_or("absent".to_owned()),
                risk: risk.clone(),
            });
        }
    }
    Ok(Change {
        has_effect: setting.is_known_to(machine),
        setting,
        place,
        from,
        found: current,
        to,
        lowers,
    })
}

/// Returns the setting with this name or id. Returns an error if no setting or several settings match.
fn setting(name: &str) -> Result<&'static Setting, PlanError> {
    let named = Catalogue::get().named(name);
    // If the text is the id of a setting, other settings with this name are ignored.
    let exact = named.iter().find(|setting| setting.id == name);
    match (exact, named.as_slice()) {
        (Some(setting), _) => Ok(setting),
        (None, []) => Err(PlanError::UnknownSetting(name.to_owned())),
        (None, [setting]) => Ok(setting),
        (None, several) => Err(PlanError::Several {
            name: name.to_owned(),
            ids: several.iter().map(|setting| setting.id.clone()).collect(),
        }),
    }
}

/// Returns the place to change. If the request selects an object, such as an adapter, returns the place of this object.
/// Otherwise, returns the place of the setting that the inputs contain. If the inputs contain no place of the setting,
/// returns the first place that a plan can write to.
fn place(setting: &Setting, request: &Request, states: &States<'_>) -> Result<Place, PlanError> {
    let writable = || {
        setting
            .places
            .iter()
            .filter(|place| command::is_writable(place))
    };
    let first = writable().next().ok_or_else(|| PlanError::NotWritable {
        name: request.name.clone(),
    })?;
    let places: Vec<(Option<String>, &Place)> = writable()
        .flat_map(|pattern| {
            let places = states.places();
            let own: Vec<&Place> = places.filter(|place| pattern.matches(place)).collect();
            let part = |place| part(pattern, place, has_several_schemes(&own));
            own.iter()
                .map(|place| (part(place), *place))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut parts: Vec<String> = places.iter().filter_map(|(part, _)| part.clone()).collect();
    parts.extend(parts_in_keys(first, states));
    parts.sort();
    parts.dedup();
    let which_part = || {
        if parts.is_empty() {
            PlanError::UnknownNow {
                what: setting.name.clone(),
                input: command::input_for(first),
            }
        } else {
            PlanError::WhichPart {
                name: request.name.clone(),
                found: parts.clone(),
            }
        }
    };
    let Some(wanted) = &request.part else {
        let whole = places.iter().find(|(part, _)| part.is_none());
        return match (whole, places.as_slice(), filled(first, None)) {
            (Some((_, place)), ..) => Ok((*place).clone()),
            (None, [(_, place)], _) if parts.len() == 1 => Ok((*place).clone()),
            (None, [], Some(place)) => Ok(in_known_entry(place, states)),
            _ => Err(which_part()),
        };
    };
    let is_wanted = |part: &String| part.eq_ignore_ascii_case(wanted);
    if let Some((_, place)) = places
        .iter()
        .find(|(part, _)| part.as_ref().is_some_and(is_wanted))
    {
        return Ok((*place).clone());
    }
    // Accept a key that exists but lacks the value. A key that does not exist would belong to no
    // adapter.
    let mut keys = parts_in_keys(first, states).into_iter();
    let place = keys
        .find(is_wanted)
        .and_then(|key| filled(first, Some(&key)));
    place.ok_or_else(which_part)
}

/// Returns the name that distinguishes a place from other places of the same setting: the placeholder
/// part of a registry key, the object of a command, or `ac` or `dc` of a power scheme. If there are several schemes,
/// the GUID of the scheme precedes `ac` or `dc`.
fn part(pattern: &PlacePattern, place: &Place, has_several_schemes: bool) -> Option<String> {
    match place {
        Place::Registry { key, .. } => {
            let parts = pattern.open_parts(key);
            parts.first().map(|part| (*part).to_owned())
        }
        Place::Answer { object, .. } if !object.is_empty() => Some(object.to_string()),
        Place::Power {
            scheme, on_battery, ..
        } => {
            let supply = if *on_battery { "dc" } else { "ac" };
            Some(if has_several_schemes {
                format!("{scheme}/{supply}")
            } else {
                supply.to_owned()
            })
        }
        _ => None,
    }
}

fn has_several_schemes(places: &[&Place]) -> bool {
    let mut schemes = places.iter().filter_map(|place| match place {
        Place::Power { scheme, .. } => Some(scheme),
        _ => None,
    });
    schemes
        .next()
        .is_some_and(|first| schemes.any(|scheme| scheme != first))
}

/// Returns the names in the inputs that match the placeholder in a registry key.
fn parts_in_keys(pattern: &PlacePattern, states: &States<'_>) -> Vec<String> {
    let keys = states.places().filter_map(|place| match place {
        Place::Registry { key, .. } if pattern.is_in(key) => Some(key),
        _ => None,
    });
    keys.filter_map(|key| {
        pattern
            .open_parts(key)
            .first()
            .map(|part| (*part).to_owned())
    })
    .collect()
}

/// Returns the place of a pattern. Replaces the only placeholder of the pattern by `part`.
fn filled(pattern: &PlacePattern, part: Option<&str>) -> Option<Place> {
    match pattern {
        PlacePattern::Registry { key, name } => {
            let open = key
                .split('\\')
                .filter(|name| crate::catalogue::is_open(name));
            let key: Vec<&str> = match (open.count(), part) {
                (0, None) => key.split('\\').collect(),
                (1, Some(part)) => (key.split('\\'))
                    .map(|name| {
                        if crate::catalogue::is_open(name) {
                            part
                        } else {
                            name
                        }
                    })
                    .collect(),
                _ => return None,
            };
            Some(Place::Registry {
                key: Key::new(&key.join("\\"))?,
                name: name.clone(),
            })
        }
        PlacePattern::Boot { boot } if part.is_none() => Some(Place::Boot {
            entry: "{current}".to_owned(),
            element: boot.clone(),
        }),
        _ => None,
    }
}

/// Replaces the boot entry by the boot entry in the inputs. A listing of `bcdedit` has {current}, but a BCD
/// store has only {default}.
fn in_known_entry(place: Place, states: &States<'_>) -> Place {
    const DEFAULT: &str = "{default}";
    let has_entry = |wanted: &str| {
        let mut places = states.places();
        places.any(|place| matches!(place, Place::Boot { entry, .. } if entry == wanted))
    };
    match place {
        Place::Boot { entry, element } if !has_entry(&entry) && has_entry(DEFAULT) => Place::Boot {
            entry: DEFAULT.to_owned(),
            element,
        },
        place => place,
    }
}

/// Converts a requested value to the form that its place stores: the registry type of the setting, the text
/// of a boot element, or the word or number that a command accepts.
fn value(setting: &Setting, name: &str, place: &Place, text: &str) -> Result<Value, PlanError> {
    let refused = |why: String| PlanError::Value {
        name: name.to_owned(),
        value: text.to_owned(),
        why,
    };
    let datum = setting.parse(text);
    if let Some(why) = audit::not_allowed(setting, &datum) {
        return Err(refused(why));
    }
    if matches!(place, Place::Answer { .. } | Place::Power { .. }) {
        let word = command::word(setting, place, &datum);
        let word = word.ok_or_else(|| refused("no command accepts it".to_owned()))?;
        return Ok(match (place, word.parse()) {
            (Place::Power { .. }, Ok(number)) => Value::Dword(number),
            _ => Value::Text(word),
        });
    }
    if matches!(place, Place::Boot { .. }) {
        let switch = setting.types.contains(&Type::Switch);
        // The command `bcdedit` accepts the words that it prints.
        let named = setting
            .allowed
            .values
            .iter()
            .find(|named| named.is == datum);
        if let Some(word) = named
            .and_then(|named| named.name.clone())
            .filter(|_| !switch)
        {
            return Ok(Value::Text(word));
        }
        return Ok(Value::Text(match (&datum, switch) {
            (Datum::Number(number), true) => if *number == 0 { "No" } else { "Yes" }.to_owned(),
            (Datum::Number(number), false) => number.to_string(),
            (Datum::Text(text), _) => text.clone(),
        }));
    }
    let kind = setting.types.first().copied();
    match (kind, &datum) {
        (Some(Type::Dword), Datum::Number(number)) => u32::try_from(*number)
            .map(Value::Dword)
            .map_err(|_| refused("a REG_DWORD has 32 bits".to_owned())),
        (Some(Type::Qword), Datum::Number(number)) => Ok(Value::Qword(*number)),
        (Some(Type::DecimalText), Datum::Number(number)) => Ok(Value::Text(number.to_string())),
        // The text of a decimal number is a named value here, such as `-1`.
        (Some(Type::Text | Type::DecimalText), Datum::Text(text)) => Ok(Value::Text(text.clone())),
        (Some(Type::Text), Datum::Number(_)) => Ok(Value::Text(text.to_owned())),
        (Some(Type::Binary), Datum::Number(number)) => {
            Ok(Value::Binary(number.to_le_bytes().to_vec()))
        }
        (Some(kind), _) => Err(refused(format!("Windows reads {kind}"))),
        (None, _) => Err(refused("its type is unknown".to_owned())),
    }
}

/// Returns the risk if a change lowers protection. An unknown value is assumed to protect.
fn lowers(setting: &Setting, from: Option<Datum>, to: Option<Datum>) -> Option<String> {
    let protects = |value: &Option<Datum>| {
        let value = value.as_ref();
        value.is_none_or(|value| setting.protects.contains(value))
    };
    let lowers = !setting.protects.is_empty() && protects(&from) && !protects(&to);
    lowers.then(|| {
        let risk = setting.risk.as_deref();
        risk.unwrap_or(audit::SECURITY_CONTROL).to_owned()
    })
}

#[cfg(test)]
mod tests;
