//! Making a trace fit to be shared: names and addresses become pseudonyms of the same length.
//!
//! What a value is, the event's description says. What nothing describes is never passed on: whole
//! events are left out, and bytes of unknown meaning inside an event become zeros.

mod known;
mod pseudonyms;

use etl::write::Session;
use etl::{Event, Guid, HeaderKind, ext_type};
use events::{Content, Decoder, Span};

use crate::key::Key;
use pseudonyms::Pseudonyms;

const WINSAT: Guid = Guid::new(
    0xed54_dff8,
    0xc409,
    0x4cf6,
    [0xbf, 0x83, 0x05, 0xe1, 0xe6, 0x1a, 0x09, 0xc4],
);

/// Hook of compact context switches, whose bytes are switches packed: numbers only.
const COMPACT_SWITCHES: u16 = 0x0525;

/// Writes pseudonyms over names and addresses.
pub(crate) struct Redactor<'a> {
    decoder: &'a Decoder,
    pseudonyms: Pseudonyms,
    record: Vec<u8>,
}

impl<'a> Redactor<'a> {
    /// A redactor with the key that a secret text makes, or with a random one.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub(crate) fn new(decoder: &'a Decoder, secret: Option<&str>) -> Result<Redactor<'a>, String> {
        if secret == Some("") {
            return Err("--redact-key: an empty secret is known to everybody".to_owned());
        }
        Ok(Redactor {
            decoder,
            pseudonyms: Pseudonyms::new(secret)?,
            record: Vec::new(),
        })
    }

    /// Redacts what the log's header says.
    pub(crate) fn redact_session(&self, session: &mut Session) {
        for name in [&mut session.name, &mut session.log_file] {
            *name = self.pseudonyms.of_text(name);
        }
    }

    /// The event's record without names and addresses; `None` if it must be left out.
    pub(crate) fn redact(&mut self, event: &Event<'_>) -> Option<&[u8]> {
        if is_about_the_machine(event) {
            return None;
        }
        self.record.clear();
        self.record.extend_from_slice(event.record());
        self.redact_items(event);
        let payload = event.payload();
        if payload.is_empty() {
            return Some(&self.record);
        }
        let at = offset(event.record(), payload);
        if is_description(event) {
            // What developers wrote about their events, but for where they installed them.
            blank_attributes(&mut self.record[at..]);
            return Some(&self.record);
        }
        let spans = self
            .decoder
            .spans(event)
            .filter(|spans| spans.is_complete)?;
        for span in &spans.values {
            let bytes = &mut self.record[at + span.bytes.start..at + span.bytes.end];
            if span.content != Content::Opaque || event.hook() != Some(COMPACT_SWITCHES) {
                redact_value(&self.pseudonyms, span, bytes);
            }
        }
        self.record[at + spans.tail..].fill(0);
        Some(&self.record)
    }

    fn redact_items(&mut self, event: &Event<'_>) {
        for item in event.extended_items() {
            let at = offset(event.record(), item.data);
            let data = &mut self.record[at..at + item.data.len()];
            match item.ext_type {
                ext_type::SID => self.pseudonyms.replace_sid(data),
                // Ids, counters, stacks, and what developers wrote.
                1 | 3..=15 | 17..=18 => {}
                _ => data.fill(0),
            }
        }
    }
}

fn redact_value(pseudonyms: &Pseudonyms, span: &Span, bytes: &mut [u8]) {
    match span.content {
        Content::Utf16 => pseudonyms.replace_utf16(bytes),
        Content::Ansi => pseudonyms.replace_ansi(bytes),
        Content::Sid => pseudonyms.replace_sid(bytes),
        Content::IpAddress => pseudonyms.replace_address(bytes),
        // Family and port identify nobody.
        Content::SocketAddress => {
            pseudonyms.replace_address(bytes.get_mut(4..).unwrap_or_default());
        }
        Content::Opaque => bytes.fill(0),
        Content::Number if is_address(&span.name) => pseudonyms.replace_address(bytes),
        Content::Number => {}
    }
}

/// Whether a number of that name is a network address, though its type does not say so. The names
/// are our guess.
fn is_address(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["ipaddress", "ipv4", "ipv6", "macaddress"]
        .iter()
        .any(|part| name.contains(part))
}

/// Whether the event tells of the machine alone: its devices, services, users, performance.
fn is_about_the_machine(event: &Event<'_>) -> bool {
    const SYSTEM_CONFIG: u8 = 0x0B;
    match Key::of(event) {
        Key::Kernel { hook, .. } => hook.to_be_bytes()[0] == SYSTEM_CONFIG,
        Key::Classic { guid, .. } => {
            [super::context::SYS_CONFIG_EX, WINSAT].contains(&guid)
                || events::kernel::Class::of_guid(guid)
                    .is_some_and(|class| class.group == Some(SYSTEM_CONFIG))
        }
        _ => event.kind() == HeaderKind::Message,
    }
}

/// Whether the event describes others: an EventMetadata event, or a chunk of an EventSource's
/// manifest, which begins with its format, 1, and has 0x5B as its fourth byte.
fn is_description(event: &Event<'_>) -> bool {
    events::is_metadata(event)
        && (event.descriptor().is_none() || matches!(event.payload(), [1, _, _, 0x5B, ..]))
}

/// Writes over the values of attributes that name files.
fn blank_attributes(xml: &mut [u8]) {
    // A manifest comes in chunks, and one may begin within a value.
    let quote = xml.iter().position(|byte| *byte == b'"').unwrap_or(0);
    if !xml[..quote].iter().any(|byte| b"<>=".contains(byte)) {
        xml[..quote].fill(b'x');
    }
    for name in [&b"FileName=\""[..], b"filename=\""] {
        let mut at = 0;
        while let Some(found) = xml[at..].windows(name.len()).position(|part| part == name) {
            at += found + name.len();
            while at < xml.len() && xml[at] != b'"' {
                xml[at] = b'x';
                at += 1;
            }
        }
    }
}

/// Where `part`, a part of `record`, begins in it.
fn offset(record: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - record.as_ptr() as usize
}
