//! Parser of the output of `dfsutil root export`. It is XML with a `Root`, its `Link`s, and the `Target`s
//! (servers) of the root and the links.

use std::ops::Range;

use serde::Serialize;
use xml::{Attribute, Document, Node};

use super::name::{NameError, ServerName};

/// Maximum number of elements and texts of an export.
const MAX_NODES: u32 = 5_000_000;

/// Exported namespace.
#[derive(Clone, Debug)]
pub struct Export {
    /// Path of the namespace, such as `\\corp.example\Public`.
    pub namespace: String,
    /// Number of links.
    pub links: usize,
    /// Targets of the root, followed by the targets of the links. Both groups are in the order of the file.
    pub targets: Vec<Target>,
    pub(super) text: String,
    pub(super) encoding: Encoding,
}

/// Target of a link or of the root.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// Name of the link; `None` for a target of the root, which is a namespace server.
    pub link: Option<String>,
    /// Server name as it is written in the file.
    pub server: String,
    /// Number of the target's line in the file, counted from 1.
    pub line: u32,
    /// Range of the server name in the decoded text of the file, in bytes.
    #[serde(skip)]
    pub(super) range: Range<usize>,
}

/// Encoding of the exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Little,
    Utf16Big,
}

/// Reason why an export cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file is too large.
    #[error("too large: {found} bytes, at most {} are read", Export::MAX_BYTES)]
    Size {
        /// Size in bytes.
        found: usize,
    },
    /// The bytes are not text.
    #[error("byte {at} is not text: expected UTF-8, or UTF-16 with a byte order mark")]
    Encoding {
        /// Offset of the fault in the file, in bytes. If UTF-16 has an unpaired surrogate, the offset is 0,
        /// because the position of the fault is unknown.
        at: usize,
    },
    /// The XML is invalid, or has a DTD. DTDs are refused.
    #[error("invalid XML")]
    Xml(#[from] xml::Error),
    /// The root element of the XML is not `Root`, so the XML is not an export.
    #[error("not an export of `dfsutil root export`: the root element is `{found}`, not `Root`")]
    NotRoot {
        /// Name of the root element.
        found: String,
    },
    /// The root has no path of its namespace.
    #[error("the element Root has no Name such as \\\\domain\\namespace")]
    Nameless,
    /// A target has no server.
    #[error("line {line}: an element Target has neither a Server nor a path that begins with \\\\")]
    NoServer {
        /// Line number of the target, counted from 1.
        line: u32,
    },
    /// A server name is invalid, or is written with character references such as `&#65;`.
    #[error("line {line}: cannot read a server name")]
    Name {
        /// Line number of the target, counted from 1.
        line: u32,
        /// Reason why the name is invalid.
        source: NameError,
    },
}

impl Export {
    /// Maximum size of a file, in bytes. A link needs about 200 bytes, and a namespace has up to 50,000
    /// links.
    pub const MAX_BYTES: usize = 64 << 20;

    /// Reads an export.
    ///
    /// # Errors
    /// Returns an error if the file is not an export.
    pub fn read(bytes: &[u8]) -> Result<Self, ExportError> {
        if bytes.len() > Self::MAX_BYTES {
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
        let lines = Lines::new(&text);
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

    /// Splits the path of a namespace into the domain or server, and the name of the namespace.
    pub(super) fn parts_of(namespace: &str) -> Option<(ServerName, &str)> {
        let path = namespace.trim_start_matches('\\').trim_end_matches('\\');
        let (domain, name) = path.split_once('\\')?;
        let fine = !name.is_empty() && !name.contains(['\\', '"', '\n', '\r', '%']);
        Some((ServerName::new(domain).ok().filter(|_| fine)?, name))
    }
}

pub(super) fn parse(text: &str) -> Result<Document<'_>, xml::Error> {
    xml::parse(text, MAX_NODES)
}

pub(super) fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name().eq_ignore_ascii_case(name)
}

fn attribute<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Attribute<'a, 'i>> {
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
    // This function searches the server name in the text, not in the decoded value, because the rewriting
    // needs the range of the name in the text.
    let range = attribute.range_value();
    let written = &lines.text[range.clone()];
    let before = written.len() - written.trim_start_matches('\\').len();
    let length = written[before..]
        .find('\\')
        .unwrap_or(written.len() - before);
    let start = range.start + before;
    let server = &lines.text[start..start + length];
    ServerName::new(server).map_err(|source| ExportError::Name { line, source })?;
    Ok(Target {
        link: link.map(str::to_owned),
        server: server.to_owned(),
        line,
        range: start..start + length,
    })
}

/// Text with the offsets of its line starts.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines {
            text,
            starts: ends.map(|(at, _)| at + 1).collect(),
        }
    }

    /// Returns the line number of a byte offset, counted from 1.
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

    /// Returns the message of an error and of its source.
    fn chain(error: &ExportError) -> String {
        use std::error::Error;
        let source = error.source().map_or(String::new(), ToString::to_string);
        format!("{error}: {source}")
    }

    /// Export of the namespace in the documentation, in the form that `dfsutil` writes.
    pub(crate) const SAMPLE: &str = r#"<?xml version="1.0"?>
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
    fn an_export_is_read_in_every_encoding() {
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
    fn other_files_are_refused() {
        let bomb =
            r#"<!DOCTYPE a [<!ENTITY x "xxxx"><!ENTITY y "&x;&x;">]><Root Name="\\a\b">&y;</Root>"#;
        let deep = "<a>".repeat(200_000);
        let attributes: String = (0..300_000).map(|n| format!(" a{n}=''")).collect();
        let wide = format!("<Root{attributes}/>");
        for (text, what) in [
            (bomb, "DTD"),
            (deep.as_str(), ""),
            (wide.as_str(), "more than 256 attributes at 1:"),
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
                "server name",
            ),
            (
                "<Root Name=\"\\\\a\\b\">\n<Target Server=\"a b\"/></Root>",
                "line 2",
            ),
        ] {
            let error = chain(&Export::read(text.as_bytes()).unwrap_err());
            assert!(error.contains(what), "{error}");
        }
        assert!(Export::read(b"<Root Name=\"\xff\"/>").is_err());
        assert!(Export::read(b"\xff\xfe<").is_err());
    }
}
