//! Checks links in documents.

use super::File;

/// Finds links in Markdown files whose target does not exist in the repository.
pub(super) fn broken_links(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.extension() == Some("md")) {
        let mut is_code = false;
        for (number, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code {
                continue;
            }
            for link in links(line) {
                let resolved = resolve(&file.path, link);
                if !resolved.is_some_and(|path| exists(&path)) {
                    faults.push(file.fault(number, &format!("`{link}` leads nowhere")));
                }
            }
        }
    }
    faults
}

/// Returns the relative links on a line: `[text](target)` and `[label]: target`, without the `#section`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.match_indices("](").filter_map(|(at, mark)| {
        let in_code = line.get(..at)?.matches('`').count() % 2 == 1;
        let target = line.get(at + mark.len()..)?.split([')', ' ']).next()?;
        (!in_code).then_some(target)
    });
    let definition = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next());
    inline.chain(definition).filter_map(|target| {
        let path = target.split('#').next().unwrap_or(target);
        let is_elsewhere = path.contains("://") || path.starts_with("mailto:");
        (!path.is_empty() && !is_elsewhere).then_some(path)
    })
}

/// Converts a link in the document `from` to a path relative to the repository's root. Returns `None` for
/// paths outside of the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_that_lead_nowhere_are_found() {
        let text = "\
[a](../README.md) [b](gone.md#part) ![c](img/c.png)
[d](https://example.org/x) [e](#here) `[f](not-a-link.md)`
```
[g](in-code.md)
```
[h]: explain.md
[i]: lost/
[j](../../shared/data)
";
        let file = File {
            path: "docs/tables.md".to_owned(),
            text: text.to_owned(),
        };
        let there = ["README.md", "docs/img/c.png", "docs/explain.md"];
        assert_eq!(
            broken_links(&[file], |path| there.contains(&path)),
            [
                "docs/tables.md:1: `gone.md` leads nowhere",
                "docs/tables.md:7: `lost/` leads nowhere",
                "docs/tables.md:8: `../../shared/data` leads nowhere",
            ]
        );
    }
}
