//! XML of unknown origin, parsed into a tree within bounds.
//!
//! The parser roxmltree compares each attribute of an element with all other attributes of the element. It
//! also copies each namespace prefix to all inner elements that declare another prefix. So a file of a few
//! megabytes could take minutes of time or gigabytes of memory. Therefore [`parse`] counts attributes and
//! prefixes before it parses. It also refuses document types (DTDs), because their entities can expand
//! without limit. roxmltree does not recurse, so this module does not limit the nesting.

pub use roxmltree::{Attribute, Document, Node, TextPos};

/// Maximum number of attributes of an element. Real files have a few attributes per element.
pub const MAX_ATTRIBUTES: usize = 256;

/// Maximum number of declarations of namespace prefixes in a document. Real files have a few.
pub const MAX_PREFIXES: usize = 32;

/// Reason why XML cannot be parsed. The message includes the position, as `line:column`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not well-formed, has a DTD, or has too many nodes.
    #[error(transparent)]
    Text(#[from] roxmltree::Error),
    /// An element has too many attributes.
    #[error("an element has more than {MAX_ATTRIBUTES} attributes at {0}")]
    Attributes(TextPos),
    /// The document declares too many namespace prefixes.
    #[error("more than {MAX_PREFIXES} namespace prefixes are declared at {0}")]
    Prefixes(TextPos),
}

impl Error {
    /// Returns the position of the error. If the error concerns the whole document, returns the start of the
    /// document.
    pub fn place(&self) -> TextPos {
        match self {
            Error::Text(error) => error.pos(),
            Error::Attributes(place) | Error::Prefixes(place) => *place,
        }
    }
}

/// Parses a document of at most `max_nodes` elements, texts, comments and processing instructions.
///
/// # Errors
/// Returns an error if the text is not well-formed, has a DTD, or exceeds a limit.
pub fn parse(text: &str, max_nodes: u32) -> Result<Document<'_>, Error> {
    if let Some((at, _)) = text.match_indices("xmlns:").nth(MAX_PREFIXES) {
        return Err(Error::Prefixes(place(text, at)));
    }
    if let Some(at) = excess_attribute(text) {
        return Err(Error::Attributes(place(text, at)));
    }
    let options = roxmltree::ParsingOptions {
        allow_dtd: false,
        nodes_limit: max_nodes,
        ..roxmltree::ParsingOptions::default()
    };
    Ok(Document::parse_with_options(text, options)?)
}

/// Returns the offset of the first attribute that exceeds [`MAX_ATTRIBUTES`].
///
/// Each attribute has one pair of quotes. A tag ends at the first `>` outside of quotes. In well-formed XML,
/// a tag contains no second `<`. Tags in comments and `CDATA` are also counted.
fn excess_attribute(text: &str) -> Option<usize> {
    let mut start = 0;
    for piece in text.split('<') {
        let is_tag = start > 0 && !piece.starts_with(['!', '?', '/']);
        let (mut quote, mut attributes) = (None, 0);
        for (at, byte) in piece.bytes().enumerate().take_while(|_| is_tag) {
            match (quote, byte) {
                (None, b'>') => break,
                (None, b'"' | b'\'') if attributes == MAX_ATTRIBUTES => return Some(start + at),
                (None, b'"' | b'\'') => {
                    attributes += 1;
                    quote = Some(byte);
                }
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
        }
        start += piece.len() + 1;
    }
    None
}

/// Returns the line and the column of an offset. Both are counted from 1.
fn place(text: &str, at: usize) -> TextPos {
    let before = &text[..at];
    let line = before.rsplit('\n').next().unwrap_or_default();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    TextPos::new(
        count(before.matches('\n').count() + 1),
        count(line.chars().count() + 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an element with `attributes` attributes. The values of the attributes contain quotes and `>`.
    fn element(attributes: usize) -> String {
        let attributes: String = (0..attributes)
            .map(|n| format!(" a{n}=\"'{n}'>\""))
            .collect();
        format!("<x{attributes}/>")
    }

    #[test]
    fn attributes_are_counted_by_element() {
        let most = element(MAX_ATTRIBUTES);
        let two = format!("<all>{most}{most} \"\"{}</all>", "\"'".repeat(1_000));
        let document = parse(&two, 100).unwrap();
        let elements = document.root_element().children();
        let counts: Vec<_> = elements.map(|node| node.attributes().count()).collect();
        assert_eq!(counts, [MAX_ATTRIBUTES, MAX_ATTRIBUTES, 0]);

        for comment in [
            "<!-- \"a\" 'b' -->",
            "<?p \"a\" 'b'?>",
            "<![CDATA[\"a\" 'b']]>",
        ] {
            let text = format!("<x>{}</x>", comment.repeat(1_000));
            assert!(parse(&text, 10_000).is_ok(), "{comment}");
        }
        let long = format!("<x><!-- {} --></x>", "\"a\"".repeat(1_000));
        assert!(parse(&long, 100).is_ok());

        let text = format!("<!-- é -->\n<é>{}</é>", element(MAX_ATTRIBUTES + 1));
        let error = parse(&text, 100).unwrap_err();
        assert!(matches!(error, Error::Attributes(_)), "{error}");
        // The limit is 256, so attribute 257 is an error.
        let column = 3 + element(MAX_ATTRIBUTES + 1).find("\"'256'").unwrap() + 1;
        assert_eq!(error.place(), TextPos::new(2, column as u32));
    }

    #[test]
    fn a_few_megabytes_are_refused_before_they_are_compared() {
        // To compare each of 300,000 attributes with all others would take more than a minute.
        let started = std::time::Instant::now();
        let wide = element(300_000);
        let error = parse(&wide, 100).unwrap_err();
        assert!(matches!(error, Error::Attributes(_)), "{error}");
        let prefixes: String = (0..100_000)
            .map(|n| format!("<x xmlns:a{n}='u'>"))
            .collect();
        let error = parse(&prefixes, u32::MAX).unwrap_err();
        assert!(matches!(error, Error::Prefixes(_)), "{error}");
        assert!(started.elapsed().as_secs() < 20);
    }

    #[test]
    fn document_types_and_many_nodes_are_refused() {
        let dtd = "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>";
        assert_eq!(
            parse(dtd, 100).unwrap_err(),
            Error::Text(roxmltree::Error::DtdDetected)
        );
        let nodes = format!("<a>{}</a>", "<b/>".repeat(100));
        assert_eq!(
            parse(&nodes, 100).unwrap_err(),
            Error::Text(roxmltree::Error::NodesLimitReached)
        );
        assert!(parse(&nodes, 200).is_ok());
        assert!(parse(&"<a>".repeat(200_000), u32::MAX).is_err());
    }
}
