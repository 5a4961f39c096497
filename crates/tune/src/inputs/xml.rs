//! XML as all readers of it take it: no document types, so no entities that expand, and bounds.

use roxmltree::{Document, Node, ParsingOptions};

use super::InputError;
use crate::found::At;

/// More elements, attributes and texts than this are refused; the largest baselines hold some ten
/// thousand.
const MAX_NODES: u32 = 2_000_000;

/// Parses a document.
pub(super) fn parse<'a>(name: &str, text: &'a str) -> Result<Document<'a>, InputError> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| InputError::Xml {
        name: name.to_owned(),
        line: error.pos().row,
        what: match error {
            roxmltree::Error::DtdDetected => {
                "it has a document type (DTD), which no such file has: it is not read".to_owned()
            }
            error => error.to_string(),
        },
    })
}

/// The child element of that name.
pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children()
        .find(|child| child.tag_name().name() == name)
}

/// The text in the child element of that name.
pub(super) fn text<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    child(node, name).and_then(|child| child.text())
}

/// The lines at which the nodes of a document begin. Looking one up by itself goes through the text
/// from its start.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(place, _)| place).collect())
    }

    pub(super) fn at(&self, node: Node<'_, '_>) -> At {
        let before = self.0.partition_point(|place| *place < node.range().start);
        super::reading::line(before)
    }
}
