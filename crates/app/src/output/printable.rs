//! Text from a trace on a terminal: nothing in it may control the terminal.

use std::fmt::{self, Write};

/// Shows text with its control characters escaped.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if is_harmless(c) {
                f.write_char(c)?;
            } else {
                write!(f, "{}", c.escape_default())?;
            }
        }
        Ok(())
    }
}

/// Shows text so that it stands out as one value: in quotes where it is empty or holds anything
/// that could end a value.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = !self.0.is_empty()
            && !self
                .0
                .contains(|c: char| c.is_whitespace() || c == '"' || c == '=');
        if plain {
            return Printable(self.0).fmt(f);
        }
        f.write_char('"')?;
        for (i, part) in self.0.split('"').enumerate() {
            if i > 0 {
                f.write_str("\\\"")?;
            }
            Printable(part).fmt(f)?;
        }
        f.write_char('"')
    }
}

/// Neither a control character nor one that turns the direction of writing.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_cannot_control_the_terminal() {
        assert_eq!(
            Printable("a\x1b[2Jb\r\u{202e}").to_string(),
            "a\\u{1b}[2Jb\\r\\u{202e}"
        );
        assert_eq!(Printable("Zoë.exe").to_string(), "Zoë.exe");
    }

    #[test]
    fn values_end_where_they_end() {
        assert_eq!(Quoted(r"C:\Windows").to_string(), r"C:\Windows");
        assert_eq!(Quoted("").to_string(), "\"\"");
        assert_eq!(Quoted("a \"b\"").to_string(), r#""a \"b\"""#);
        assert_eq!(Quoted("a=b").to_string(), "\"a=b\"");
    }
}
