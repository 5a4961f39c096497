//! What tidy asks of a `Cargo.toml`, read line by line: no more of TOML than manifests use.

/// A crate's manifest.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// The package's name.
    pub(super) name: String,
    /// Everything it depends on, for whatever purpose and target.
    pub(super) dependencies: Vec<Dependency>,
    /// Whether it has the workspace's lints.
    pub(super) inherits_lints: bool,
    /// The lints that it, or as the workspace's root the workspace, declares: section and line.
    pub(super) lints: Vec<(String, String)>,
}

/// One dependency of a crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    /// The package's own name, where the manifest calls it by another.
    pub(super) name: String,
    /// Only for tests, examples and benchmarks.
    pub(super) is_dev: bool,
    /// The line that names it, from 0.
    pub(super) line: usize,
}

impl Manifest {
    /// Reads a manifest; what is not understood is passed over.
    pub(super) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = "";
        for (line, content) in text.lines().enumerate() {
            let content = content.trim();
            if let Some(header) = content.strip_prefix('[') {
                section = header.trim_end_matches(']');
                if let Some((is_dev, Some(name))) = dependencies_section(section) {
                    manifest.dependencies.push(Dependency {
                        name: name.to_owned(),
                        is_dev,
                        line,
                    });
                }
                continue;
            }
            let Some((key, value)) = content.split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let lints = section.strip_prefix("workspace.").unwrap_or(section);
            if lints.starts_with("lints.") && !content.starts_with('#') {
                manifest.lints.push((lints.to_owned(), content.to_owned()));
            }
            match (section, key) {
                ("package", "name") => manifest.name = unquoted(value).to_owned(),
                ("lints", "workspace") => manifest.inherits_lints = value == "true",
                _ => match dependencies_section(section) {
                    Some((is_dev, None)) if !key.starts_with('#') => {
                        let own = key.split('.').next().unwrap_or(key);
                        let name = renamed(value).unwrap_or(unquoted(own)).to_owned();
                        manifest
                            .dependencies
                            .push(Dependency { name, is_dev, line });
                    }
                    Some((_, Some(_))) if key == "package" => {
                        if let Some(dependency) = manifest.dependencies.last_mut() {
                            unquoted(value).clone_into(&mut dependency.name);
                        }
                    }
                    _ => {}
                },
            }
        }
        manifest
    }
}

/// Whether a section holds dependencies: for development only, and the one it is about, if one.
fn dependencies_section(section: &str) -> Option<(bool, Option<&str>)> {
    // `target.'cfg(…)'.dependencies` is as good as `dependencies`.
    let section = match section.strip_prefix("target.") {
        Some(rest) => rest.find("dependencies").map(|at| {
            let start = rest.get(..at).unwrap_or_default();
            let kind = ["dev-", "build-"]
                .into_iter()
                .find(|kind| start.ends_with(kind));
            rest.get(at - kind.map_or(0, str::len)..)
                .unwrap_or_default()
        })?,
        None => section,
    };
    let (kind, name) = match section.split_once('.') {
        Some((kind, name)) => (kind, Some(unquoted(name))),
        None => (section, None),
    };
    match kind {
        "dependencies" | "build-dependencies" => Some((false, name)),
        "dev-dependencies" => Some((true, name)),
        _ => None,
    }
}

/// The `x` of `{ package = "x", … }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, rest) = value.strip_prefix('{')?.split_once("package")?;
    rest.trim_start()
        .strip_prefix('=')?
        .trim_start()
        .strip_prefix('"')?
        .split('"')
        .next()
}

fn unquoted(value: &str) -> &str {
    value.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_found_however_they_are_written() {
        let manifest = Manifest::parse(
            r#"
[package]
name = "views"

[dependencies]
etl.workspace = true
# events = "1"
arrow = { version = "1", features = [
    "ipc",
] }
df = { version = "1", package = "datafusion" }

[dependencies.tables]
workspace = true
features = ["x"]

[dev-dependencies]
sim = "1"

[target.'cfg(target_os = "linux")'.dependencies]
io-uring = "1"

[target.'cfg(unix)'.dev-dependencies.short]
package = "long"

[lints]
workspace = true
"#,
        );
        assert_eq!(manifest.name, "views");
        assert!(manifest.inherits_lints);
        let found: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|found| (found.name.as_str(), found.is_dev))
            .collect();
        assert_eq!(
            found,
            [
                ("etl", false),
                ("arrow", false),
                ("datafusion", false),
                ("tables", false),
                ("sim", true),
                ("io-uring", false),
                ("long", true),
            ]
        );
    }

    #[test]
    fn other_tables_hold_no_dependencies() {
        let manifest = Manifest::parse("[features]\nsql = [\"dep:sql\"]\n[[bin]]\nname = \"x\"\n");
        assert_eq!(manifest.dependencies, []);
        assert_eq!(manifest.name, "");
        assert!(!manifest.inherits_lints);
    }

    #[test]
    fn lints_are_read_of_a_crate_and_of_the_workspace() {
        let crates = Manifest::parse("[lints.rust]\n# why\nunsafe_code = \"deny\"\n");
        let workspace = Manifest::parse("[workspace.lints.rust]\nunsafe_code = \"deny\"\n");
        let lint = ("lints.rust".to_owned(), "unsafe_code = \"deny\"".to_owned());
        assert_eq!(crates.lints, [lint]);
        assert_eq!(crates.lints, workspace.lints);
    }
}
