//! Trace message format (TMF) files: texts that `tracepdb` extracts from a PDB.
//!
//! ```text
//! 2363c985-9b6e-3283-34a7-e8c27a60b889 module // SRC=driver.c MJ= MN=
//! #typev driver_c14 10 "%0state=%10!s! after %11!d! ms" //   LEVEL=TRACE_INFO FUNC=Start
//! {
//! state, ItemEnum(_STATE) -- 10
//! elapsed, ItemLong -- 11
//! }
//! #enumv _STATE
//! {
//! StateIdle,0x0
//! StateActive,0x1
//! }
//! ```

use std::collections::HashMap;
use std::iter::Peekable;
use std::sync::Arc;

use etl::Guid;

use super::format::Format;
use super::item::Item;
use crate::schema::ValueMap;

/// Maximum number of arguments of a message. A payload has at most 64 KiB, and the documentation of
/// `TraceMessage` expects far fewer arguments. This maximum limits the work per event.
const MAX_ARGUMENTS: usize = 256;

/// Maximum number of names in an `#enumv` block. For every event that uses the block, the decoder searches
/// the block.
const MAX_ENUMERATORS: usize = 1 << 16;

/// Messages of one source file, and the GUID that is in all their events.
#[derive(Clone, Debug)]
pub struct Tmf {
    /// GUID of the events.
    pub guid: Guid,
    /// Name of the traced component. It is an argument of the WPP preprocessor.
    pub module: Arc<str>,
    /// Source file, without a path.
    pub source_file: Option<Arc<str>>,
    /// Messages of the source file, by message number.
    pub messages: HashMap<u16, Arc<Message>>,
}

/// One message: a call of a trace function in the source.
#[derive(Clone, Debug)]
pub struct Message {
    /// Number of the message. It is unique within its GUID. The first message has number 10.
    pub number: u16,
    /// Name of the message. It consists of the source file and the line, as in `driver_c14`.
    pub name: Arc<str>,
    /// Format string as written in the TMF file.
    pub template: Arc<str>,
    /// Trace level of the message. If the trace function has only flags, this is the flag of the message.
    pub level: Option<Arc<str>>,
    /// Flag that enables the message.
    pub flags: Option<Arc<str>>,
    /// Function that logs the message.
    pub function: Option<Arc<str>>,
    /// Name of the traced component.
    pub module: Arc<str>,
    /// Source file, without a path.
    pub source_file: Option<Arc<str>>,
    /// Arguments in payload order.
    pub arguments: Vec<Argument>,
    pub(super) format: Format,
}

/// One argument of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Expression of the argument in the source code. The preprocessor may keep only a part of it.
    pub expression: Arc<str>,
    /// Index of the argument in the format string. The first argument has index 10.
    pub index: u16,
    /// Type of the argument.
    pub item: Item,
    /// Name of the type, as written in the TMF file but without parameters, such as `ItemLong`.
    pub item_name: Arc<str>,
}

/// A line that violates the TMF format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found `{found}`")]
pub struct TmfError {
    /// Number of the line. The first line is 1.
    pub line: usize,
    /// Description of the content that the parser expected.
    pub expected: &'static str,
    /// Start of the faulty line. It is empty if the fault is at the end of the text.
    pub found: String,
}

/// Parses the text of one TMF file, or of several TMF files one after another.
///
/// # Errors
///
/// Returns an error for the first line that violates the format.
pub fn parse_tmf(text: &str) -> Result<Vec<Tmf>, TmfError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = Lines {
        lines: text.lines().zip(1..).peekable(),
        last: 0,
    };
    let mut sections: Vec<Section<'_>> = Vec::new();
    while let Some((line, number)) = lines.next() {
        let mut words = line.splitn(2, char::is_whitespace);
        let (first, rest) = (
            words.next().unwrap_or(""),
            words.next().unwrap_or("").trim(),
        );
        match (first, sections.last_mut()) {
            ("#typev" | "#type", Some(section)) => {
                section
                    .messages
                    .push(RawMessage::parse(rest, number, &mut lines)?);
            }
            ("#enumv" | "#enum", Some(section)) => {
                let map = parse_enum(rest, &mut lines)?;
                section.enums.insert(rest, Arc::new(map));
            }
            _ => sections.push(Section::parse(first, rest).ok_or_else(|| {
                let expected = if sections.is_empty() {
                    "a GUID and the component's name"
                } else {
                    "`#typev`, `#enumv` or a GUID and the component's name"
                };
                error(number, expected, line)
            })?),
        }
    }
    Ok(sections.into_iter().map(Section::finish).collect())
}

/// Messages of any number of TMF files.
#[derive(Clone, Debug, Default)]
pub struct TmfSet {
    messages: HashMap<(Guid, u16), Arc<Message>>,
}

impl TmfSet {
    /// Adds the messages of a TMF text and returns their number. A new message replaces an existing message
    /// with the same GUID and number. A GUID identifies one version of one source file, so the old and the new
    /// message are equal.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`parse_tmf`]. In this case, no message is added.
    pub fn add(&mut self, text: &str) -> Result<usize, TmfError> {
        let tmfs = parse_tmf(text)?;
        let count = tmfs.iter().map(|tmf| tmf.messages.len()).sum();
        for tmf in tmfs {
            let messages = tmf.messages.into_iter();
            self.messages
                .extend(messages.map(|(number, message)| ((tmf.guid, number), message)));
        }
        Ok(count)
    }

    /// Returns the message with this number and GUID.
    pub fn message(&self, guid: Guid, number: u16) -> Option<&Arc<Message>> {
        self.messages.get(&(guid, number))
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns true if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

/// Parsed lines of one GUID's section. The `#enumv` blocks come last in a section. So the types of arguments
/// are resolved at the end of the section.
struct Section<'t> {
    guid: Guid,
    module: Arc<str>,
    source_file: Option<Arc<str>>,
    messages: Vec<RawMessage<'t>>,
    enums: HashMap<&'t str, Arc<ValueMap>>,
}

impl<'t> Section<'t> {
    fn parse(guid: &str, rest: &'t str) -> Option<Section<'t>> {
        let guid = guid.parse().ok()?;
        let (module, comment) = rest.split_once("//").unwrap_or((rest, ""));
        Some(Section {
            guid,
            module: module.trim().into(),
            source_file: key(comment, "SRC="),
            messages: Vec::new(),
            enums: HashMap::new(),
        })
    }

    fn finish(self) -> Tmf {
        let Section {
            guid,
            module,
            source_file,
            messages,
            enums,
        } = self;
        let finish = |raw: RawMessage<'t>| {
            let message = raw.finish(&module, &source_file, &enums);
            (message.number, Arc::new(message))
        };
        let messages = messages.into_iter().map(finish).collect();
        Tmf {
            guid,
            module,
            source_file,
            messages,
        }
    }
}

/// A message. The types of its arguments are not resolved yet.
struct RawMessage<'t> {
    number: u16,
    name: &'t str,
    template: String,
    comment: &'t str,
    arguments: Vec<RawArgument<'t>>,
}

struct RawArgument<'t> {
    expression: &'t str,
    item_name: &'t str,
    parameters: Option<&'t str>,
    index: u16,
}

impl<'t> RawMessage<'t> {
    /// Parses `NAME NUMBER "format" // LEVEL=…` and the block of arguments after it.
    fn parse(rest: &'t str, line: usize, lines: &mut Lines<'t>) -> Result<Self, TmfError> {
        const EXPECTED: &str = "`#typev NAME NUMBER \"format\"`";
        let header = || {
            let (name, rest) = rest.split_once(char::is_whitespace)?;
            let (number, rest) = rest.trim_start().split_once(char::is_whitespace)?;
            Some((
                name,
                number.parse().ok()?,
                rest.trim_start().strip_prefix('"')?,
            ))
        };
        let (name, number, rest) = header().ok_or_else(|| error(line, EXPECTED, rest))?;

        // A format string can contain line breaks. They appear as line breaks in the file.
        let mut template = String::new();
        let mut part = rest;
        let comment = loop {
            if let Some((end, comment)) = closing_quote(part) {
                template.push_str(end);
                break comment;
            }
            template.push_str(part);
            template.push('\n');
            part = lines.continuation("the end of the format, `\"`")?;
        };

        let mut arguments = Vec::new();
        if lines.block()? {
            while let Some((text, line)) = lines.in_block()? {
                const ARGUMENT: &str = "an argument as `expression, ItemLong -- 10`";
                if arguments.len() == MAX_ARGUMENTS {
                    return Err(error(line, "`}` after at most 256 arguments", text));
                }
                let argument = RawArgument::parse(text);
                arguments.push(argument.ok_or_else(|| error(line, ARGUMENT, text))?);
            }
        }
        Ok(RawMessage {
            number,
            name,
            template,
            comment,
            arguments,
        })
    }

    fn finish(
        self,
        module: &Arc<str>,
        source_file: &Option<Arc<str>>,
        enums: &HashMap<&str, Arc<ValueMap>>,
    ) -> Message {
        let level = key(self.comment, "LEVEL=");
        let flags = key(self.comment, "FLAGS=");
        let function = key(self.comment, "FUNC=");
        let context = [
            ("FUNC", function.as_deref()),
            ("LEVEL", level.as_deref()),
            ("FLAGS", flags.as_deref()),
            ("FILE", source_file.as_deref()),
        ];
        let format = Format::parse(&self.template, &context);
        let arguments = self.arguments.into_iter().map(|raw| {
            let item = Item::named(raw.item_name, raw.parameters, |name| {
                enums.get(name).cloned()
            });
            let conversion = format.conversion(raw.index).unwrap_or('s');
            Argument {
                expression: raw.expression.into(),
                index: raw.index,
                item: item.printed_by(conversion),
                item_name: raw.item_name.into(),
            }
        });
        Message {
            number: self.number,
            name: self.name.into(),
            arguments: arguments.collect(),
            template: self.template.into(),
            level,
            flags,
            function,
            module: module.clone(),
            source_file: source_file.clone(),
            format,
        }
    }
}

impl<'t> RawArgument<'t> {
    /// Parses `expression, ItemLong -- 10` from its end, because the expression can be any text.
    fn parse(line: &'t str) -> Option<RawArgument<'t>> {
        let (typed, index) = line.rsplit_once("--").or_else(|| line.rsplit_once("//"))?;
        let (typed, index) = (typed.trim(), index.trim().parse().ok()?);
        let (typed, parameters) = match typed.strip_suffix(')') {
            Some(open) => {
                let (typed, parameters) = open.split_at(opening_bracket(open)?);
                (typed, parameters.get(1..))
            }
            None => (typed, None),
        };
        let (expression, item_name) = typed.rsplit_once(',')?;
        let (expression, item_name) = (expression.trim(), item_name.trim());
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (!item_name.is_empty() && is_name(item_name)).then_some(RawArgument {
            expression,
            item_name,
            parameters,
            index,
        })
    }
}

/// Returns the offset of the last opening bracket in `text` that has no closing bracket.
fn opening_bracket(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return Some(at),
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits `format" // comment` at a quote. Uses the last quote that is followed only by a comment or by
/// nothing.
fn closing_quote(text: &str) -> Option<(&str, &str)> {
    text.rmatch_indices('"').find_map(|(at, _)| {
        let behind = text[at + 1..].trim_start();
        let comment = if behind.is_empty() {
            ""
        } else {
            behind.strip_prefix("//")?
        };
        Some((&text[..at], comment))
    })
}

/// Returns the value of the key `name` (such as `FUNC=`) in a comment. The value ends at the next key. It
/// does not end at a space, because the name of a C++ function can contain spaces. Returns `None` if the
/// value is empty.
fn key(comment: &str, name: &str) -> Option<Arc<str>> {
    const KEYS: [&str; 6] = ["LEVEL=", "FLAGS=", "FUNC=", "SRC=", "MJ=", "MN="];
    let starts = |key: &str, text: &str| {
        text.match_indices(key)
            .map(|(at, _)| at)
            .find(|at| *at == 0 || text[..*at].ends_with(char::is_whitespace))
    };
    let value = &comment[starts(name, comment)? + name.len()..];
    let end = KEYS
        .iter()
        .filter_map(|key| starts(key, value).filter(|at| *at > 0))
        .min();
    let value = value[..end.unwrap_or(value.len())].trim();
    let empty = value.is_empty() || KEYS.iter().any(|key| value.starts_with(key));
    (!empty).then(|| value.into())
}

/// Parses the block of `NAME,0x1` lines of an `#enumv`.
fn parse_enum(name: &str, lines: &mut Lines<'_>) -> Result<ValueMap, TmfError> {
    let mut entries = Vec::new();
    if lines.block()? {
        while let Some((text, line)) = lines.in_block()? {
            let entry = text.rsplit_once(',').and_then(|(name, value)| {
                let value = value.trim();
                let value = match value
                    .strip_prefix("0x")
                    .or_else(|| value.strip_prefix("0X"))
                {
                    Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                    // The values of an enumeration have 32 bits. So a negative value becomes a 32-bit two's
                    // complement.
                    None => match value.strip_prefix('-') {
                        Some(digits) => u64::from(digits.parse::<u32>().ok()?.wrapping_neg()),
                        None => value.parse().ok()?,
                    },
                };
                Some((value, Arc::from(name.trim())))
            });
            if entries.len() == MAX_ENUMERATORS {
                return Err(error(line, "`}` after at most 65536 enumerators", text));
            }
            entries.push(entry.ok_or_else(|| error(line, "an enumerator as `NAME,0x1`", text))?);
        }
    }
    Ok(ValueMap {
        name: name.into(),
        is_bitmap: false,
        entries,
    })
}

/// Iterator over the trimmed lines and their line numbers. Empty lines and comments are left out.
struct Lines<'t> {
    lines: Peekable<std::iter::Zip<std::str::Lines<'t>, std::ops::RangeFrom<usize>>>,
    last: usize,
}

impl<'t> Lines<'t> {
    fn next(&mut self) -> Option<(&'t str, usize)> {
        loop {
            let (line, number) = self.lines.next()?;
            let line = line.trim();
            self.last = number;
            if !line.is_empty() && !line.starts_with("//") {
                return Some((line, number));
            }
        }
    }

    /// Returns the next line. This line continues a format string. Returns an error if the line starts with
    /// `#`, `{` or `}`.
    fn continuation(&mut self, expected: &'static str) -> Result<&'t str, TmfError> {
        match self
            .lines
            .next_if(|(line, _)| !line.starts_with(['#', '{', '}']))
        {
            Some((line, number)) => {
                self.last = number;
                Ok(line)
            }
            None => {
                let (found, number) = self.next().unwrap_or(("", self.last.saturating_add(1)));
                Err(error(number, expected, found))
            }
        }
    }

    /// Skips the `{` that begins a block. Returns true if the block exists.
    fn block(&mut self) -> Result<bool, TmfError> {
        while self
            .lines
            .next_if(|(line, _)| line.trim().is_empty())
            .is_some()
        {}
        match self
            .lines
            .next_if(|(line, _)| line.trim_start().starts_with('{'))
        {
            Some((line, number)) if line.trim() != "{" => Err(error(number, "`{` alone", line)),
            Some((_, number)) => {
                self.last = number;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Returns the next line of a block. Returns `None` at the `}` that ends the block.
    fn in_block(&mut self) -> Result<Option<(&'t str, usize)>, TmfError> {
        match self.next() {
            Some((line, _)) if line.starts_with('}') => Ok(None),
            Some(line) => Ok(Some(line)),
            None => Err(error(self.last.saturating_add(1), "`}`", "")),
        }
    }
}

fn error(line: usize, expected: &'static str, found: &str) -> TmfError {
    TmfError {
        line,
        expected,
        found: found.trim().chars().take(80).collect(),
    }
}
