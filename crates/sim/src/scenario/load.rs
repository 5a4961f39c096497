//! Reading scenarios: one file over another, and settings over both.

use toml::{Table, Value};

use super::{Document, Fault, ScenarioError};

/// A scenario that has been read: its text is right, and what it names is there.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    pub(crate) document: Document,
}

/// One value set over a scenario's: `machine.windows = "11-25H2"`. Members of a list are chosen by
/// name or number: `process."LockApp.exe".class = "high"`.
#[derive(Clone, Debug)]
pub struct Override(Table);

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
        let (path, value) = setting
            .split_once('=')
            .ok_or_else(|| wrong("expected `path=value`, such as `machine.windows=7`".into()))?;
        let value = value.trim();
        let parsed: Result<Value, _> = toml::from_str::<Table>(&format!("value = {value}"))
            .map(|mut table| table.remove("value").unwrap_or(Value::Boolean(false)));
        let value = parsed.unwrap_or_else(|_| Value::String(value.to_owned()));
        let mut line = Table::new();
        line.insert("value".into(), value);
        let text = toml::to_string(&line).map_err(|e| wrong(e.to_string()))?;
        let text = text.replacen("value", path.trim(), 1);
        let table = toml::from_str(&text)
            .map_err(|e| wrong(format!("`{}` is no path: {}", path.trim(), e.message())))?;
        Ok(Override(table))
    }
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
        Scenario::read_nested(file, text, named, settings, 0)
    }

    fn read_nested(
        file: &str,
        text: &str,
        named: &dyn Fn(&str) -> Option<String>,
        settings: &[Override],
        depth: u32,
    ) -> Result<Scenario, ScenarioError> {
        let located = |e: &toml::de::Error| {
            Fault::new(e.span().unwrap_or(0..0), e.message()).located(file, text)
        };
        let table: Table = toml::from_str(text).map_err(|e| located(&e))?;
        let name = std::path::Path::new(file)
            .file_stem()
            .map_or(file.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let merged = match table.get("extends") {
            None => {
                // Whatever is wrong here is wrong in this file, at a place that can be told.
                let document: Document = toml::from_str(text).map_err(|e| located(&e))?;
                crate::model::check(&document).map_err(|fault| fault.located(file, text))?;
                if settings.is_empty() {
                    return Ok(Scenario { name, document });
                }
                table
            }
            Some(extends) => {
                let missing = |extends: &str| ScenarioError::NoBase {
                    file: file.to_owned(),
                    extends: extends.to_owned(),
                };
                let extends = extends.as_str().ok_or_else(|| missing("?"))?;
                let base = named(extends).filter(|_| depth < 4);
                let base = base.ok_or_else(|| missing(extends))?;
                Scenario::read_nested(extends, &base, named, &[], depth + 1)?;
                let mut merged = whole(&base, named, depth);
                put_over(&mut merged, table).map_err(|message| ScenarioError::Over {
                    file: file.to_owned(),
                    message,
                })?;
                merged
            }
        };
        let over = |message: String| ScenarioError::Over {
            file: file.to_owned(),
            message,
        };
        let mut merged = merged;
        for Override(setting) in settings {
            merge(&mut merged, setting.clone()).map_err(over)?;
        }
        let text = toml::to_string(&merged).map_err(|e| over(e.to_string()))?;
        let document: Document =
            toml::from_str(&text).map_err(|e| over(about(&text, e.span(), e.message())))?;
        crate::model::check(&document)
            .map_err(|fault| over(about(&text, Some(fault.span), &fault.message)))?;
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

/// A scenario's table with those that it extends under it. Checked before.
fn whole(text: &str, named: &dyn Fn(&str) -> Option<String>, depth: u32) -> Table {
    let mut table: Table = toml::from_str(text).unwrap_or_default();
    let Some(Value::String(extends)) = table.remove("extends") else {
        return table;
    };
    match named(&extends).filter(|_| depth < 4) {
        Some(base) => {
            let mut merged = whole(&base, named, depth + 1);
            // What fails here has failed when the base was read by itself.
            let _ = put_over(&mut merged, table);
            merged
        }
        None => table,
    }
}

/// A message with the line that it is about, since nobody has seen the text.
fn about(text: &str, span: Option<std::ops::Range<usize>>, message: &str) -> String {
    let line = span.and_then(|span| {
        let start = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
        text.get(start..)?.lines().next()
    });
    match line {
        Some(line) => format!("{message} (in `{}`)", line.trim()),
        None => message.to_owned(),
    }
}

/// Puts a scenario over the one that it extends: what it changes, and the members of lists that it
/// `add`s.
fn put_over(under: &mut Table, mut over: Table) -> Result<(), String> {
    over.remove("extends");
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
