//! Reading scenarios: one file over another, and settings over both.

use toml::{Table, Value};

use super::{Document, Fault, ScenarioError, place};

/// A scenario that has been read: its text is right, and what it names is there.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    pub(crate) document: Document,
}

/// One value set over a scenario's: `machine.windows = "11-25H2"`. Members of a list are chosen by
/// name or number: `process."LockApp.exe".class = "high"`.
#[derive(Clone, Debug)]
pub struct Override {
    /// As it was given.
    setting: String,
    /// The same as TOML.
    text: String,
    table: Table,
}

/// How many scenarios may extend one another.
const MOST_BASES: u32 = 4;

impl Override {
    /// Reads `path=value`; a value that is no TOML is taken as text.
    ///
    /// # Errors
    /// If there is no `=`, or the path is none.
    pub fn parse(setting: &str) -> Result<Override, ScenarioError> {
        let wrong = |message: String| ScenarioError::Setting {
            setting: setting.to_owned(),
            message,
        };
        let (path, value) = setting.split_once('=').ok_or_else(|| {
            wrong("expected `path=value`, such as `machine.processors=16`".into())
        })?;
        let (path, value) = (path.trim(), value.trim());
        let no_path = |message: &str| wrong(format!("`{path}` is no path: {message}"));
        // The path stands alone before the value, so that neither can be more than it is.
        let keys: Table = toml::from_str(&format!("{path}=0")).map_err(|e| no_path(e.message()))?;
        if path.contains(['\n', '\r']) || !leads_to_one(&keys) {
            return Err(no_path("expected keys with dots between them"));
        }
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let text = match parsed {
            Ok(table) if table.len() == 1 => format!("{path} = {value}"),
            _ => format!("{path} = {}", Value::String(value.to_owned())),
        };
        let table = toml::from_str(&text).map_err(|e| no_path(e.message()))?;
        Ok(Override {
            setting: setting.to_owned(),
            text,
            table,
        })
    }
}

/// Whether there is nothing in a table but the way to one value.
fn leads_to_one(table: &Table) -> bool {
    table.len() == 1
        && table.values().all(|value| match value {
            Value::Table(inner) => leads_to_one(inner),
            _ => true,
        })
}

impl Scenario {
    /// Reads a scenario from `text` of `file`, with `settings` over it. `named` gives the text of
    /// the scenario that this one extends.
    ///
    /// # Errors
    /// If the text is no scenario (with line and column), or not with what is set over it.
    pub fn read(
        file: &str,
        text: &str,
        named: &dyn Fn(&str) -> Option<String>,
        settings: &[Override],
    ) -> Result<Scenario, ScenarioError> {
        let name = std::path::Path::new(file)
            .file_stem()
            .map_or(file.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let (mut merged, mut document) = read_whole(file, text, named, 0)?;
        if !settings.is_empty() {
            for over in settings {
                merge(&mut merged, over.table.clone()).map_err(|message| {
                    let setting = over.setting.clone();
                    ScenarioError::Setting { setting, message }
                })?;
            }
            document = document_of(&merged, |whole, fault| {
                let way = place::way(whole, fault.span(whole).start);
                let set = |over: &&Override| place::find(&over.text, &way).is_ok();
                match settings.iter().rev().find(set).filter(|_| !way.is_empty()) {
                    Some(over) => ScenarioError::Setting {
                        setting: over.setting.clone(),
                        message: fault.message,
                    },
                    None => over(file, whole, &fault),
                }
            })?;
        }
        Ok(Scenario { name, document })
    }

    /// Its name: the file's, without folder and ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it shows, in a line.
    pub fn title(&self) -> &str {
        &self.document.title
    }

    /// What happens, and where its figures come from.
    pub fn about(&self) -> &str {
        &self.document.about
    }

    /// The seed that it has of itself.
    pub fn seed(&self) -> u64 {
        self.document.seed
    }
}

/// A scenario's table, over those of the ones that it extends, and what it says.
fn read_whole(
    file: &str,
    text: &str,
    named: &dyn Fn(&str) -> Option<String>,
    depth: u32,
) -> Result<(Table, Document), ScenarioError> {
    let at = |fault: Fault| fault.located(file, text);
    let mut table: Table = toml::from_str(text).map_err(|e| at(fault_of(&e)))?;
    let Some(extends) = table.remove("extends") else {
        let document: Document = toml::from_str(text).map_err(|e| at(fault_of(&e)))?;
        document.check().map_err(at)?;
        return Ok((table, document));
    };
    let wrong = |message: String| at(Fault::of("extends", message));
    let Value::String(extends) = extends else {
        return Err(wrong("`extends` is the name of a scenario".into()));
    };
    let base = named(&extends)
        .ok_or_else(|| wrong(format!("there is no scenario `{extends}` to extend")))?;
    if depth == MOST_BASES {
        return Err(wrong(format!(
            "more than {MOST_BASES} scenarios extend one another, or each the other"
        )));
    }
    let (mut merged, _) = read_whole(&extends, &base, named, depth + 1)?;
    put_over(&mut merged, table).map_err(|message| over(file, "", &Fault::new(0..0, message)))?;
    let document = document_of(&merged, |whole, fault| {
        let way = place::way(whole, fault.span(whole).start);
        match place::find(text, &way) {
            Ok(span) if !way.is_empty() => at(Fault::new(span, fault.message)),
            _ => over(file, whole, &fault),
        }
    })?;
    Ok((merged, document))
}

/// What a table says; `locate` tells of a fault in the text that it is written as.
fn document_of(
    merged: &Table,
    locate: impl Fn(&str, Fault) -> ScenarioError,
) -> Result<Document, ScenarioError> {
    // What was read can be written.
    let text = toml::to_string(merged).unwrap_or_default();
    let document: Document = toml::from_str(&text).map_err(|e| locate(&text, fault_of(&e)))?;
    document.check().map_err(|fault| locate(&text, fault))?;
    Ok(document)
}

fn fault_of(error: &toml::de::Error) -> Fault {
    Fault::new(error.span().unwrap_or(0..0), error.message())
}

/// A fault with the line of `text` that it is about, since nobody has seen the text.
fn over(file: &str, text: &str, fault: &Fault) -> ScenarioError {
    let line = || {
        let start = text.get(..fault.span(text).start)?;
        let start = start.rfind('\n').map_or(0, |at| at + 1);
        text.get(start..)?.lines().next()
    };
    let message = match line() {
        Some(line) => format!("{} (in `{}`)", fault.message, line.trim()),
        None => fault.message.clone(),
    };
    ScenarioError::Over {
        file: file.to_owned(),
        message,
    }
}

/// Puts a scenario over the one that it extends: what it changes, and the members of lists that it
/// `add`s.
fn put_over(under: &mut Table, mut over: Table) -> Result<(), String> {
    let added = over.remove("add");
    merge(under, over)?;
    let Some(Value::Table(added)) = added else {
        return match added {
            None => Ok(()),
            Some(_) => Err("`add` holds lists, such as `[[add.process]]`".to_owned()),
        };
    };
    for (key, members) in added {
        let list = under.entry(&key).or_insert(Value::Array(Vec::new()));
        match (list, members) {
            (Value::Array(list), Value::Array(members)) => list.extend(members),
            _ => return Err(format!("`{key}` is no list that members can be added to")),
        }
    }
    Ok(())
}

/// Puts `over` over `under`: tables member by member, everything else whole.
fn merge(under: &mut Table, over: Table) -> Result<(), String> {
    for (key, over) in over {
        match (under.get_mut(&key), over) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over)?,
            (Some(Value::Array(list)), Value::Table(over)) => {
                for (chosen, over) in over {
                    let member = member(list, &chosen)
                        .ok_or_else(|| format!("`{key}` has no `{chosen}`"))?;
                    match (member, over) {
                        (Value::Table(under), Value::Table(over)) => merge(under, over)?,
                        (member, over) => *member = over,
                    }
                }
            }
            (_, over) => {
                under.insert(key, over);
            }
        }
    }
    Ok(())
}

/// A member of a list, by its name or number.
fn member<'a>(list: &'a mut [Value], chosen: &str) -> Option<&'a mut Value> {
    let named = list
        .iter()
        .position(|member| member.get("name").and_then(Value::as_str) == Some(chosen));
    let at = named.or_else(|| chosen.parse().ok())?;
    list.get_mut(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Scenario, String> {
        let base = "title = 'b'\nduration = '1s'\n[machine]\n[[process]]\nname = 'a.exe'\n";
        let named = |name: &str| (name == "base").then(|| base.to_owned());
        Scenario::read("over.toml", text, &named, &[]).map_err(|e| e.to_string())
    }

    #[test]
    fn a_scenario_changes_members_of_lists_and_adds_some() {
        let over = "extends = 'base'\n[process.'a.exe']\nclass = 'high'\n\
                    [[add.process]]\nname = 'b.exe'\n[[add.group]]\nname = 'g'\n";
        let document = read(over).unwrap().document;
        let processes = document.processes.iter();
        let named: Vec<_> = processes
            .map(|p| (p.name.as_str(), p.class.base()))
            .collect();
        assert_eq!(named, [("a.exe", 13), ("b.exe", 8)]);
        assert_eq!(document.groups.len(), 1);

        let message = read("extends = 'base'\n[[add.machine]]\nname = 'b'\n").unwrap_err();
        assert!(message.contains("`machine`"), "{message}");
        let message = read("extends = 'base'\nadd = 3\n").unwrap_err();
        assert!(message.contains("`add` holds lists"), "{message}");
    }
}
