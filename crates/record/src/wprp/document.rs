//! A profile as XML: its elements by their ids, and remarks by their places.

use std::collections::{HashMap, HashSet};

use roxmltree::{Node, ParsingOptions};

use super::{Gravity, MOST_REMARKS, Remark};

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is longer than any that people write.
    #[error("has more than 1 MiB, which no profile has")]
    TooLarge,
    /// It is neither UTF-8 nor UTF-16 with a byte order mark.
    #[error("is neither UTF-8 nor UTF-16 with a byte order mark; save it as UTF-8")]
    NotText,
    /// It is no XML.
    #[error("is not XML that WPR reads: {0}")]
    NotXml(String),
}

/// Largest profile in bytes; those that ship with tools have some tens of KiB.
const LARGEST: usize = 1 << 20;
/// Most elements, attributes and texts of one.
const MOST_NODES: u32 = 100_000;
/// Deepest element; of a profile it is the ninth.
const DEEPEST: usize = 64;

/// The text of a file: UTF-8, or UTF-16 as its byte order mark says.
///
/// # Errors
/// If it is neither, or too large.
pub fn text(bytes: &[u8]) -> Result<String, Unreadable> {
    if bytes.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    let from_utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let is_even = bytes.len().is_multiple_of(2);
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| is_even).ok_or(Unreadable::NotText)
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => from_utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => from_utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => match std::str::from_utf8(rest) {
            // UTF-16 without its mark is valid UTF-8 with a zero in each other place.
            Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
            _ => Err(Unreadable::NotText),
        },
    }
}

/// Parses a profile. Document types, with which entities can be made to explode, are refused.
pub(super) fn parse(text: &str) -> Result<roxmltree::Document<'_>, Unreadable> {
    if text.len() > LARGEST {
        return Err(Unreadable::TooLarge);
    }
    if text.trim().is_empty() {
        return Err(Unreadable::NotXml("it is empty".to_owned()));
    }
    if is_too_deep(text) {
        let what = format!("elements lie in each other deeper than {DEEPEST}");
        return Err(Unreadable::NotXml(what));
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MOST_NODES,
        ..ParsingOptions::default()
    };
    roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| Unreadable::NotXml(error.to_string()))
}

/// Whether elements may lie in each other so deep that a recursive parser runs out of stack. What
/// only looks like tags, within comments and such, counts too, which no profile comes near to.
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
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// The elements of a profile.
pub(super) struct Document<'a, 'x> {
    /// The outermost element.
    pub(super) root: Node<'a, 'x>,
    /// Elements by their names and ids; the first of each.
    by_id: HashMap<(&'a str, &'a str), Node<'a, 'x>>,
}

impl<'a, 'x> Document<'a, 'x> {
    pub(super) fn new(xml: &'a roxmltree::Document<'x>) -> Document<'a, 'x> {
        let root = xml.root_element();
        let mut by_id = HashMap::new();
        for node in root.descendants().filter(Node::is_element) {
            if let Some(id) = node.attribute("Id") {
                by_id.entry((node.tag_name().name(), id)).or_insert(node);
            }
        }
        Document { root, by_id }
    }

    /// The element of that name and id.
    pub(super) fn of_id(&self, element: &'a str, id: &'a str) -> Option<Node<'a, 'x>> {
        self.by_id.get(&(element, id)).copied()
    }

    /// An element and those that it is derived from, itself first; of a reference (`…Id`) the one that
    /// it refers to comes next. No element comes twice, however they refer to each other.
    pub(super) fn lineage(&self, node: Node<'a, 'x>) -> Vec<Node<'a, 'x>> {
        let (mut lineage, mut seen) = (vec![node], HashSet::from([node.id()]));
        let mut last = node;
        loop {
            let name = last.tag_name().name();
            let next = match (name.strip_suffix("Id"), last.attribute("Value")) {
                (Some(element), Some(id)) => self.of_id(element, id),
                _ => last
                    .attribute("Base")
                    .and_then(|base| self.of_id(name, base)),
            };
            match next.filter(|next| seen.insert(next.id())) {
                Some(next) => lineage.push(next),
                None => return lineage,
            }
            last = lineage[lineage.len() - 1];
        }
    }

    /// Elements of that name anywhere.
    pub(super) fn all(
        &self,
        name: &'static str,
    ) -> impl Iterator<Item = Node<'a, 'x>> + use<'a, 'x> {
        self.root
            .descendants()
            .filter(move |node| node.has_tag_name(name))
    }

    /// Values of a list (`Keywords` of `Keyword`, `Stacks` of `Stack`) as an element has them with
    /// what it inherits: each list says whether it is set anew, added, or removed.
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

/// Children of that name.
pub(super) fn children<'a, 'x>(
    node: Node<'a, 'x>,
    name: &str,
) -> impl Iterator<Item = Node<'a, 'x>> {
    node.children()
        .filter(move |child| child.has_tag_name(name))
}

/// Remarks that are being made.
pub(super) struct Remarks<'a, 'x> {
    xml: &'a roxmltree::Document<'x>,
    /// Each with the offset of its place.
    made: Vec<(usize, Gravity, String)>,
}

impl<'a, 'x> Remarks<'a, 'x> {
    pub(super) fn new(xml: &'a roxmltree::Document<'x>) -> Remarks<'a, 'x> {
        Remarks {
            xml,
            made: Vec::new(),
        }
    }

    /// A remark on an element.
    pub(super) fn on(&mut self, node: Node<'_, '_>, gravity: Gravity, what: impl Into<String>) {
        self.at(node.range().start, gravity, what.into());
    }

    /// A remark on an attribute of an element; on the element if it has none of that name.
    pub(super) fn on_attribute(
        &mut self,
        node: Node<'_, '_>,
        attribute: &str,
        gravity: Gravity,
        what: impl Into<String>,
    ) {
        let place = node
            .attribute_node(attribute)
            .map_or(node.range().start, |attribute| attribute.range().start);
        self.at(place, gravity, what.into());
    }

    fn at(&mut self, offset: usize, gravity: Gravity, what: String) {
        // A few more than are kept: they are not made in the order of the file.
        if self.made.len() < 10 * MOST_REMARKS {
            self.made.push((offset, gravity, what));
        }
    }

    /// All of them, in the order of the file.
    pub(super) fn finish(mut self) -> Vec<Remark> {
        self.made.sort();
        self.made.truncate(MOST_REMARKS);
        let remark = |(offset, gravity, what): (usize, Gravity, String)| {
            let place = self.xml.text_pos_at(offset);
            Remark {
                gravity,
                line: place.row,
                column: place.col,
                what,
            }
        };
        self.made.into_iter().map(remark).collect()
    }
}
