//! Decoding of a message event: its arguments and its text.

use std::sync::Arc;

use super::format::Piece;
use super::tmf::{Argument, Message, TmfSet};
use super::words::hex;
use crate::Value;

/// Longest text that is made of a message, in bytes. A payload has at most 64 KiB, but a format
/// may insert an argument any number of times.
const MAX_TEXT: usize = 1 << 20;

/// Most bytes shown of an argument whose type is unknown.
const MAX_UNKNOWN: usize = 64;

/// What a message event says.
#[derive(Clone, Debug, PartialEq)]
pub struct WppMessage<'a> {
    /// The message, its arguments put into its format string. An argument that cannot be read
    /// shows as `<ItemLong?>`; one of unknown type with the bytes from there on.
    pub text: String,
    /// The source's expression of each argument and its value, in payload order;
    /// [`Value::Null`] from the first that cannot be read.
    pub arguments: Vec<(Arc<str>, Value<'a>)>,
    /// Bytes of the payload that no argument took.
    pub tail: &'a [u8],
    /// The message's name: source file and line, as in `driver_c14`.
    pub name: Arc<str>,
    /// Name of the traced component.
    pub module: Arc<str>,
    /// Source file, without a path.
    pub source_file: Option<Arc<str>>,
    /// Function that traced it.
    pub function: Option<Arc<str>>,
    /// Level, or the flag when the trace function has flags only.
    pub level: Option<Arc<str>>,
    /// Flag that enables the message.
    pub flags: Option<Arc<str>>,
}

/// Decodes a message event; `None` when the event is of another kind, or `tmf` lacks its message.
pub fn decode<'a>(tmf: &TmfSet, event: &etl::Event<'a>) -> Option<WppMessage<'a>> {
    let message = tmf.message(event.guid()?, event.message_number()?)?;
    Some(decode_payload(
        message,
        event.payload(),
        event.pointer_size(),
    ))
}

/// Decodes the payload of an event of this message. `pointer_size` is 4 or 8 bytes.
pub fn decode_payload<'a>(
    message: &Message,
    payload: &'a [u8],
    pointer_size: usize,
) -> WppMessage<'a> {
    let mut tail = payload;
    let mut readable = true;
    let arguments = message.arguments.iter().map(|argument| {
        let value = match readable {
            true => argument.item.take(&mut tail, pointer_size),
            false => None,
        };
        // Where one argument ends unknown, nobody knows where the next begins.
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
                let found = position.and_then(|i| Some((&message.arguments[i], arguments.get(i)?)));
                match found {
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

/// Appends `<ItemFoo? 01 02>`.
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
