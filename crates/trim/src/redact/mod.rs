//! Redaction, which makes a trace safe to share: names and addresses become pseudonyms of the same
//! length.
//!
//! The schema of an event states the meaning of each value. Events without a schema are left out, and bytes of
//! unknown meaning within an event become zeros.

mod known_words;
mod pseudonyms;

use etl::write::Session;
use etl::{Event, HeaderKind, ext_type};
use events::ids::class::{SYS_CONFIG_EX, WINSAT};
use events::ids::hook;
use events::{Content, Decoder, Span};
use raw_events::EventKind;

use crate::TrimError;
use pseudonyms::Pseudonyms;

/// Redactor of events: replaces names and addresses by pseudonyms.
pub struct Redactor<'a> {
    decoder: &'a Decoder,
    pseudonyms: Pseudonyms,
    record: Vec<u8>,
}

impl<'a> Redactor<'a> {
    /// Creates a redactor whose key is derived from a secret text, or is random if `secret` is `None`.
    ///
    /// # Errors
    /// Returns an error if the secret is empty, or the system provides no random numbers.
    pub fn new(decoder: &'a Decoder, secret: Option<&str>) -> Result<Redactor<'a>, TrimError> {
        if secret == Some("") {
            return Err(TrimError::EmptySecret);
        }
        Ok(Redactor {
            decoder,
            pseudonyms: Pseudonyms::new(secret)?,
            record: Vec::new(),
        })
    }

    /// Redacts the names in the log-file header.
    pub fn redact_session(&self, session: &mut Session) {
        for name in [&mut session.name, &mut session.log_file] {
            *name = self.pseudonyms.of_text(name);
        }
    }

    /// Returns the record of the event without names and addresses, or `None` if the event must be
    /// left out.
    pub fn redact(&mut self, event: &Event<'_>) -> Option<&[u8]> {
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
            // Developers wrote these texts about their events, so the texts stay readable. Only installation paths
            // are removed.
            blank_attributes(&mut self.record[at..]);
            return Some(&self.record);
        }
        let spans = self
            .decoder
            .spans(event)
            .filter(|spans| spans.is_complete)?;
        for span in &spans.values {
            let bytes = &mut self.record[at + span.bytes.start..at + span.bytes.end];
            if span.content != Content::Opaque || event.hook() != Some(hook::COMPACT_CONTEXT_SWITCH)
            {
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
                // These items contain ids, counters, stacks, and texts that developers wrote. They stay unchanged.
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
        // The first four bytes are the address family and the port. They identify no machine.
        Content::SocketAddress => {
            pseudonyms.replace_address(bytes.get_mut(4..).unwrap_or_default());
        }
        Content::Opaque => bytes.fill(0),
        Content::Number if is_address(&span.name) => pseudonyms.replace_address(bytes),
        Content::Number => {}
    }
}

/// Returns true if a number with the field name `name` is probably a network address. The type of the number does not
/// show this, so the function guesses it from the name.
fn is_address(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["ipaddress", "ipv4", "ipv6", "macaddress"]
        .iter()
        .any(|part| name.contains(part))
}

/// Returns true if the event must be left out: it only describes the machine (its devices, services, users or
/// performance), or it is a WPP message. WPP messages have no schema.
fn is_about_the_machine(event: &Event<'_>) -> bool {
    const SYSTEM_CONFIG: u8 = 0x0B;
    match EventKind::new(event) {
        EventKind::Kernel { hook, .. } => hook.to_be_bytes()[0] == SYSTEM_CONFIG,
        EventKind::Classic { guid, .. } => {
            [SYS_CONFIG_EX, WINSAT].contains(&guid)
                || events::kernel::Class::of_guid(guid)
                    .is_some_and(|class| class.group == Some(SYSTEM_CONFIG))
        }
        _ => event.kind() == HeaderKind::Message,
    }
}

/// Returns true if the event describes other events. It is an EventMetadata event, or a chunk of an EventSource's
/// manifest. The first byte of a chunk is its format, 1. The fourth byte is 0x5B.
fn is_description(event: &Event<'_>) -> bool {
    events::is_metadata(event)
        && (event.descriptor().is_none() || matches!(event.payload(), [1, _, _, 0x5B, ..]))
}

/// Overwrites the values of XML attributes that contain file names.
fn blank_attributes(xml: &mut [u8]) {
    // A chunk of a manifest may begin inside an attribute's value. Then the bytes before the first quote are
    // overwritten too.
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

/// Returns the offset of `part`, which must be a slice of `record`.
fn offset(record: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - record.as_ptr() as usize
}
