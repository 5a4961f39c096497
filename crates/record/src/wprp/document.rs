//! XML document of a profile: access to elements by id, and remarks with their positions.

use std::collections::{HashMap, HashSet};

use xml::Node;

use super::{MAX_REMARKS, Remark, Severity};

/// Reason why a profile cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is longer than any real profile.
    #[error("the file is larger than 1 MiB; a WPR profile has only some tens of KiB")]
    TooLarge,
    /// The text is neither UTF-8 nor UTF-16 with a byte order mark.
    #[error("the file is neither UTF-8 nor UTF-16 with a byte order mark; save it as UTF-8")]
    NotText,
    /// The text is not XML.
    #[error("not an XML file that WPR can read: {0}")]
    NotXml(String),
}

/// Maximum size of a profile, in bytes. The profiles of published tools have only some tens of KiB.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of elements, attributes and texts.
const MAX_NODES: u32 = 100_000;
/// Maximum nesting depth of elements. Profiles need nine levels.
const MAX_DEPTH: usize = 64;

/// Decodes the text of a file in UTF-8, or in UTF-16 with a byte order mark.
///
/// # Errors
/// Returns an error if the file has another encoding or is too large.
pub fn text(bytes: &[u8]) -> Result<String, ProfileError> {
    if bytes.len() > MAX_BYTES {
        return Err(ProfileError::TooLarge);
    }
    let from_utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let is_even = bytes.len().is_multiple_of(2);
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| is_even).ok_or(ProfileError::NotText)
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => from_utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => from_utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => match std::str::from_utf8(rest) {
            // UTF-16 without a byte order mark is also valid UTF-8, but every other byte of it is zero.
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(ProfileError::NotText),
        },
    }
}

pub(super) fn parse(text: &str) -> Result<xml::Document<'_>, ProfileError> {
    if text.len() > MAX_BYTES {
        return Err(ProfileError::TooLarge);
    }
    if text.trim().is_empty() {
        return Err(ProfileError::NotXml("the file is empty".to_owned()));
    }
    if is_too_deep(text) {
        let what = format!("elements are nested more than {MAX_DEPTH} levels deep");
        return Err(ProfileError::NotXml(what));
    }
    xml::parse(text, MAX_NODES).map_err(|error| ProfileError::NotXml(error.to_string()))
}

/// Returns true if the nesting of elements may be so deep that a recursive parser overflows its stack. Tags
/// in comments are also counted. Real profiles are far below the limit.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut rest) = (0_usize, text);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = rest.split('>').next().unwrap_or_default();
        match rest.as_bytes().first() {
            Some(b'!' | b'?') => {}
            Some(b'/') => depth = depth.saturating_sub(1),
            _ if tag.ends_with('/') => {}
            _ => depth += 1,
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Elements of a profile, with an index by id.
pub(super) struct Document<'a, 'x> {
    /// The root element.
    pub(super) root: Node<'a, 'x>,
    /// Elements by their name and id. If several elements have the same name and id, the first one
    /// is stored.
    by_id: HashMap<(&'a str, &'a str), Node<'a, 'x>>,
}

impl<'a, 'x> Document<'a, 'x> {
    pub(super) fn new(xml: &'a xml::Document<'x>) -> Document<'a, 'x> {
        let root = xml.root_element();
        let mut by_id = HashMap::new();
        for node in root.descendants().filter(Node::is_element) {
            if let Some(id) = node.attribute("Id") {
                by_id.entry((node.tag_name().name(), id)).or_insert(node);
            }
        }
        Document { root, by_id }
    }

    /// Returns the element with this name and id.
    pub(super) fn element_by_id(&self, element: &'a str, id: &'a str) -> Option<Node<'a, 'x>> {
        self.by_id.get(&(element, id)).copied()
    }

    /// Returns an element, its base, the base of the base, and so on. If an element is a reference (`…Id`),
    /// the element to which it refers is next. No element is repeated, even if references form a cycle.
    pub(super) fn lineage(&self, node: Node<'a, 'x>) -> Vec<Node<'a, 'x>> {
        let (mut lineage, mut seen) = (vec![node], HashSet::from([node.id()]));
        let mut last = node;
        loop {
            let name = last.tag_name().name();
            let next = match (name.strip_suffix("Id"), last.attribute("Value")) {
                (Some(element), Some(id)) => self.element_by_id(element, id),
                _ => last
                    .attribute("Base")
                    .and_then(|base| self.element_by_id(name, base)),
            };
            match next.filter(|next| seen.insert(next.id())) {
                Some(next) => lineage.push(next),
                None => return lineage,
            }
            last = lineage[lineage.len() - 1];
        }
    }

    /// Returns all elements with this name.
    pub(super) fn all(
        &self,
        name: &'static str,
    ) -> impl Iterator<Item = Node<'a, 'x>> + use<'a, 'x> {
        self.root
            .descendants()
            .filter(move |node| node.has_tag_name(name))
    }

    /// Returns the values of a list (such as `Keyword` elements in `Keywords`, or `Stack` elements in
    /// `Stacks`), including values of bases. The attribute `Operation` states whether a list replaces,
    /// extends or reduces the list of its base.
    pub(super) fn values(&self, node: Node<'a, 'x>, list: &str, item: &str) -> Vec<&'a str> {
        let mut values: Vec<&str> = Vec::new();
        for ancestor in self.lineage(node).into_iter().rev() {
            for list in children(ancestor, list) {
                let here = children(list, item).filter_map(|item| item.attribute("Value"));
                match list.attribute("Operation") {
                    Some("Add") => values.extend(here),
                    Some("Remove") => {
                        let removed: HashSet<&str> = here.collect();
                        values.retain(|value| !removed.contains(value));
                    }
                    _ => values = here.collect(),
                }
            }
        }
        values
    }
}

/// Returns the children with this name.
pub(super) fn children<'a, 'x>(
    node: Node<'a, 'x>,
    name: &str,
) -> impl Iterator<Item = Node<'a, 'x>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

/// Remarks on a profile that have been collected.
pub(super) struct Remarks<'a, 'x> {
    xml: &'a xml::Document<'x>,
    /// Offset in the text, severity and message of each remark.
    made: Vec<(usize, Severity, String)>,
}

impl<'a, 'x> Remarks<'a, 'x> {
    pub(super) fn new(xml: &'a xml::Document<'x>) -> Remarks<'a, 'x> {
        Remarks {
            xml,
            made: Vec::new(),
        }
    }

    /// Adds a remark on an element.
    pub(super) fn on(&mut self, node: Node<'_, '_>, severity: Severity, what: impl Into<String>) {
        self.at(node.range().start, severity, what.into());
    }

    /// Adds a remark on an attribute, or on the element if the attribute is missing.
    pub(super) fn on_attribute(
        &mut self,
        node: Node<'_, '_>,
        attribute: &str,
        severity: Severity,
        what: impl Into<String>,
    ) {
        let place = node
            .attribute_node(attribute)
            .map_or(node.range().start, |attribute| attribute.range().start);
        self.at(place, severity, what.into());
    }

    fn at(&mut self, offset: usize, severity: Severity, what: String) {
        // Keep more remarks than are reported, because they are not added in the order of the file.
        if self.made.len() < 10 * MAX_REMARKS {
            self.made.push((offset, severity, what));
        }
    }

    /// Returns the remarks in the order of the file.
    pub(super) fn finish(mut self) -> Vec<Remark> {
        self.made.sort();
        self.made.truncate(MAX_REMARKS);
        let remark = |(offset, severity, message): (usize, Severity, String)| {
            let place = self.xml.text_pos_at(offset);
            Remark {
                severity,
                line: place.row,
                column: place.col,
                message,
            }
        };
        self.made.into_iter().map(remark).collect()
    }
}
