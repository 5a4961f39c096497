//! Elements, texts and line numbers of XML files.

use ::xml::{Document, Node};

use super::InputError;
use crate::placed_value::InputPosition;

/// Maximum number of elements, attributes and texts. The largest baselines have some ten thousand.
const MAX_NODES: u32 = 2_000_000;

pub(super) fn parse<'a>(name: &str, text: &'a str) -> Result<Document<'a>, InputError> {
    ::xml::parse(text, MAX_NODES).map_err(|source| InputError::Xml {
        name: name.to_owned(),
        source,
    })
}

/// Returns the first child element of this name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children()
        .find(|child| child.tag_name().name() == name)
}

/// Returns the text of the first child element of this name.
pub(super) fn text<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    child(node, name).and_then(|child| child.text())
}

/// Index of line breaks. Without the index, each lookup of a line would scan the text from its start.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(place, _)| place).collect())
    }

    pub(super) fn at(&self, node: Node<'_, '_>) -> InputPosition {
        let before = self.0.partition_point(|place| *place < node.range().start);
        super::reading::line(before)
    }
}
