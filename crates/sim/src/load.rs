//! Loading of scenarios: combines a file with its bases (the scenarios that it extends) and with
//! overrides.

use toml::{Table, Value};

use crate::model;
use crate::scenario::{Document, Fault, ScenarioError, limits, place};

/// A scenario that was checked: its text is valid, and the names to which it refers exist.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    pub(crate) document: Document,
}

/// An override of one value in a scenario: `machine.windows = "11-25H2"`. Members of a list are
/// selected by name or index: `process."LockApp.exe".class = "high"`.
#[derive(Clone, Debug)]
pub struct Override {
    /// Override as the user wrote it.
    setting: String,
    /// Override as a line of TOML.
    text: String,
    table: Table,
}

/// Maximum number of bases in a chain of scenarios that extend one another.
const MOST_BASES: u32 = 4;

impl Override {
    /// Parses `path=value`. A value that is not valid TOML is taken as a string.
    ///
    /// # Errors
    /// Returns an error if the `=` is missing or the path is invalid.
    pub fn parse(setting: &str) -> Result<Override, ScenarioError> {
        let wrong = |message: String| ScenarioError::Setting {
            setting: setting.to_owned(),
            message,
        };
        let (path, value) = setting.split_once('=').ok_or_else(|| {
            wrong("expected `path=value`, such as `machine.processors=16`".into())
        })?;
        let (path, value) = (path.trim(), value.trim());
        let no_path = |message: &str| wrong(format!("`{path}` is not a path: {message}"));
        // The path is parsed separately, so that the path cannot contain further TOML.
        let keys: Table = toml::from_str(&format!("{path}=0")).map_err(|e| no_path(e.message()))?;
        if path.contains(['\n', '\r']) || !leads_to_one(&keys) {
            return Err(no_path("expected keys separated by dots"));
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

/// Returns true if a table contains only the path to one value.
fn leads_to_one(table: &Table) -> bool {
    table.len() == 1
        && table.values().all(|value| match value {
            Value::Table(inner) => leads_to_one(inner),
            _ => true,
        })
}

impl Scenario {
    /// Reads a scenario from `text`, the contents of `file`, and applies the overrides in
    /// `settings`. `named` returns the text of the base scenario with a given name.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid scenario (with line and column), or the
    /// overrides make it invalid.
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

    /// Returns the scenario's name: the file's name without folder and extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the scenario's title.
    pub fn title(&self) -> &str {
        &self.document.title
    }

    /// Returns the scenario's description: the events that it simulates and the sources of its
    /// figures.
    pub fn about(&self) -> &str {
        &self.document.about
    }

    /// Returns the scenario's default seed.
    pub fn seed(&self) -> u64 {
        self.document.seed
    }
}

/// Returns a scenario's table, merged over its bases, and the parsed document.
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
        check(&document).map_err(at)?;
        return Ok((table, document));
    };
    let wrong = |message: String| at(Fault::of("extends", message));
    let Value::String(extends) = extends else {
        return Err(wrong("`extends` must be the name of a scenario".into()));
    };
    let base = named(&extends)
        .ok_or_else(|| wrong(format!("there is no scenario `{extends}` to extend")))?;
    if depth == MOST_BASES {
        return Err(wrong(format!(
            "more than {MOST_BASES} scenarios extend one another, or they form a circle"
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

/// Parses a merged table. If this fails, the position in the error refers to the text of the merged table.
/// `locate` converts the error.
fn document_of(
    merged: &Table,
    locate: impl Fn(&str, Fault) -> ScenarioError,
) -> Result<Document, ScenarioError> {
    // This cannot fail, because a table that was parsed can be written.
    let text = toml::to_string(merged).unwrap_or_default();
    let document: Document = toml::from_str(&text).map_err(|e| locate(&text, fault_of(&e)))?;
    check(&document).map_err(|fault| locate(&text, fault))?;
    Ok(document)
}

/// Checks that a scenario can be simulated. Returns the first error, with its position.
fn check(document: &Document) -> Result<(), Fault> {
    limits::check(document)?;
    model::check(document)
}

fn fault_of(error: &toml::de::Error) -> Fault {
    Fault::new(error.span().unwrap_or(0..0), error.message())
}

/// Returns an error about the merged text. The error quotes the line of `text` with the fault, because the user has not
/// seen the merged text.
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

/// Merges a scenario over its base: replaces values, and appends the members in `add` to lists.
fn put_over(under: &mut Table, mut over: Table) -> Result<(), String> {
    let added = over.remove("add");
    merge(under, over)?;
    let Some(Value::Table(added)) = added else {
        return match added {
            None => Ok(()),
            Some(_) => Err("`add` can contain only lists, such as `[[add.process]]`".to_owned()),
        };
    };
    for (key, members) in added {
        let list = under.entry(&key).or_insert(Value::Array(Vec::new()));
        match (list, members) {
            (Value::Array(list), Value::Array(members)) => list.extend(members),
            _ => return Err(format!("`{key}` is not a list, so members cannot be added")),
        }
    }
    Ok(())
}

/// Merges `over` into `under`. Tables are merged member by member; other values are replaced as a
/// whole.
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

/// Returns a member of a list by its name or its index.
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
        assert!(
            message.contains("`add` can contain only lists"),
            "{message}"
        );
    }
}
