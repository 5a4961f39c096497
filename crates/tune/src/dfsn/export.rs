//! What `dfsutil root export` writes: XML with a `Root`, its `Link`s, and the `Target`s of both.

use std::ops::Range;

use roxmltree::{Document, Node, ParsingOptions};
use serde::Serialize;

use super::name::{NameError, ServerName};

/// A namespace, as it was exported.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its path, such as `\\corp.example\Public`.
    pub namespace: String,
    /// How many links it has.
    pub links: usize,
    /// Where its root and its links lead, in the file's order.
    pub targets: Vec<Target>,
    pub(super) text: String,
    pub(super) encoding: Encoding,
}

/// One place that a link, or the namespace itself, leads to.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// The link's name; `None` of a target of the root, which is a namespace server.
    pub link: Option<String>,
    /// The server's name as the file has it.
    pub server: String,
    /// Where in the file, counted from 1.
    pub line: u32,
    /// Where the server's name is in the text.
    #[serde(skip)]
    pub(super) range: Range<usize>,
}

/// How a file's text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Little,
    Utf16Big,
}

/// A file is no export of a namespace.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Too large.
    #[error("{found} bytes; exports are read up to {} bytes", Export::MOST_BYTES)]
    Size {
        /// How large it is.
        found: usize,
    },
    /// Its bytes are no text.
    #[error("byte {at}: neither UTF-8 nor UTF-16 with a byte order mark")]
    Encoding {
        /// Where.
        at: usize,
    },
    /// It is no XML, or has a DTD, which is not read.
    #[error("{0}")]
    Xml(#[from] roxmltree::Error),
    /// It is XML of something else.
    #[error("the outermost element is `{found}`, not `Root` as `dfsutil root export` writes it")]
    NotRoot {
        /// The element's name.
        found: String,
    },
    /// The root does not say its namespace.
    #[error("the Root has no Name such as \\\\domain\\namespace")]
    Nameless,
    /// A target without server.
    #[error("line {line}: a Target without Server, or a path that begins with \\\\")]
    NoServer {
        /// Where.
        line: u32,
    },
    /// A server's name that is none, or that is written with character references.
    #[error("line {line}: {error}")]
    Name {
        /// Where.
        line: u32,
        /// What is wrong with it.
        error: NameError,
    },
}

impl Export {
    /// Larger files are refused. A link takes some 200 bytes, and namespaces have up to 50,000.
    pub const MOST_BYTES: usize = 64 << 20;

    /// Reads an export.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, ExportError> {
        if bytes.len() > Self::MOST_BYTES {
            return Err(ExportError::Size { found: bytes.len() });
        }
        let (text, encoding) = Encoding::decode(bytes)?;
        let document = parse(&text)?;
        let root = document.root_element();
        if !is_named(root, "Root") {
            return Err(ExportError::NotRoot {
                found: root.tag_name().name().chars().take(80).collect(),
            });
        }
        let namespace = attribute(root, "Name")
            .map(|name| name.value().trim_end_matches('\\').to_owned())
            .filter(|name| Self::parts_of(name).is_some())
            .ok_or(ExportError::Nameless)?;
        let mut targets = Vec::new();
        let links = (root.children()).filter(|node| is_named(*node, "Link"));
        let lines = Lines::of(&text);
        for target in (root.children()).filter(|node| is_named(*node, "Target")) {
            targets.push(read_target(target, None, &lines)?);
        }
        let mut count = 0;
        for link in links {
            count += 1;
            let name = attribute(link, "Name").map_or("", |name| name.value());
            for target in (link.children()).filter(|node| is_named(*node, "Target")) {
                targets.push(read_target(target, Some(name), &lines)?);
            }
        }
        Ok(Export {
            namespace,
            links: count,
            targets,
            encoding,
            text,
        })
    }

    /// The domain or server of a namespace's path and its name there.
    pub(super) fn parts_of(namespace: &str) -> Option<(ServerName, &str)> {
        let path = namespace.trim_start_matches('\\').trim_end_matches('\\');
        let (domain, name) = path.split_once('\\')?;
        let fine = !name.is_empty() && !name.contains(['\\', '"', '\n', '\r', '%']);
        Some((ServerName::new(domain).ok().filter(|_| fine)?, name))
    }
}

/// Parses without DTDs, which are where entities would come from.
pub(super) fn parse(text: &str) -> Result<Document<'_>, roxmltree::Error> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: 5_000_000,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options)
}

pub(super) fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name().eq_ignore_ascii_case(name)
}

fn attribute<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<roxmltree::Attribute<'a, 'i>> {
    (node.attributes()).find(|attribute| attribute.name().eq_ignore_ascii_case(name))
}

fn read_target(
    node: Node<'_, '_>,
    link: Option<&str>,
    lines: &Lines<'_>,
) -> Result<Target, ExportError> {
    let line = lines.line(node.range().start);
    let path = || (node.attributes()).find(|attribute| attribute.value().starts_with(r"\\"));
    let attribute = attribute(node, "Server")
        .or_else(path)
        .ok_or(ExportError::NoServer { line })?;
    // In the text, not in the value: that is what is rewritten.
    let range = attribute.range_value();
    let written = &lines.text[range.clone()];
    let before = written.len() - written.trim_start_matches('\\').len();
    let length = written[before..]
        .find('\\')
        .unwrap_or(written.len() - before);
    let start = range.start + before;
    let server = &lines.text[start..start + length];
    ServerName::new(server).map_err(|error| ExportError::Name { line, error })?;
    Ok(Target {
        link: link.map(str::to_owned),
        server: server.to_owned(),
        line,
        range: start..start + length,
    })
}

/// Where a text's lines begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines {
            text,
            starts: ends.map(|(at, _)| at + 1).collect(),
        }
    }

    /// The line of a byte, counted from 1.
    fn line(&self, at: usize) -> u32 {
        let before = self.starts.partition_point(|start| *start <= at);
        u32::try_from(before).map_or(u32::MAX, |before| before.saturating_add(1))
    }
}

impl Encoding {
    fn decode(bytes: &[u8]) -> Result<(String, Self), ExportError> {
        let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
            let text =
                char::decode_utf16(bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])))
                    .collect::<Result<String, _>>();
            match bytes.len() % 2 {
                0 => text.map_err(|_| ExportError::Encoding { at: 0 }),
                _ => Err(ExportError::Encoding {
                    at: bytes.len() + 1,
                }),
            }
        };
        match bytes {
            [0xff, 0xfe, rest @ ..] => Ok((units(rest, u16::from_le_bytes)?, Self::Utf16Little)),
            [0xfe, 0xff, rest @ ..] => Ok((units(rest, u16::from_be_bytes)?, Self::Utf16Big)),
            _ => {
                let (rest, encoding) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
                    Some(rest) => (rest, Self::Utf8WithMark),
                    None => (bytes, Self::Utf8),
                };
                let text = std::str::from_utf8(rest).map_err(|error| ExportError::Encoding {
                    at: bytes.len() - rest.len() + error.valid_up_to(),
                })?;
                Ok((text.to_owned(), encoding))
            }
        }
    }

    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8WithMark => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Self::Utf16Little => {
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                [0xff, 0xfe].into_iter().chain(units).collect()
            }
            Self::Utf16Big => {
                let units = text.encode_utf16().flat_map(u16::to_be_bytes);
                [0xfe, 0xff].into_iter().chain(units).collect()
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// In the form that `dfsutil` writes, of the namespace that is migrated in the documentation.
    pub(in crate::dfsn) const SAMPLE: &str = r#"<?xml version="1.0"?>
<Root Name="\\child.corp.contoso.com\Testing" State="1" Timeout="300" Attributes="0">
	<Target Server="FILE1" Folder="Testing" State="2"/>
	<Link Name="Software" State="1" Timeout="1800" Comment="a &amp; b">
		<Target Server="TARGET1" Folder="Software$" State="2"/>
		<Target Server="target2" Folder="Software" State="2"/>
	</Link>
	<Link Name="Users\Home" State="1" Timeout="1800">
		<Target Server="TARGET3.child.corp.contoso.com" Folder="Home" State="2"/>
		<Target Server="10.0.0.7" Folder="TARGET1" State="1"/>
	</Link>
</Root>
"#;

    #[test]
    fn an_export_is_read_whatever_its_encoding() {
        for encoding in [
            Encoding::Utf8,
            Encoding::Utf8WithMark,
            Encoding::Utf16Little,
            Encoding::Utf16Big,
        ] {
            let export = Export::read(&encoding.encode(SAMPLE)).unwrap();
            assert_eq!(export.encoding, encoding);
            assert_eq!(export.namespace, r"\\child.corp.contoso.com\Testing");
            assert_eq!(export.links, 2);
            let targets: Vec<_> = (export.targets.iter())
                .map(|target| (target.line, target.link.as_deref(), target.server.as_str()))
                .collect();
            let expected = [
                (3, None, "FILE1"),
                (5, Some("Software"), "TARGET1"),
                (6, Some("Software"), "target2"),
                (9, Some(r"Users\Home"), "TARGET3.child.corp.contoso.com"),
                (10, Some(r"Users\Home"), "10.0.0.7"),
            ];
            assert_eq!(targets, expected);
        }
    }

    #[test]
    fn what_is_no_export_is_refused() {
        let bomb =
            r#"<!DOCTYPE a [<!ENTITY x "xxxx"><!ENTITY y "&x;&x;">]><Root Name="\\a\b">&y;</Root>"#;
        let deep = "<a>".repeat(200_000);
        for (text, what) in [
            (bomb, "DTD"),
            (deep.as_str(), ""),
            ("", "root node"),
            ("<Roots/>", "`Roots`"),
            ("<Root/>", "no Name"),
            (r#"<Root Name="\\a"/>"#, "no Name"),
            (
                r#"<Root Name="\\a\b"><Link><Target Folder="x"/></Link></Root>"#,
                "line 1",
            ),
            (
                r#"<Root Name="\\a\b"><Target Server="&#65;"/></Root>"#,
                "server's name",
            ),
            (
                "<Root Name=\"\\\\a\\b\">\n<Target Server=\"a b\"/></Root>",
                "line 2",
            ),
        ] {
            let error = Export::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(Export::read(b"<Root Name=\"\xff\"/>").is_err());
        assert!(Export::read(b"\xff\xfe<").is_err());
    }
}
