//! Instrumentation manifests: XML that describes a provider's events.
//!
//! Reads the `.man` files that `mc.exe` compiles and the dialect that .NET's EventSource writes
//! into traces (see [`crate::event_source`]). Elements and attributes follow Microsoft's public
//! manifest schema (`eventman.xsd`). Parts that decoding does not need (channels, levels,
//! `UserData`) are ignored.

use std::collections::HashMap;
use std::sync::Arc;

use etl::{Guid, ParseGuidError};
use xml::{Document, Node};

use crate::schema::{Count, Field, InType, Length, Schema, Source, ValueMap};
use crate::tdh;

/// Maximum size of a manifest in bytes. Manifests of Windows components have at most a few MiB.
pub const MAX_SIZE: usize = 16 << 20;
/// Maximum total number of fields of all events in a manifest. Events share templates. So without this limit,
/// a short manifest could describe a huge number of fields.
const MAX_FIELDS: usize = 200_000;
const MAX_NODES: u32 = 2_000_000;
const MAX_DEPTH: usize = 32;

/// A provider and its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProvider {
    /// GUID of the provider.
    pub guid: Guid,
    /// Name of the provider.
    pub name: Arc<str>,
    /// Events by id and version.
    pub events: HashMap<(u16, u8), Schema>,
    /// Keyword bits and names, in the manifest's order.
    pub keywords: Vec<(u64, Arc<str>)>,
}

impl ManifestProvider {
    /// Returns the total number of fields of all events.
    pub(crate) fn field_count(&self) -> usize {
        self.events
            .values()
            .map(|schema| field_count(&schema.fields))
            .sum()
    }
}

/// Error in a manifest, with its line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("manifest, line {line}, column {column}: {problem}")]
pub struct ManifestError {
    /// Line number of the error. The first line is 1.
    pub line: u32,
    /// Column number of the error. The first column is 1.
    pub column: u32,
    /// Kind of the error in the manifest.
    pub problem: ManifestProblem,
}

/// Kind of error in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestProblem {
    /// The text is not well-formed XML, uses a document type definition, or exceeds a limit.
    #[error("cannot read the XML: {0}")]
    Xml(#[source] xml::Error),
    /// The text contains no provider.
    #[error("no <provider> element")]
    NoProvider,
    /// An element does not have a required attribute.
    #[error("<{element}> has no `{attribute}`")]
    Missing {
        /// Name of the element.
        element: String,
        /// Name of the missing attribute.
        attribute: &'static str,
    },
    /// The value of an attribute is not a number, or it exceeds its maximum.
    #[error("`{attribute}` is `{found}`, expected a number up to {max}")]
    BadNumber {
        /// Name of the attribute.
        attribute: &'static str,
        /// Value of the attribute.
        found: String,
        /// Maximum value of the attribute.
        max: u64,
    },
    /// The provider's GUID is invalid.
    #[error(transparent)]
    BadGuid(ParseGuidError),
    /// A field has a type that the manifest schema does not define.
    #[error("unknown inType `{0}`")]
    UnknownType(String),
    /// An event names a template that does not exist.
    #[error("no template `{0}`")]
    UnknownTemplate(String),
    /// Structs are nested too deeply.
    #[error("more than {MAX_DEPTH} nested structs")]
    TooDeep,
    /// The manifest's events have too many fields.
    #[error("all events together have more than {MAX_FIELDS} fields")]
    TooManyFields,
    /// The manifest is too long.
    #[error("manifest has {0} bytes, expected at most {MAX_SIZE}")]
    TooLarge(usize),
}

/// Reads all providers of a manifest.
///
/// Schemas have [`Source::UserManifest`]. If two events have the same id and version, only the first event is
/// used.
///
/// # Errors
/// Returns an error with line and column if the text is not a manifest, or if the description of an event is
/// invalid.
pub fn parse_manifest(xml: &str) -> Result<Vec<ManifestProvider>, ManifestError> {
    let at_start = |problem| ManifestError {
        line: 1,
        column: 1,
        problem,
    };
    if xml.len() > MAX_SIZE {
        return Err(at_start(ManifestProblem::TooLarge(xml.len())));
    }
    let xml = xml.trim_start_matches('\u{feff}');
    let document = xml::parse(xml, MAX_NODES).map_err(|error| {
        let place = error.place();
        ManifestError {
            line: place.row,
            column: place.col,
            problem: ManifestProblem::Xml(error),
        }
    })?;
    let reader = Reader::new(&document);
    let providers = elements(document.root(), "provider");
    let providers: Vec<_> = providers
        .map(|node| reader.provider(node))
        .collect::<Result<_, _>>()?;
    if providers.is_empty() {
        return Err(at_start(ManifestProblem::NoProvider));
    }
    Ok(providers)
}

/// Returns all elements called `name` below `node`, in any namespace.
fn elements<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> + Clone {
    node.descendants()
        .filter(move |n| n.is_element() && n.tag_name().name() == name)
}

/// Searches the children of `node` for elements called `list`, and returns the child elements of these elements.
fn listed<'a, 'input>(
    node: Node<'a, 'input>,
    list: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children()
        .filter(move |n| n.tag_name().name() == list)
        .flat_map(|n| n.children())
        .filter(|n| n.is_element())
}

/// State of the reader while it reads a document.
struct Reader<'a, 'input> {
    document: &'a Document<'input>,
    /// String table of one language. The language is English if the manifest has an English table. Otherwise,
    /// it is the first language.
    strings: HashMap<&'a str, Arc<str>>,
    fields_left: std::cell::Cell<usize>,
}

impl<'a, 'input> Reader<'a, 'input> {
    fn new(document: &'a Document<'input>) -> Reader<'a, 'input> {
        let mut languages = elements(document.root(), "resources");
        let is_english = |node: &Node<'_, '_>| {
            node.attribute("culture")
                .is_some_and(|culture| culture.starts_with("en"))
        };
        let language = languages
            .clone()
            .find(is_english)
            .or_else(|| languages.next());
        let strings = language
            .into_iter()
            .flat_map(|language| elements(language, "string"));
        let strings = strings
            .filter_map(|string| Some((string.attribute("id")?, string.attribute("value")?)))
            .map(|(id, value)| (id, value.trim_end().into()))
            .collect();
        Reader {
            document,
            strings,
            fields_left: MAX_FIELDS.into(),
        }
    }

    fn error(&self, node: Node<'_, '_>, problem: ManifestProblem) -> ManifestError {
        let place = self.document.text_pos_at(node.range().start);
        ManifestError {
            line: place.row,
            column: place.col,
            problem,
        }
    }

    fn required(
        &self,
        node: Node<'a, 'input>,
        attribute: &'static str,
    ) -> Result<&'a str, ManifestError> {
        node.attribute(attribute).ok_or_else(|| {
            let element = node.tag_name().name().to_owned();
            self.error(node, ManifestProblem::Missing { element, attribute })
        })
    }

    /// Returns the number in the attribute. Returns `None` if the element has no such attribute. Returns an
    /// error if the attribute is not a number or exceeds `max`.
    fn number(
        &self,
        node: Node<'_, '_>,
        attribute: &'static str,
        max: u64,
    ) -> Result<Option<u64>, ManifestError> {
        let Some(text) = node.attribute(attribute) else {
            return Ok(None);
        };
        match tdh::number(text) {
            Some(value) if value <= max => Ok(Some(value)),
            _ => {
                let value = text.to_owned();
                Err(self.error(
                    node,
                    ManifestProblem::BadNumber {
                        attribute,
                        found: value,
                        max,
                    },
                ))
            }
        }
    }

    /// Returns the text of the element's `message` attribute. If the attribute has the form `$(string.ID)`, returns
    /// the text with this id from the string table. Returns `None` if there is no attribute, or no text with this id.
    fn message(&self, node: Node<'a, '_>) -> Option<Arc<str>> {
        let message = node.attribute("message")?;
        match message
            .strip_prefix("$(string.")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(id) => self.strings.get(id).cloned(),
            None => Some(message.trim_end().into()),
        }
    }

    fn provider(&self, node: Node<'a, 'input>) -> Result<ManifestProvider, ManifestError> {
        let guid: Guid = self
            .required(node, "guid")?
            .parse()
            .map_err(|error| self.error(node, ManifestProblem::BadGuid(error)))?;
        let name: Arc<str> = self.required(node, "name")?.into();

        let mut keywords = Vec::new();
        for keyword in listed(node, "keywords") {
            let mask = self.number(keyword, "mask", u64::MAX)?;
            keywords.extend(mask.zip(keyword.attribute("name").map(Arc::from)));
        }
        let mut maps = HashMap::new();
        for map in listed(node, "maps").filter(|map| map.tag_name().name().ends_with("Map")) {
            let map = self.map(map)?;
            maps.insert(map.name.clone(), Arc::new(map));
        }
        let templates: HashMap<&str, Node<'a, 'input>> = listed(node, "templates")
            .filter_map(|template| Some((template.attribute("tid")?, template)))
            .collect();
        let mut read_templates: HashMap<&str, Vec<Field>> = HashMap::new();

        let mut events = HashMap::new();
        for event in listed(node, "events").filter(|event| event.tag_name().name() == "event") {
            self.required(event, "value")?;
            let id = self.number(event, "value", u16::MAX.into())?.unwrap_or(0) as u16;
            let version = self.number(event, "version", u8::MAX.into())?.unwrap_or(0) as u8;
            let fields = match event.attribute("template").filter(|tid| !tid.is_empty()) {
                None => Vec::new(),
                Some(tid) => match read_templates.get(tid) {
                    Some(fields) => {
                        self.spend(event, field_count(fields))?;
                        fields.clone()
                    }
                    None => {
                        let template = templates.get(tid).ok_or_else(|| {
                            self.error(event, ManifestProblem::UnknownTemplate(tid.to_owned()))
                        })?;
                        let fields = self.fields(*template, &maps, 0)?;
                        read_templates.insert(tid, fields.clone());
                        fields
                    }
                },
            };
            let attribute = |name| event.attribute(name);
            let own_name = attribute("name").or(attribute("symbol"));
            let event_name = tdh::event_name(attribute("task"), attribute("opcode"), own_name, id);
            events.entry((id, version)).or_insert_with(|| Schema {
                provider: guid,
                provider_name: Some(name.clone()),
                name: event_name.into(),
                message: self.message(event),
                source: Source::UserManifest,
                fields,
            });
        }
        Ok(ManifestProvider {
            guid,
            name,
            events,
            keywords,
        })
    }

    /// Reads a value map or a bit map. Values whose names are not in the string table are left out.
    fn map(&self, node: Node<'a, 'input>) -> Result<ValueMap, ManifestError> {
        let mut entries = Vec::new();
        for entry in node.children().filter(|n| n.tag_name().name() == "map") {
            let value = self.number(entry, "value", u32::MAX.into())?;
            entries.extend(value.zip(self.message(entry)));
        }
        let name = self.required(node, "name")?.into();
        Ok(ValueMap {
            name,
            is_bitmap: node.tag_name().name() == "bitMap",
            entries,
        })
    }

    /// Subtracts `count` from the remaining number of fields.
    fn spend(&self, node: Node<'_, '_>, count: usize) -> Result<(), ManifestError> {
        let left = self.fields_left.get().checked_sub(count);
        let left = left.ok_or_else(|| self.error(node, ManifestProblem::TooManyFields))?;
        self.fields_left.set(left);
        Ok(())
    }

    /// Reads the fields of a template or struct.
    fn fields(
        &self,
        node: Node<'a, 'input>,
        maps: &HashMap<Arc<str>, Arc<ValueMap>>,
        depth: usize,
    ) -> Result<Vec<Field>, ManifestError> {
        if depth > MAX_DEPTH {
            return Err(self.error(node, ManifestProblem::TooDeep));
        }
        let mut fields = Vec::new();
        for node in node.children() {
            let is_struct = match node.tag_name().name() {
                "data" => false,
                "struct" => true,
                _ => continue,
            };
            self.spend(node, 1)?;
            let name = self.required(node, "name")?;
            let count = match node.attribute("count").map(amount) {
                None => Count::One,
                Some(Amount::Number(1)) => Count::One,
                Some(Amount::Number(count)) => Count::Fixed(count),
                Some(Amount::Field(field)) => Count::Field(field),
            };
            if is_struct {
                let members = InType::Struct(self.fields(node, maps, depth + 1)?);
                fields.push(Field {
                    count,
                    ..Field::new(name, members)
                });
                continue;
            }
            let in_name = self.required(node, "inType")?;
            let (in_type, out_type) =
                tdh::by_name(in_name, node.attribute("outType")).ok_or_else(|| {
                    self.error(node, ManifestProblem::UnknownType(in_name.to_owned()))
                })?;
            let length = match node.attribute("length").map(amount) {
                None => Length::Natural,
                Some(Amount::Number(length)) => Length::Fixed(length),
                Some(Amount::Field(field)) => Length::Field(field),
            };
            let length = tdh::length(&in_type, out_type, length);
            let map = node
                .attribute("map")
                .and_then(|name| maps.get(name))
                .cloned();
            fields.push(Field {
                out_type,
                count,
                length,
                map,
                ..Field::new(name, in_type)
            });
        }
        Ok(fields)
    }
}

/// A length or a count. It is a number, or the name of the field that contains the number.
enum Amount {
    Number(u32),
    Field(Arc<str>),
}

fn amount(text: &str) -> Amount {
    match tdh::number(text).and_then(|n| n.try_into().ok()) {
        Some(n) => Amount::Number(n),
        None => Amount::Field(text.trim().into()),
    }
}

/// Returns the number of fields, including the members of structs.
pub(crate) fn field_count(fields: &[Field]) -> usize {
    let nested = fields.iter().map(|field| match &field.in_type {
        InType::Struct(members) => field_count(members),
        _ => 0,
    });
    fields.len() + nested.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::OutType;

    /// Returns a manifest with one provider element that contains the XML `inner`.
    fn manifest(inner: &str) -> String {
        format!(
            "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\n\
             <instrumentation><events>\n\
             <provider name=\"Contoso-Lamp\" guid=\"{{11223344-5566-7788-99aa-bbccddeeff00}}\">\n\
             {inner}\n\
             </provider></events></instrumentation></instrumentationManifest>"
        )
    }

    fn problem(inner: &str) -> (u32, ManifestProblem) {
        let error = parse_manifest(&manifest(inner)).unwrap_err();
        (error.line, error.problem)
    }

    #[test]
    fn a_whole_manifest() {
        let providers = parse_manifest(include_str!("../tests/data/lamp.man")).unwrap();
        let [lamp, switch] = &providers[..] else {
            panic!("{providers:?}")
        };
        assert_eq!(&*lamp.name, "Contoso-Lamp");
        assert_eq!(
            lamp.guid.to_string(),
            "0f3a6b52-7c11-4d0e-9a51-2b8e4c6d7f10"
        );
        assert_eq!(lamp.keywords[1], (0x20, "Power".into()));

        let on = &lamp.events[&(1, 0)];
        assert_eq!(&*on.name, "Lamp/Start");
        assert_eq!(on.message.as_deref(), Some("Lamp %1 shines in colour %2."));
        assert_eq!(on.source, Source::UserManifest);
        let [name, colour, watts] = &on.fields[..] else {
            panic!("{on:?}")
        };
        assert_eq!(*name, Field::new("Name", InType::Utf16));
        assert_eq!(
            colour.map.as_ref().unwrap().entries,
            [(1, "red".into()), (2, "green".into())]
        );
        assert!(!colour.map.as_ref().unwrap().is_bitmap);
        assert_eq!(watts.in_type, InType::F64);

        let morse = &lamp.events[&(2, 1)];
        assert_eq!(&*morse.name, "Lamp/Morse");
        let [size, bytes, address, text, count, parts, flags] = &morse.fields[..] else {
            panic!("{morse:?}")
        };
        assert_eq!(size.in_type, InType::U16);
        assert_eq!(bytes.length, Length::Field("Size".into()));
        assert_eq!(
            (&address.length, address.out_type),
            (&Length::Fixed(16), OutType::Ipv6)
        );
        assert_eq!(
            (&text.in_type, &text.length),
            (&InType::Ansi, &Length::Fixed(8))
        );
        assert_eq!(count.in_type, InType::U32);
        assert_eq!(parts.count, Count::Field("Count".into()));
        let long = Field {
            out_type: OutType::Hex,
            ..Field::new("Long", InType::U8)
        };
        let pause = Field {
            count: Count::Fixed(2),
            ..Field::new("Pause", InType::FileTime)
        };
        assert_eq!(parts.in_type, InType::Struct(vec![long, pause]));
        assert!(flags.map.as_ref().unwrap().is_bitmap);

        assert_eq!(&*lamp.events[&(3, 0)].name, "EventID(3)");
        assert_eq!(&*switch.events[&(10, 0)].name, "Turned");
        assert_eq!(switch.events[&(10, 0)].fields, []);
    }

    #[test]
    fn event_source_writes_the_same_format() {
        let providers = parse_manifest(include_str!("../tests/data/event_source.man")).unwrap();
        let [provider] = &providers[..] else {
            panic!("{providers:?}")
        };
        let named = |id| &*provider.events[&(id, 0)].name;
        assert_eq!(
            [named(0), named(1), named(2)],
            ["EventSourceMessage", "Request/Start", "Tick"]
        );
        let request = &provider.events[&(1, 0)];
        assert_eq!(request.message.as_deref(), Some("Request %1"));
        let types: Vec<_> = request.fields.iter().map(|field| &field.in_type).collect();
        use InType::*;
        assert_eq!(types, [&Utf16, &Bool32, &F64, &Guid, &U32, &Binary, &I32]);
        assert_eq!(request.fields[5].length, Length::Field("bodySize".into()));
        assert_eq!(
            request.fields[6].map.as_ref().unwrap().entries,
            [(0, "None".into())]
        );
    }

    #[test]
    fn errors_say_where_and_what() {
        use ManifestProblem::*;
        assert!(matches!(parse_manifest("<a>").unwrap_err().problem, Xml(_)));
        assert_eq!(parse_manifest("<a/>").unwrap_err().problem, NoProvider);
        let missing = Missing {
            element: "event".into(),
            attribute: "value",
        };
        assert_eq!(problem("<events><event/></events>"), (4, missing));
        let bad = BadNumber {
            attribute: "version",
            found: "256".into(),
            max: 255,
        };
        assert_eq!(
            problem("\n<events>\n<event value='0x7' version='256'/></events>"),
            (6, bad)
        );
        let unknown = UnknownTemplate("T".into());
        assert_eq!(
            problem("<events><event value='1' template='T'/></events>"),
            (4, unknown)
        );
        let template = "<templates><template tid='T'><data name='x' inType='win:Lamp'/></template>\
                        </templates><events><event value='1' template='T'/></events>";
        assert_eq!(problem(template), (4, UnknownType("win:Lamp".into())));
        let guid = manifest("").replace("11223344", "Lamp");
        assert!(matches!(
            parse_manifest(&guid).unwrap_err().problem,
            BadGuid(_)
        ));
        let dtd = format!("<!DOCTYPE a [<!ENTITY b \"c\">]>{}", manifest(""));
        assert!(matches!(parse_manifest(&dtd).unwrap_err().problem, Xml(_)));
    }

    #[test]
    fn short_texts_cannot_cost_much() {
        use ManifestProblem::*;
        let struct_in_struct = "<struct name='s'>".repeat(100_000);
        let close = "</struct>".repeat(100_000);
        let event = "<events><event value='1' template='T'/></events>";
        let deep = format!(
            "<templates><template tid='T'>{struct_in_struct}{close}</template></templates>{event}"
        );
        assert_eq!(problem(&deep).1, TooDeep);

        let fields = "<data name='a' inType='win:Int8'/>".repeat(2000);
        let events = "<event value='1' template='T'/>".repeat(2000);
        let wide = format!(
            "<templates><template tid='T'>{fields}</template></templates><events>{events}</events>"
        );
        assert_eq!(problem(&wide).1, TooManyFields);

        let attributes: String = (0..300_000).map(|n| format!(" a{n}=''")).collect();
        let (line, wide) = problem(&format!("<x{attributes}/>"));
        assert!(matches!(wide, Xml(xml::Error::Attributes(place)) if place.row == line));
        assert!(matches!(
            parse_manifest(&" ".repeat(MAX_SIZE + 1))
                .unwrap_err()
                .problem,
            TooLarge(_)
        ));
    }
}
