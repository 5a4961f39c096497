//! A change that was thought through: what is set, how it is undone, what is checked and measured.

mod command;
mod powershell;
mod request;
mod text;

use crate::audit;
use crate::catalogue::{Catalogue, Datum, PlacePattern, Setting, Type};
use crate::found::{Found, Place};
use crate::inputs::{Input, reg};
use crate::known::{Known, State};
use crate::machine::Machine;
use crate::registry::{Entry, Key, Value};

pub use request::{NotARequest, Request};

/// Changes with their undo.
#[derive(Debug)]
pub struct Plan {
    /// The machine they are for.
    pub machine: Machine,
    /// The changes, in the order in which they were asked for.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Debug)]
pub struct Change {
    /// The setting.
    pub setting: &'static Setting,
    /// Where it is kept.
    pub place: Place,
    /// What is there now, as it was found; `None` if nothing is.
    pub from: Option<Value>,
    /// Who said so; `None` if it was found to be absent.
    pub found: Option<Found>,
    /// What will be there; `None` if nothing.
    pub to: Option<Value>,
    /// What it costs in security, if it lowers protection.
    pub lowers: Option<String>,
    /// Whether Windows of this build knows the setting; `None` where that is open.
    pub has_effect: Option<bool>,
}

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No setting is called so.
    #[error("no setting is called {0}: laglab tune explain lists all")]
    NoSetting(String),
    /// Several are.
    #[error("{name} is the name of several settings: say which of {}", ids.join(", "))]
    Several {
        /// The name.
        name: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// It is in no place that can be written to.
    #[error(
        "{name} is kept where a plan cannot write: it writes to the registry, the boot configuration and power \
         schemes, and to what Set-Smb…, Set-NetAdapter…, Set-NetTCPSetting, Set-NetOffloadGlobalSetting and \
         netsh change"
    )]
    NotWritable {
        /// The name.
        name: String,
    },
    /// There are several of the things that have the setting.
    #[error(
        "{name} is there once for each of several: say {name}@PART=VALUE with PART one of {}",
        parts(found)
    )]
    WhichPart {
        /// The name.
        name: String,
        /// Those that were found.
        found: Vec<String>,
    },
    /// The value is not one.
    #[error("{name}={value}: {why}")]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing says what is there now, so nothing would say how to undo the change.
    #[error(
        "no input tells what {what} is now, so it could not be undone: give --from with {give}"
    )]
    UnknownNow {
        /// The place, or the setting if its place is not known either.
        what: String,
        /// What would tell it.
        give: String,
    },
    /// What is there now cannot be brought back.
    #[error(
        "{place} is now {found}, which is no value that can be set again, so it could not be undone: give --from \
         with the answer of PowerShell's command as JSON (ConvertTo-Json), which is not translated"
    )]
    NotUndoable {
        /// The place.
        place: String,
        /// What is there.
        found: String,
    },
    /// It lowers protection, and nobody accepted that.
    #[error("{name}={value} lowers protection: {risk} If that is meant, add --accept-risk {name}")]
    LowersProtection {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it costs.
        risk: String,
    },
}

fn parts(found: &[String]) -> String {
    match found {
        [] => "(none was found)".to_owned(),
        found => found.join(", "),
    }
}

impl Plan {
    /// Plans what is asked for, from what inputs say is there now. A change that lowers protection is
    /// refused unless its name is among the `accepted`.
    ///
    /// # Errors
    /// If a request names no setting, no value, nothing that can be undone, or lowers protection.
    pub fn new(
        requests: &[Request],
        inputs: &[Input],
        asked: &Machine,
        accepted: &[String],
    ) -> Result<Self, PlanError> {
        let machine = audit::machine(inputs, asked);
        let known = Known::of(inputs);
        let changes = requests
            .iter()
            .map(|request| change(request, &known, &machine, accepted))
            .collect::<Result<_, _>>()?;
        Ok(Self { machine, changes })
    }

    /// The files of the plan, with their names.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let reg = |entries: Vec<Entry>| {
            // As the Registry Editor saves them.
            let text = reg::write(&entries);
            let units = [0xFEFF].into_iter().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
        };
        // Windows PowerShell takes UTF-8 for what it is only by this mark.
        let script = |text: String| format!("\u{FEFF}{text}").into_bytes();
        vec![
            (APPLY, reg(self.entries(|change| &change.to))),
            (UNDO, reg(self.entries(|change| &change.from))),
            ("apply.ps1", script(powershell::apply(self))),
            ("undo.ps1", script(powershell::undo(self))),
            ("check.ps1", script(powershell::check(self))),
            ("plan.md", text::describe(self).into_bytes()),
        ]
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

/// The file that makes a plan's changes in the registry.
pub const APPLY: &str = "apply.reg";

/// The file that undoes them.
pub const UNDO: &str = "undo.reg";

fn change(
    request: &Request,
    known: &Known<'_>,
    machine: &Machine,
    accepted: &[String],
) -> Result<Change, PlanError> {
    let setting = setting(&request.name)?;
    let place = place(setting, request, known)?;
    let found = match known.state(&place) {
        State::Said(found) => Some(found),
        State::Absent => None,
        State::Unknown => {
            let pattern = setting.places.iter().find(|pattern| pattern.is(&place));
            return Err(PlanError::UnknownNow {
                what: place.to_string(),
                give: pattern.map_or(String::new(), command::told_by),
            });
        }
    };
    let from = found.as_ref().and_then(|found| found.value.clone());
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
                why: "no command removes it: give a value".to_owned(),
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
        found,
        to,
        lowers,
    })
}

/// The one setting that is called so and can be written.
fn setting(name: &str) -> Result<&'static Setting, PlanError> {
    let named = Catalogue::get().named(name);
    // An id is one setting's, even if others are called so too.
    let exact = named.iter().find(|setting| setting.id == name);
    match (exact, named.as_slice()) {
        (Some(setting), _) => Ok(setting),
        (None, []) => Err(PlanError::NoSetting(name.to_owned())),
        (None, [setting]) => Ok(setting),
        (None, several) => Err(PlanError::Several {
            name: name.to_owned(),
            ids: several.iter().map(|setting| setting.id.clone()).collect(),
        }),
    }
}

/// Where the setting is to be written: where it was found, in the order of its places, or else the first of
/// those.
fn place(setting: &Setting, request: &Request, known: &Known<'_>) -> Result<Place, PlanError> {
    let writable = || {
        setting
            .places
            .iter()
            .filter(|place| command::is_writable(place))
    };
    let first = writable().next().ok_or_else(|| PlanError::NotWritable {
        name: request.name.clone(),
    })?;
    let found: Vec<(Option<String>, &Place)> = writable()
        .flat_map(|pattern| {
            let words = known.words().iter().map(|found| &found.place);
            let own: Vec<&Place> = words.filter(|place| pattern.is(place)).collect();
            let part = |place| part(pattern, place, has_several_schemes(&own));
            own.iter()
                .map(|place| (part(place), *place))
                .collect::<Vec<_>>()
        })
        .collect();
    let mut parts: Vec<String> = found.iter().filter_map(|(part, _)| part.clone()).collect();
    parts.extend(parts_in_keys(first, known));
    parts.sort();
    parts.dedup();
    let which_part = || match parts.is_empty() {
        true => PlanError::UnknownNow {
            what: setting.name.clone(),
            give: command::told_by(first),
        },
        false => PlanError::WhichPart {
            name: request.name.clone(),
            found: parts.clone(),
        },
    };
    let Some(wanted) = &request.part else {
        let whole = found.iter().find(|(part, _)| part.is_none());
        return match (whole, found.as_slice(), filled(first, None)) {
            (Some((_, place)), ..) => Ok((*place).clone()),
            (None, [(_, place)], _) if parts.len() == 1 => Ok((*place).clone()),
            (None, [], Some(place)) => Ok(in_known_entry(place, known)),
            _ => Err(which_part()),
        };
    };
    let is_wanted = |part: &String| part.eq_ignore_ascii_case(wanted);
    if let Some((_, place)) = found
        .iter()
        .find(|(part, _)| part.as_ref().is_some_and(is_wanted))
    {
        return Ok((*place).clone());
    }
    // A key that is there without the value; one that is not would be of an adapter that is none.
    let mut keys = parts_in_keys(first, known).into_iter();
    let place = keys
        .find(is_wanted)
        .and_then(|key| filled(first, Some(&key)));
    place.ok_or_else(which_part)
}

/// What tells a place from the others of its setting: the open part of its key, the adapter or template that a
/// command tells of, or whether the power scheme is that of the mains or of the battery.
fn part(pattern: &PlacePattern, place: &Place, has_several_schemes: bool) -> Option<String> {
    match place {
        Place::Registry { key, .. } => {
            let parts = pattern.open_parts(key);
            parts.first().map(|part| (*part).to_owned())
        }
        Place::Answer { object, .. } if !object.is_empty() => Some(object.clone()),
        Place::Power {
            scheme, on_battery, ..
        } => {
            let supply = if *on_battery { "dc" } else { "ac" };
            Some(match has_several_schemes {
                true => format!("{scheme}/{supply}"),
                false => supply.to_owned(),
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

/// What the open part of a pattern's key is in the keys that inputs tell of.
fn parts_in_keys(pattern: &PlacePattern, known: &Known<'_>) -> Vec<String> {
    let keys = known.words().iter().filter_map(|found| match &found.place {
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

/// The place of a pattern, whose one open part is `part`.
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

/// The place, in the entry that inputs tell of: a listing has the running one, a store only that which
/// is started by default.
fn in_known_entry(place: Place, known: &Known<'_>) -> Place {
    const STARTED: &str = "{default}";
    let tells_of = |wanted: &str| {
        let mut words = known.words().iter();
        words.any(|found| matches!(&found.place, Place::Boot { entry, .. } if entry == wanted))
    };
    match place {
        Place::Boot { entry, element } if !tells_of(&entry) && tells_of(STARTED) => Place::Boot {
            entry: STARTED.to_owned(),
            element,
        },
        place => place,
    }
}

/// The value to be written, of the type that Windows reads there.
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
        let word = word.ok_or_else(|| refused("no command takes that there".to_owned()))?;
        return Ok(match (place, word.parse()) {
            (Place::Power { .. }, Ok(number)) => Value::Dword(number),
            _ => Value::Text(word),
        });
    }
    if matches!(place, Place::Boot { .. }) {
        let switch = setting.types.contains(&Type::Switch);
        // bcdedit takes words where it shows words.
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
        (Some(Type::Text), Datum::Text(text)) => Ok(Value::Text(text.clone())),
        (Some(Type::Text), Datum::Number(_)) => Ok(Value::Text(text.to_owned())),
        (Some(Type::Binary), Datum::Number(number)) => {
            Ok(Value::Binary(number.to_le_bytes().to_vec()))
        }
        (Some(kind), _) => Err(refused(format!("Windows reads {kind} there"))),
        (None, _) => Err(refused("its type is not known".to_owned())),
    }
}

/// What a change from one value to another costs in security, if it lowers protection; what is unknown
/// is taken to protect.
fn lowers(setting: &Setting, from: Option<Datum>, to: Option<Datum>) -> Option<String> {
    let protects = |value: &Option<Datum>| {
        let value = value.as_ref();
        value.is_none_or(|value| setting.protects.contains(value))
    };
    let lowers = !setting.protects.is_empty() && protects(&from) && !protects(&to);
    lowers.then(|| {
        let risk = setting.risk.as_deref();
        risk.unwrap_or("It is a security control.").to_owned()
    })
}

#[cfg(test)]
mod tests;
