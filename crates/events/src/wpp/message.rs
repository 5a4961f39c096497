//! Decoding of a message event: its arguments and its text.

use std::sync::Arc;

use super::format::Piece;
use super::tmf::{Argument, Message, TmfSet};
use super::words::hex;
use crate::Value;

/// Maximum length of a message's text in bytes. A payload has at most 64 KiB, but a format string may insert
/// the same argument many times.
const MAX_TEXT: usize = 1 << 20;

/// Maximum number of bytes that are shown for an argument with unknown type.
const MAX_UNKNOWN: usize = 64;

/// A decoded message event.
#[derive(Clone, Debug, PartialEq)]
pub struct WppMessage<'a> {
    /// Text of the message: the format string with the values of the arguments. An argument that cannot be
    /// read appears as `<ItemLong?>`. At the first such argument, the text also shows the remaining bytes of
    /// the payload.
    pub text: String,
    /// Source expression and value of each argument, in payload order. The first argument that cannot be read
    /// and all later arguments have the value [`Value::Null`].
    pub arguments: Vec<(Arc<str>, Value<'a>)>,
    /// Bytes of the payload after the last argument.
    pub tail: &'a [u8],
    /// Name of the message. It consists of the source file and the line, as in `driver_c14`.
    pub name: Arc<str>,
    /// Name of the traced component.
    pub module: Arc<str>,
    /// Source file, without a path.
    pub source_file: Option<Arc<str>>,
    /// Function that logged the message.
    pub function: Option<Arc<str>>,
    /// Trace level of the message. If the trace function has only flags, this is the flag of the message.
    pub level: Option<Arc<str>>,
    /// Flag that enables the message.
    pub flags: Option<Arc<str>>,
}

/// Decodes a message event. Returns `None` if `event` is not a message event, or if `tmf` does not contain
/// the message of the event.
pub fn decode<'a>(tmf: &TmfSet, event: &etl::Event<'a>) -> Option<WppMessage<'a>> {
    let message = tmf.message(event.guid()?, event.message_number()?)?;
    Some(decode_payload(
        message,
        event.payload(),
        event.pointer_size(),
    ))
}

/// Decodes `payload`. It is the payload of an event that logs `message`. `pointer_size` is 4 or 8 bytes.
pub fn decode_payload<'a>(
    message: &Message,
    payload: &'a [u8],
    pointer_size: usize,
) -> WppMessage<'a> {
    let mut tail = payload;
    let mut readable = true;
    let arguments = message.arguments.iter().map(|argument| {
        let value = if readable {
            argument.item.take(&mut tail, pointer_size)
        } else {
            None
        };
        // After an unreadable argument, the offset of the next argument is unknown.
        readable = value.is_some();
        (argument.expression.clone(), value.unwrap_or(Value::Null))
    });
    let arguments: Vec<_> = arguments.collect();

    let mut text = String::new();
    for piece in &message.format.pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Insert {
                index,
                spec,
                written,
            } => {
                let position = message.arguments.iter().position(|a| a.index == *index);
                let argument =
                    position.and_then(|i| Some((&message.arguments[i], arguments.get(i)?)));
                match argument {
                    None => text.push_str(written),
                    Some((argument, (_, Value::Null))) => {
                        let first = arguments.iter().position(|(_, v)| *v == Value::Null);
                        unreadable(
                            argument,
                            if position == first { tail } else { &[] },
                            &mut text,
                        );
                    }
                    Some((argument, (_, value))) => {
                        argument.item.write(value, spec, pointer_size, &mut text);
                    }
                }
            }
        }
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
            break;
        }
    }

    WppMessage {
        text,
        arguments,
        tail,
        name: message.name.clone(),
        module: message.module.clone(),
        source_file: message.source_file.clone(),
        function: message.function.clone(),
        level: message.level.clone(),
        flags: message.flags.clone(),
    }
}

/// Appends the text for an argument that cannot be read. The text has the type and the remaining bytes, as in
/// `<ItemFoo? 01 02>`.
fn unreadable(argument: &Argument, bytes: &[u8], text: &mut String) {
    text.push('<');
    text.push_str(&argument.item_name);
    text.push('?');
    if !bytes.is_empty() {
        text.push(' ');
        text.push_str(&hex(&bytes[..bytes.len().min(MAX_UNKNOWN)], " "));
        if bytes.len() > MAX_UNKNOWN {
            text.push_str(" …");
        }
    }
    text.push('>');
}
