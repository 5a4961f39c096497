//! What one profile of a file records.

use roxmltree::Node;

use super::document::{self, Document, Unreadable, children};
use super::schema::mask;
use crate::{Capture, Enabled, Keyword, Provider, StackWalk};

/// What a profile records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The profile's id.
    pub profile: String,
    /// What of it laglab uses.
    pub capture: Capture,
    /// Keywords, stacks and providers of which it uses nothing.
    pub unused: Vec<String>,
}

/// Why nothing is selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchProfile {
    /// The text is no profile.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// No profile is there at all.
    #[error("has no profile")]
    None,
    /// None has that name.
    #[error("has no profile of the name or id `{name}`; it has {there}")]
    OfName {
        /// The name that is asked for.
        name: String,
        /// Those that there are.
        there: String,
    },
}

/// What a profile of the text records: of that name, name and level of detail (`NAME.light`, as WPR
/// takes it), or id; of none in particular, the first, rather verbose than light.
///
/// # Errors
/// If there is none.
pub fn select(text: &str, name: Option<&str>) -> Result<Selected, NoSuchProfile> {
    let xml = document::parse(text)?;
    let document = Document::new(&xml);
    let is_it = |node: &Node<'_, '_>| {
        let part = |attribute| node.attribute(attribute).unwrap_or_default();
        let with_detail = format!("{}.{}", part("Name"), part("DetailLevel"));
        name.is_none_or(|name| {
            [part("Name"), part("Id")].contains(&name) || with_detail.eq_ignore_ascii_case(name)
        })
    };
    let found = (document.all("Profile").filter(is_it))
        .min_by_key(|node| node.attribute("DetailLevel") != Some("Verbose"));
    let Some(profile) = found else {
        let Some(name) = name else {
            return Err(NoSuchProfile::None);
        };
        let mut there: Vec<&str> = (document.all("Profile"))
            .filter_map(|node| node.attribute("Name"))
            .collect();
        there.dedup();
        there.truncate(20);
        return Err(NoSuchProfile::OfName {
            name: name.to_owned(),
            there: there.join(", "),
        });
    };
    let mut selected = Selected {
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

/// The lists of collectors of a profile: its own, and what those that it is derived from have unless
/// it sets them anew.
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

impl Selected {
    fn add_system<'a>(&mut self, document: &Document<'a, '_>, node: Node<'a, '_>) {
        for name in document.values(node, "Keywords", "Keyword") {
            match Keyword::of_wpr(name) {
                Some(keyword) => self.capture.add_keyword(keyword),
                None => self.unused.push(name.to_owned()),
            }
        }
        for name in document.values(node, "Stacks", "Stack") {
            match StackWalk::of_wpr(name) {
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
        let Some(provider) = Provider::of(name) else {
            return self.unused.push(name.to_owned());
        };
        let masks = document.values(node, "Keywords", "Keyword").into_iter();
        let keywords = masks.filter_map(mask).fold(0, |all, one| all | one);
        self.capture.add_provider(Enabled { provider, keywords });
    }
}
