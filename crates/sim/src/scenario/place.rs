//! Conversion between the path of keys to a value and the value's position in a scenario's text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// An element of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Field of a table.
    Field(String),
    /// Member of a list: its index, and the name by which an override may select it.
    Member(usize, Option<String>),
}

/// Returns the byte range in `text` of the value to which the path `way` leads. If only a part of
/// the path exists, returns the range of that part as `Err`.
pub(crate) fn find(text: &str, way: &[Key]) -> Result<Range<usize>, Range<usize>> {
    let document = DeTable::parse(text).map_err(|_| 0..0)?;
    let mut table = Some(document.get_ref());
    let mut list: Option<&DeArray<'_>> = None;
    let mut range = 0..0;
    for key in way {
        let next = match (key, table, list) {
            (Key::Field(name), Some(table), _) => table.get(name.as_str()),
            (Key::Member(number, _), _, Some(list)) => list.get(*number),
            // In the text of an override, a list is a table. Its fields are the names or indices of the
            // list's members.
            (Key::Member(number, name), Some(table), _) => (name.as_deref())
                .and_then(|name| table.get(name))
                .or_else(|| table.get(number.to_string().as_str())),
            _ => None,
        };
        let value = next.ok_or(range.clone())?;
        // Lists of tables have no position in the text.
        if !value.span().is_empty() {
            range = value.span();
        }
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list)),
            _ => (None, None),
        };
    }
    Ok(range)
}

/// Returns the path to the innermost value or key of `text` that contains the byte offset `at`.
pub(crate) fn way(text: &str, at: usize) -> Vec<Key> {
    let mut best: (usize, Vec<Key>) = (usize::MAX, Vec::new());
    if let Ok(document) = DeTable::parse(text) {
        look_in_table(document.get_ref(), at, &mut Vec::new(), &mut best);
    }
    best.1
}

/// Stores in `best` the path to the smallest value that contains the byte offset `at`. Every table must be
/// searched, because the position of a table covers only its header.
fn look_in_table(table: &DeTable<'_>, at: usize, way: &mut Vec<Key>, best: &mut (usize, Vec<Key>)) {
    for (key, value) in table {
        way.push(Key::Field(key.get_ref().to_string()));
        consider(key.span(), at, way, best);
        look_at(value, at, way, best);
        way.pop();
    }
}

fn look_at(
    value: &Spanned<DeValue<'_>>,
    at: usize,
    way: &mut Vec<Key>,
    best: &mut (usize, Vec<Key>),
) {
    consider(value.span(), at, way, best);
    match value.get_ref() {
        DeValue::Table(table) => look_in_table(table, at, way, best),
        DeValue::Array(list) => {
            for (number, member) in list.iter().enumerate() {
                let name = match member.get_ref() {
                    DeValue::Table(table) => table.get("name"),
                    _ => None,
                };
                let name = name.and_then(|name| name.get_ref().as_str());
                way.push(Key::Member(number, name.map(str::to_owned)));
                look_at(member, at, way, best);
                way.pop();
            }
        }
        _ => {}
    }
}

fn consider(span: Range<usize>, at: usize, way: &[Key], best: &mut (usize, Vec<Key>)) {
    if span.contains(&at) && span.len() < best.0 {
        *best = (span.len(), way.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "\
title = 'base'
[[process]]
name = 'a.exe'
[[process.thread]]
name = 'main'
program = [{ run = '1ms' }, { forever = [{ sleep = 'soon' }] }]
";

    #[test]
    fn a_way_leads_to_the_place_it_came_from() {
        let at = BASE.find("'soon'").expect("there");
        let way = way(BASE, at);
        let field = |name: &str| Key::Field(name.into());
        let member = |number, name: Option<&str>| Key::Member(number, name.map(str::to_owned));
        assert_eq!(
            way,
            [
                field("process"),
                member(0, Some("a.exe")),
                field("thread"),
                member(0, Some("main")),
                field("program"),
                member(1, None),
                field("forever"),
                member(0, None),
                field("sleep"),
            ]
        );
        assert_eq!(find(BASE, &way), Ok(at..at + 6));

        let over = "[process.'a.exe'.thread.0.program.1.forever]\n0.sleep = 'now'";
        assert_eq!(&over[find(over, &way).expect("there")], "'now'");
        let partly = "[process.'a.exe']\nclass = 'high'";
        let end = find(partly, &way).expect_err("no thread");
        assert!(
            partly[end].starts_with("[process."),
            "the last table on the way"
        );
        assert_eq!(find("title =", &way), Err(0..0));
    }
}
