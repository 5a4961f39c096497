//! Errors of the arguments.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue};

/// Commands that a build can lack. The value is true if this build has the command.
const OPTIONAL: [(&str, bool); 5] = [
    ("open", cfg!(feature = "open")),
    ("mcp", cfg!(feature = "mcp")),
    ("sql", cfg!(feature = "sql")),
    ("measure", cfg!(feature = "measure")),
    ("export", cfg!(feature = "export")),
];

/// Returns the text of an error, in the style of the other errors of this program.
pub(super) fn text(error: &Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let asked = context(ContextKind::InvalidSubcommand);
    if let Some(name) = asked.filter(|name| OPTIONAL.contains(&(name, false))) {
        return format!(
            "this build has no `{name}`: it was built without this command; build laglab with all commands \
             (cargo install --path crates/app)"
        );
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
