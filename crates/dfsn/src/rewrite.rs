//! Replacement of server names in an export by full names.

use serde::Serialize;

use super::export::{Export, ExportError, Target, is_named, parse};
use super::name::ServerName;

/// Rules for the replacement of server names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Old names and their replacements.
    pub map: Vec<(ServerName, ServerName)>,
    /// Domain that is appended to short names without an entry in `map`.
    pub suffix: Option<ServerName>,
}

impl Names {
    /// Returns the new name. Returns `None` if the name stays unchanged.
    ///
    /// # Errors
    /// Returns the reason as an error if the name cannot be rewritten.
    fn replace(&self, name: &ServerName) -> Result<Option<ServerName>, UnchangedReason> {
        let new = match self.map.iter().find(|(old, _)| old == name) {
            Some((_, new)) => new.clone(),
            None if name.is_address() => return Err(UnchangedReason::Address),
            None if name.is_full() => return Ok(None),
            None => {
                let suffix = self.suffix.as_ref().ok_or(UnchangedReason::NoRule)?;
                ServerName::new(&format!("{name}.{suffix}"))
                    .map_err(|_| UnchangedReason::TooLong)?
            }
        };
        Ok(Some(new).filter(|new| new != name))
    }
}

/// Server name that was rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Line number of the rewritten name in the export, counted from 1.
    pub line: u32,
    /// Name of the link.
    pub link: String,
    /// Old name.
    pub from: String,
    /// New name.
    pub to: String,
}

/// Target whose server name was not rewritten, or target that exists twice in its link. If a target of a link
/// already has a full name and exists once, it is not reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnchangedTarget {
    /// Line number of the target in the export, counted from 1.
    pub line: u32,
    /// Name of the link; `None` for a target of the root.
    pub link: Option<String>,
    /// Name of the server.
    pub server: String,
    /// Reason why the name was not rewritten, or `UnchangedReason::Twice` if the target exists twice.
    pub why: UnchangedReason,
}

/// Reason why an entry of `RewrittenExport::left` is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnchangedReason {
    /// The name belongs to a namespace server. Separate commands add and remove namespace servers.
    NamespaceServer,
    /// The name is an IP address, and `Names::map` gives no full name for it.
    Address,
    /// The name is a short name to which no rule applies.
    NoRule,
    /// The name with the appended domain is too long.
    TooLong,
    /// Another target of the same link has the same server and folder after the rewrite.
    Twice,
}

/// Rewritten export.
#[derive(Clone, Debug)]
pub struct RewrittenExport {
    /// Content of the file, in the encoding of the export.
    pub bytes: Vec<u8>,
    /// Rewritten names.
    pub changes: Vec<Change>,
    /// Targets whose server names were not rewritten, and targets that exist twice in their link. If a target
    /// of a link already has a full name and exists once, it is not in this list.
    pub left: Vec<UnchangedTarget>,
}

/// Error that the verification after rewriting found. A bug of this program caused the error, and the file
/// must not be used.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The result cannot be read.
    #[error("cannot read the rewritten export; do not use it")]
    Read(#[from] ExportError),
    /// The result differs from the export in more than server names.
    #[error(
        "not only server names differ between the export and the rewritten export; do not use it"
    )]
    Different,
}

/// Rewrites the server names of all links, and reads the result to verify that only names changed.
///
/// # Errors
/// Returns an error if the result cannot be read or differs in more than names.
pub fn rewrite(export: &Export, names: &Names) -> Result<RewrittenExport, RewriteError> {
    let mut text = String::with_capacity(export.text.len() + export.targets.len() * 32);
    let (mut changes, mut left) = (Vec::new(), Vec::new());
    let mut expected = Vec::with_capacity(export.targets.len());
    let mut end = 0;
    let mut in_order: Vec<&Target> = export.targets.iter().collect();
    in_order.sort_by_key(|target| target.range.start);
    for target in in_order {
        let new = match (&target.link, ServerName::new(&target.server)) {
            (Some(link), Ok(server)) => {
                names.replace(&server).map(|new| new.map(|new| (link, new)))
            }
            _ => Err(UnchangedReason::NamespaceServer),
        };
        text.push_str(&export.text[end..target.range.start]);
        end = target.range.end;
        let written = match new {
            Ok(Some((link, new))) => {
                changes.push(Change {
                    line: target.line,
                    link: link.clone(),
                    from: target.server.clone(),
                    to: new.to_string(),
                });
                new.to_string()
            }
            Ok(None) => target.server.clone(),
            Err(why) => {
                left.push(UnchangedTarget::new(target, why));
                target.server.clone()
            }
        };
        text.push_str(&written);
        expected.push(written);
    }
    text.push_str(&export.text[end..]);
    let bytes = export.encoding.encode(&text);
    let again = Export::read(&bytes)?;
    if !differ_in_servers_only(&export.text, &again.text)? || !has_servers(&again, &expected) {
        return Err(RewriteError::Different);
    }
    left.extend(duplicates(&again));
    Ok(RewrittenExport {
        bytes,
        changes,
        left,
    })
}

impl UnchangedTarget {
    fn new(target: &Target, why: UnchangedReason) -> Self {
        UnchangedTarget {
            line: target.line,
            link: target.link.clone(),
            server: target.server.clone(),
            why,
        }
    }
}

/// Returns true if the export has exactly these servers, in the order of the text.
fn has_servers(export: &Export, expected: &[String]) -> bool {
    let mut servers: Vec<_> = (export.targets.iter())
        .map(|target| (target.range.start, target.server.as_str()))
        .collect();
    servers.sort_unstable();
    servers.len() == expected.len()
        && servers
            .iter()
            .zip(expected)
            .all(|((_, found), expected)| found == expected)
}

/// Returns true if two documents differ only in the server names of targets. A server name is in the attribute
/// `Server`, or in any attribute of a target whose value begins with two backslashes.
fn differ_in_servers_only(a: &str, b: &str) -> Result<bool, ExportError> {
    let (a, b) = (parse(a)?, parse(b)?);
    let mut both = a.descendants().zip(b.descendants());
    let same = both.all(|(a, b)| {
        let in_target = is_named(a, "Target");
        let names_server = |name: &str, value: &str| {
            in_target && (name.eq_ignore_ascii_case("Server") || value.starts_with(r"\\"))
        };
        a.node_type() == b.node_type()
            && a.tag_name() == b.tag_name()
            && a.text() == b.text()
            && a.attributes().len() == b.attributes().len()
            && a.attributes().zip(b.attributes()).all(|(a, b)| {
                a.name() == b.name()
                    && (a.value() == b.value() || names_server(a.name(), a.value()))
            })
    });
    Ok(same && a.descendants().count() == b.descendants().count())
}

/// Returns the targets of links that have the same server and folder as an earlier target of the same link.
fn duplicates(export: &Export) -> Vec<UnchangedTarget> {
    let Ok(document) = parse(&export.text) else {
        return Vec::new();
    };
    let links = (document.root_element().children()).filter(|node| is_named(*node, "Link"));
    let mut targets = (export.targets.iter()).filter(|target| target.link.is_some());
    let mut doubles = Vec::new();
    for link in links {
        let mut places: Vec<Vec<(String, String)>> = Vec::new();
        for node in (link.children()).filter(|node| is_named(*node, "Target")) {
            let Some(target) = targets.next() else { break };
            let mut place: Vec<_> = (node.attributes())
                .map(|attribute| {
                    (
                        attribute.name().to_lowercase(),
                        attribute.value().to_lowercase(),
                    )
                })
                .filter(|(name, _)| !["state", "priority"].contains(&name.as_str()))
                .collect();
            place.sort();
            if places.contains(&place) {
                doubles.push(UnchangedTarget::new(target, UnchangedReason::Twice))
            } else {
                places.push(place)
            }
        }
    }
    doubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::SAMPLE;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).unwrap()
    }

    fn names() -> Names {
        Names {
            map: vec![(name("TARGET2"), name("nas.corp.contoso.com"))],
            suffix: Some(name("child.corp.contoso.com")),
        }
    }

    #[test]
    fn servers_of_links_get_full_names_and_nothing_else_changes() {
        let rewritten = rewrite(&Export::read(SAMPLE.as_bytes()).unwrap(), &names()).unwrap();
        let expected = SAMPLE
            .replace(
                r#"Server="TARGET1""#,
                r#"Server="TARGET1.child.corp.contoso.com""#,
            )
            .replace("target2", "nas.corp.contoso.com");
        assert_eq!(String::from_utf8(rewritten.bytes).unwrap(), expected);
        assert_eq!(rewritten.changes.len(), 2);
        assert_eq!(rewritten.changes[0].line, 5);
        let left: Vec<_> = (rewritten.left.iter())
            .map(|left| (left.line, left.server.as_str(), left.why))
            .collect();
        let expected = [
            (3, "FILE1", UnchangedReason::NamespaceServer),
            (10, "10.0.0.7", UnchangedReason::Address),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn names_in_paths_are_rewritten_too() {
        let text =
            r#"<Root Name="\\d\n"><Link Name="l"><Target Path="\\TARGET1\TARGET1"/></Link></Root>"#;
        let rewritten = rewrite(&Export::read(text.as_bytes()).unwrap(), &names()).unwrap();
        let expected = text.replace(r"\\TARGET1\", r"\\TARGET1.child.corp.contoso.com\");
        assert_eq!(String::from_utf8(rewritten.bytes).unwrap(), expected);
    }

    #[test]
    fn duplicate_targets_and_names_without_rule_are_reported() {
        let text = SAMPLE
            .replace("target2", "TARGET1.child.corp.contoso.com")
            .replace("Software$", "Software");
        let export = Export::read(text.as_bytes()).unwrap();
        let left = rewrite(&export, &names()).unwrap().left;
        assert!(
            left.iter()
                .any(|left| left.line == 6 && left.why == UnchangedReason::Twice),
            "{left:?}"
        );
        let text = r#"<Root Name="\\d\n"><Link Name="l"><Target Server="a" Folder="f" state="ONLINE"/>
            <Target Server="A" Folder="f" STATE="OFFLINE"/></Link></Root>"#;
        let other = Export::read(text.as_bytes()).unwrap();
        let left = rewrite(&other, &Names::default()).unwrap().left;
        let twice = left
            .iter()
            .filter(|left| left.why == UnchangedReason::Twice);
        assert_eq!(twice.map(|left| left.line).collect::<Vec<_>>(), [2]);
        let left = rewrite(&export, &Names::default()).unwrap().left;
        assert!(
            left.iter()
                .any(|left| left.line == 5 && left.why == UnchangedReason::NoRule),
            "{left:?}"
        );
    }

    /// Checks that a second rewrite changes nothing, because full names stay.
    #[test]
    fn full_names_stay() {
        let first = rewrite(&Export::read(SAMPLE.as_bytes()).unwrap(), &names()).unwrap();
        let again = rewrite(&Export::read(&first.bytes).unwrap(), &names()).unwrap();
        assert_eq!(again.bytes, first.bytes);
        assert_eq!(again.changes, []);
    }
}
