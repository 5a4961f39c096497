//! Checks the layers within `crates/explain`: `survey` ← `chain` ← theories ← `engine`. No theory uses another one, and
//! the other layers name no theory.

use super::File;

const SRC: &str = "crates/explain/src/";

/// Finds lines of `crates/explain` that name a layer above their own, or a theory that is not their own.
pub(super) fn faults(files: &[File]) -> Vec<String> {
    let files: Vec<(&File, &str)> = (files.iter())
        .filter_map(|file| Some((file, file.path.strip_prefix(SRC)?)))
        .collect();
    let mut theories: Vec<&str> = files.iter().filter_map(|(_, path)| theory(path)).collect();
    theories.sort_unstable();
    theories.dedup();
    let ids: Vec<&str> = (files.iter())
        .filter(|(_, path)| theory(path).is_some())
        .flat_map(|(file, _)| ids(&file.text))
        .collect();
    let mut faults = Vec::new();
    for (file, path) in files {
        let layer = path.split(['/', '.']).next().unwrap_or_default();
        let own = theory(path);
        let above: &[&str] = match layer {
            "survey" => &["chain", "theories"],
            "chain" => &["theories"],
            _ => &[],
        };
        let mut add = |line: usize, what: String| {
            faults.push(format!("{}:{line}: {what}", file.path));
        };
        for (line, used) in used_paths(&file.text, &module(path)) {
            let mut names = used.iter().map(String::as_str);
            let (first, second) = (names.next().unwrap_or_default(), names.next());
            if above.contains(&first) {
                add(line, format!("`{layer}` may not use `{first}`"));
            }
            let Some(other) = second.filter(|name| first == "theories" && theories.contains(name))
            else {
                continue;
            };
            match own {
                Some(own) if own != other => add(
                    line,
                    format!(
                        "`{own}` may not use the theory `{other}`: shared code belongs in `chain`"
                    ),
                ),
                None if layer == "engine" => add(
                    line,
                    format!(
                        "`engine` may not use the theory `{other}`: data about it belongs in `About`"
                    ),
                ),
                _ => {}
            }
        }
        // The other layers may use the same words for something else.
        if layer == "engine" {
            for (line, text) in strings(&file.text) {
                if ids.contains(&text.as_str()) {
                    add(line, format!("`{layer}` may not name the theory `{text}`"));
                }
            }
        }
    }
    faults
}

/// Returns the name of the theory to which a file belongs; `None` for other files. `path` is the path within the crate.
fn theory(path: &str) -> Option<&str> {
    let name = path.strip_prefix("theories/")?.split(['/', '.']).next()?;
    (name != "mod").then_some(name)
}

/// Returns the path of the module in a file.
fn module(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').map(str::to_owned).collect()
}

/// Returns the ids of the theories that a file declares.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("id: \"")?.strip_suffix("\","))
}

/// Part of Rust code.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Identifier, keyword or number.
    Word(String),
    /// String literal, without its quotation marks.
    Text(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Divides code into tokens with their line numbers. Leaves out comments.
fn tokens(text: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (length, token) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if first == '"' {
            let length = string_length(rest);
            let inner = rest.get(1..length - 1).unwrap_or_default();
            (length, Some(Token::Text(inner.to_owned())))
        } else if first == '\'' {
            (character_length(rest), None)
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (length, Some(Token::Word(rest[..length].to_owned())))
        } else if rest.starts_with("::") {
            (2, Some(Token::Colons))
        } else {
            let token = (!first.is_whitespace()).then_some(Token::Sign(first));
            (first.len_utf8(), token)
        };
        tokens.extend(token.map(|token| (line, token)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the string literal at the start of the text, with its quotation marks.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, c) in text.char_indices().skip(1) {
        if c == '"' && !is_escaped {
            return place + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

/// Returns the length of the character literal at the start of the text, or 1 for the sign of a lifetime.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    let is_escaped = characters.next().is_some_and(|(_, c)| c == '\\');
    if is_escaped {
        characters.next();
        let end = characters.find(|(_, c)| *c == '\'');
        return end.map_or(1, |(place, _)| place + 1);
    }
    match characters.next() {
        Some((place, '\'')) => place + 1,
        _ => 1,
    }
}

/// Returns the string literals of code with their line numbers.
fn strings(text: &str) -> impl Iterator<Item = (usize, String)> {
    tokens(text)
        .into_iter()
        .filter_map(|(line, token)| match token {
            Token::Text(text) => Some((line, text)),
            _ => None,
        })
}

/// Returns the paths that code names relative to the crate or to its module, as absolute paths with line numbers. A path
/// with braces is several paths.
fn used_paths(text: &str, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(text);
    let (mut paths, mut place) = (Vec::new(), 0);
    let mut module = module.to_vec();
    // Depths of the braces that enclose inner modules.
    let (mut depth, mut inner): (usize, Vec<usize>) = (0, Vec::new());
    while let Some((_, token)) = tokens.get(place) {
        let next = |offset: usize| tokens.get(place + offset).map(|(_, token)| token);
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth = depth.saturating_sub(1);
                if inner.last() == Some(&depth) {
                    inner.pop();
                    module.pop();
                }
            }
            Token::Word(word) if word == "mod" => {
                if let (Some(Token::Word(name)), Some(Token::Sign('{'))) = (next(1), next(2)) {
                    module.push(name.clone());
                    inner.push(depth);
                }
            }
            Token::Word(word) => {
                let start = match word.as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.clone()),
                    "super" => Some(parent(&module)),
                    _ => None,
                };
                if let Some(start) = start.filter(|_| next(1) == Some(&Token::Colons)) {
                    place = expand(&tokens, place + 2, start, &mut paths);
                    continue;
                }
            }
            _ => {}
        }
        place += 1;
    }
    paths
}

/// Returns the path of the module around a module.
fn parent(module: &[String]) -> Vec<String> {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// Adds the paths that continue `start` at a place of the tokens. Returns the place behind them.
fn expand(
    tokens: &[(usize, Token)],
    mut place: usize,
    mut start: Vec<String>,
    paths: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    while let Some((line, token)) = tokens.get(place) {
        match token {
            Token::Sign('{') => {
                place += 1;
                while let Some((_, token)) = tokens.get(place) {
                    match token {
                        Token::Sign('}') => return place + 1,
                        Token::Sign(',') => place += 1,
                        _ => place = expand(tokens, place, start.clone(), paths).max(place + 1),
                    }
                }
                return place;
            }
            Token::Word(word) if word == "super" => start = parent(&start),
            Token::Word(word) if word == "self" => {}
            Token::Word(word) => start.push(word.clone()),
            _ => return place,
        }
        if tokens.get(place + 1).map(|(_, token)| token) != Some(&Token::Colons) {
            paths.push((*line, start));
            return place + 1;
        }
        place += 2;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: format!("{SRC}{path}"),
            text: text.to_owned(),
        }
    }

    /// Returns the places of the faults of a file, in a crate with three theories.
    fn places(path: &str, text: &str) -> Vec<String> {
        let files = [
            file(
                "theories/disks.rs",
                "static ABOUT: About = About {\n    id: \"slow-disks\",\n};",
            ),
            file("theories/paging.rs", ""),
            file("theories/timers/mod.rs", "mod requests;"),
            file(path, text),
        ];
        let faults = faults(&files);
        let places = faults.iter().map(|fault| {
            let place = fault.strip_prefix(SRC).unwrap_or(fault);
            place.split(": ").next().unwrap_or_default().to_owned()
        });
        places.collect()
    }

    #[test]
    fn a_layer_may_not_use_a_layer_above_it() {
        let text = "use crate::{survey::Wait, chain::path};";
        assert_eq!(places("survey/mod.rs", text), ["survey/mod.rs:1"]);
        assert_eq!(places("chain/held.rs", text), [""; 0]);
        let text = "use crate::survey::Wait;\n\nuse crate::theories::disks;";
        assert_eq!(places("chain/mod.rs", text), ["chain/mod.rs:3"]);
        let text = "fn f() -> bool {\n    super::super::theories::tables()\n}";
        assert_eq!(places("chain/held.rs", text), ["chain/held.rs:2"]);
    }

    #[test]
    fn a_theory_may_not_use_another_theory() {
        for text in [
            "use super::disks;",
            "use super::disks::Disk;",
            "use super::{disks, timers::Timer};",
            "use crate::theories::disks::Disk;",
            "use crate::{Case, theories::{disks::Disk, paging}};",
            "use crate::{\n    theories::{\n        disks::{self, Disk},\n    },\n};",
            "fn f() { super::disks::f(); }",
            "mod tests {\n    use super::super::disks;\n}",
        ] {
            assert!(!places("theories/paging.rs", text).is_empty(), "{text}");
        }
        let text = "use super::requests;\nuse super::super::disks;";
        let expected = ["theories/timers/sleeps.rs:2"];
        assert_eq!(places("theories/timers/sleeps.rs", text), expected);
        let text = "use super::disks::{self, Disk};";
        assert_eq!(
            places("theories/timers/sends.rs", text),
            [""; 0],
            "a module of the folder"
        );
    }

    #[test]
    fn other_imports_of_a_theory_are_allowed() {
        for text in [
            "use crate::chain::path;",
            "use crate::chain::disks::Disk;",
            "use crate::{Case, theories};",
            "// use crate::theories::disks;",
            "const NAME: &str = \"super::disks\";",
            "use super::paging::Page;",
            "mod tests {\n    use super::*;\n    fn disks() {}\n}",
            "fn f<'a>(of: &'a str) -> char {\n    '\"'\n}",
        ] {
            assert_eq!(places("theories/paging.rs", text), [""; 0], "{text}");
        }
        let text = "mod disks;\npub(crate) use disks::Disks;";
        assert_eq!(places("theories/mod.rs", text), [""; 0]);
    }

    #[test]
    fn the_engine_names_no_theory() {
        let text = "use crate::theories::{THEORIES, tables};";
        assert_eq!(places("engine.rs", text), [""; 0]);
        for text in [
            "use crate::theories::disks;",
            "use crate::theories::{THEORIES, disks, tables};",
            "const DISKS: &str = \"slow-disks\";",
        ] {
            assert_eq!(places("engine.rs", text), ["engine.rs:1"], "{text}");
        }
    }
}
