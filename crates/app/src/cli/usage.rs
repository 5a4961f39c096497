//! Errors of the arguments.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

/// Commands that a build can lack. The value is true if this build has the command.
const OPTIONAL: [(&str, bool); 5] = [
    ("open", cfg!(feature = "open")),
    ("mcp", cfg!(feature = "mcp")),
    ("sql", cfg!(feature = "sql")),
    ("measure", cfg!(feature = "measure")),
    ("export", cfg!(feature = "export")),
];

/// Returns advice about the word in the place of the command: it is a file, or a command of another command, such as
/// `compare` of `prove`. `program` is the whole program. Returns `None` for other words.
fn advice(word: &str, program: &Command) -> Option<String> {
    if Path::new(word).is_file() {
        return Some(format!(
            "this is a file; `laglab explain {word}` says why its machine lagged"
        ));
    }
    let mut parents = program.get_subcommands();
    let parent = parents.find(|parent| parent.find_subcommand(word).is_some())?;
    Some(format!(
        "the command is `laglab {} {word}`",
        parent.get_name()
    ))
}

/// Returns the text of an error, in the style of the other errors of this program. `program` is the whole program.
pub(super) fn text(error: &Error, program: &Command) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let name = context(ContextKind::InvalidSubcommand);
    if let Some(name) = name.filter(|name| OPTIONAL.contains(&(name, false))) {
        return format!(
            "this build has no `{name}`: it was built without this command; build laglab with all commands \
             (cargo install --path crates/app)"
        );
    }
    if let Some((word, advice)) = name.and_then(|word| Some((word, advice(word, program)?))) {
        return format!("there is no command `{word}`: {advice}");
    }
    let cause = error.source().and_then(|it| it.downcast_ref());
    if let (Some(option), Some(value), Some(cause)) = (
        context(ContextKind::InvalidArg),
        context(ContextKind::InvalidValue),
        cause,
    ) {
        return format!("{option}: {value} is {}", integer(cause));
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.trim_end().to_owned()
}

/// Returns the reason why a text is no integer of the expected type.
fn integer(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            "out of range; give a smaller number"
        }
        _ => "no whole number of 0 or more",
    }
}
