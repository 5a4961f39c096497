//! Selection of the keywords, stacks and providers that a profile records.

use xml::Node;

use super::document::{self, Document, ProfileError, children};
use super::schema::parse_mask;
use crate::{Capture, EnabledProvider, Keyword, Provider, StackWalk};

/// Keywords, stacks and providers that a profile records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedProfile {
    /// Id of the profile.
    pub profile: String,
    /// Keywords, stacks and providers of the profile that laglab uses.
    pub capture: Capture,
    /// Names of keywords, stacks and providers of the profile that laglab does not use.
    pub unused: Vec<String>,
}

/// Reason why [`select`] fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The text is not a profile.
    #[error(transparent)]
    ProfileError(#[from] ProfileError),
    /// The file has no profile.
    #[error("the file has no profile")]
    None,
    /// The file has no profile with this name.
    #[error("the file has no profile with the name or id `{name}`; it has {there}")]
    NotFound {
        /// Requested name of the profile.
        name: String,
        /// Names of the profiles in the file.
        there: String,
    },
}

/// Returns the keywords, stacks and providers that a profile records. `name` is the name of the profile, its
/// name and level of detail as for WPR (`NAME.light`), or its id. Without a name, the first verbose profile
/// is selected, or the first profile if none is verbose.
///
/// # Errors
/// Returns an error if the text is not a profile, or the file has no such profile.
pub fn select(text: &str, name: Option<&str>) -> Result<SelectedProfile, SelectError> {
    let xml = document::parse(text)?;
    let document = Document::new(&xml);
    let is_it = |node: &Node<'_, '_>| {
        let part = |attribute| node.attribute(attribute).unwrap_or_default();
        let with_detail = format!("{}.{}", part("Name"), part("DetailLevel"));
        name.is_none_or(|name| {
            [part("Name"), part("Id")].contains(&name) || with_detail.eq_ignore_ascii_case(name)
        })
    };
    let profile = (document.all("Profile").filter(is_it))
        .min_by_key(|node| node.attribute("DetailLevel") != Some("Verbose"));
    let Some(profile) = profile else {
        let Some(name) = name else {
            return Err(SelectError::None);
        };
        let mut there: Vec<&str> = (document.all("Profile"))
            .filter_map(|node| node.attribute("Name"))
            .collect();
        there.dedup();
        there.truncate(20);
        return Err(SelectError::NotFound {
            name: name.to_owned(),
            there: there.join(", "),
        });
    };
    let mut selected = SelectedProfile {
        profile: profile.attribute("Id").unwrap_or_default().to_owned(),
        capture: Capture::default(),
        unused: Vec::new(),
    };
    for collectors in collectors(&document, profile) {
        for node in collectors.descendants() {
            match node.tag_name().name() {
                "SystemProvider" | "SystemProviderId" => selected.add_system(&document, node),
                "EventProvider" | "EventProviderId" => selected.add_provider(&document, node),
                _ => {}
            }
        }
    }
    selected.unused.sort();
    selected.unused.dedup();
    Ok(selected)
}

/// Returns the collectors of a profile. They include the collectors of its bases, unless the profile replaces them.
fn collectors<'a, 'x>(document: &Document<'a, 'x>, profile: Node<'a, 'x>) -> Vec<Node<'a, 'x>> {
    let mut lists = Vec::new();
    for node in document.lineage(profile) {
        for list in children(node, "Collectors") {
            lists.push(list);
            if list.attribute("Operation") != Some("Add") {
                return lists;
            }
        }
    }
    lists
}

impl SelectedProfile {
    fn add_system<'a>(&mut self, document: &Document<'a, '_>, node: Node<'a, '_>) {
        for name in document.values(node, "Keywords", "Keyword") {
            match Keyword::from_wpr_name(name) {
                Some(keyword) => self.capture.add_keyword(keyword),
                None => self.unused.push(name.to_owned()),
            }
        }
        for name in document.values(node, "Stacks", "Stack") {
            match StackWalk::from_wpr_name(name) {
                Some(stack) => self.capture.add_stack(stack),
                None => self.unused.push(format!("stacks of {name}")),
            }
        }
    }

    fn add_provider<'a>(&mut self, document: &Document<'a, '_>, node: Node<'a, '_>) {
        let lineage = document.lineage(node);
        let Some(name) = lineage.iter().find_map(|node| node.attribute("Name")) else {
            return;
        };
        let Some(provider) = Provider::from_name(name) else {
            return self.unused.push(name.to_owned());
        };
        let masks = document.values(node, "Keywords", "Keyword").into_iter();
        let keywords = masks.filter_map(parse_mask).fold(0, |all, one| all | one);
        self.capture
            .add_provider(EnabledProvider { provider, keywords });
    }
}
