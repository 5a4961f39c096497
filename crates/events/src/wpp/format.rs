//! Format strings of messages. They consist of literal text and inserts such as `%10!05d!`.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum width and maximum precision of an insert. Larger values are reduced to this maximum. A TMF file is
/// untrusted input. Without this limit, a few bytes of the file could require much memory for padding.
const MAX_PADDING: usize = 512;

/// Maximum number of inserts in a format string. Further inserts stay as written in the TMF file. Real
/// messages have far fewer inserts. This maximum limits the work per event.
const MAX_INSERTS: usize = 256;

/// A parsed format string.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Format {
    pub(super) pieces: Vec<Piece>,
}

/// One piece of a format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Literal text.
    Text(String),
    /// A placeholder. The value of an argument replaces it.
    Insert {
        /// Index of the argument in the TMF file. The first argument has index 10.
        index: u16,
        /// Format of the value.
        spec: Spec,
        /// Source text of the placeholder, such as `%10!d!`. This text is shown if the message has no such
        /// argument.
        written: String,
    },
}

impl Format {
    /// Parses `text`. `context` has names and values that do not depend on the event, such as
    /// `("FUNC", Some("main"))` for `%!FUNC!`. Inserts with unknown names stay as written.
    pub(super) fn parse(text: &str, context: &[(&str, Option<&str>)]) -> Format {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut inserts = 0;
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            literal.push_str(&rest[..at]);
            let insert = &rest[at..];
            let after = &insert[1..];
            rest = if let Some(behind) = after.strip_prefix('%') {
                literal.push('%');
                behind
            } else if let Some(behind) = after.strip_prefix('0') {
                // `%0` stands for a prefix that viewers add to every message. The decoder adds no prefix, so `%0` is
                // dropped.
                behind
            } else if let Some((name, behind)) = delimited(after) {
                match context.iter().find(|(known, _)| *known == name) {
                    Some((_, Some(value))) => literal.push_str(value),
                    _ => literal.push_str(&insert[..insert.len() - behind.len()]),
                }
                behind
            } else if let Some((index, spec, behind)) =
                numbered(after).filter(|_| inserts < MAX_INSERTS)
            {
                inserts += 1;
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                let written = insert[..insert.len() - behind.len()].to_owned();
                pieces.push(Piece::Insert {
                    index,
                    spec,
                    written,
                });
                behind
            } else {
                literal.push('%');
                after
            };
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Format { pieces }
    }

    /// Returns the `printf` conversion character (`d`, `s`, …) of the first insert of argument
    /// `index`.
    pub(super) fn conversion(&self, index: u16) -> Option<char> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Insert { index: i, spec, .. } if *i == index => Some(spec.conversion),
            _ => None,
        })
    }
}

/// Splits `10!05d!behind` into the argument index, the format and the text `behind`. If the text has no
/// format, as in `10behind`, the index has at most two digits. `FormatMessage` has the same rule.
fn numbered(text: &str) -> Option<(u16, Spec, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, behind) = text.split_at(digits);
    match delimited(behind) {
        Some((spec, behind)) => Some((number.parse().ok()?, Spec::parse(spec), behind)),
        None => {
            let (number, behind) = text.split_at(digits.min(2));
            Some((number.parse().ok()?, Spec::default(), behind))
        }
    }
}

/// Splits `!inside!behind` into the texts `inside` and `behind`.
fn delimited(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('!')?.split_once('!')
}

/// Format of an insert: a `printf` conversion. The conversion has no length modifiers, because the argument's
/// type defines the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    pub(super) conversion: char,
}

impl Default for Spec {
    /// Returns the conversion `s`, which `FormatMessage` uses for an insert without a
    /// specification.
    fn default() -> Spec {
        Spec {
            left: false,
            plus: false,
            space: false,
            alternate: false,
            zero: false,
            width: 0,
            precision: None,
            conversion: 's',
        }
    }
}

impl Spec {
    /// Parses `[flags][width][.precision][length]conversion`. If the text is invalid, returns the conversion
    /// `s` without options.
    fn parse(text: &str) -> Spec {
        let mut spec = Spec::default();
        let mut chars = text.chars().peekable();
        while let Some(flag) = chars.next_if(|c| "-+ #0".contains(*c)) {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.alternate = true,
                _ => spec.zero = true,
            }
        }
        spec.width = number(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut chars));
        }
        // This skips the length modifiers: h hh l ll L w z t j and Microsoft's I, I32, I64.
        while chars
            .next_if(|c| "hlLwztjI0123456789".contains(*c))
            .is_some()
        {}
        match (chars.next(), chars.next()) {
            (Some(conversion), None) if "diuxXopcCsSfFeEgG".contains(conversion) => {
                spec.conversion = conversion;
                spec
            }
            _ => Spec::default(),
        }
    }

    /// Appends `text`. The text is cut to the precision and padded to the width.
    pub(super) fn write_text(&self, text: &str, out: &mut String) {
        match self.precision.and_then(|p| text.char_indices().nth(p)) {
            Some((end, _)) => self.pad("", &text[..end], false, out),
            None => self.pad("", text, false, out),
        }
    }

    /// Appends the integer that is in the lowest `bytes` bytes of `value`.
    pub(super) fn write_integer(&self, value: u64, bytes: u8, out: &mut String) {
        let unused = 64 - 8 * u32::from(bytes.clamp(1, 8));
        let unsigned = value << unused >> unused;
        let signed = (value << unused) as i64 >> unused;
        let mut spec = *self;
        let (prefix, digits) = match self.conversion {
            'u' => ("", unsigned.to_string()),
            'x' => (
                if self.alternate && unsigned != 0 {
                    "0x"
                } else {
                    ""
                },
                format!("{unsigned:x}"),
            ),
            'X' => (
                if self.alternate && unsigned != 0 {
                    "0X"
                } else {
                    ""
                },
                format!("{unsigned:X}"),
            ),
            'o' => (
                if self.alternate && unsigned != 0 {
                    "0"
                } else {
                    ""
                },
                format!("{unsigned:o}"),
            ),
            'p' => {
                spec.precision = Some(2 * usize::from(bytes));
                ("", format!("{unsigned:X}"))
            }
            'c' | 'C' => {
                let unit = char::from_u32(unsigned as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                return self.pad("", unit.encode_utf8(&mut [0; 4]), false, out);
            }
            _ => (self.sign(signed < 0), signed.unsigned_abs().to_string()),
        };
        // As in C, a precision is the minimum number of digits. If there is a precision, padding with
        // `0` is disabled.
        let missing = spec.precision.unwrap_or(0).saturating_sub(digits.len());
        let digits = "0".repeat(missing) + &digits;
        spec.pad(prefix, &digits, spec.precision.is_none(), out);
    }

    /// Appends a floating-point number. If the conversion is not for floating-point numbers, uses `%g`.
    pub(super) fn write_float(&self, value: f64, out: &mut String) {
        let magnitude = value.abs();
        let mut digits = match self.conversion.to_ascii_lowercase() {
            _ if !value.is_finite() => if value.is_nan() { "nan" } else { "inf" }.to_owned(),
            'f' => format!("{magnitude:.*}", self.precision.unwrap_or(6)),
            'e' => exponential(magnitude, self.precision.unwrap_or(6)),
            _ => general(
                magnitude,
                self.precision.unwrap_or(6).max(1),
                self.alternate,
            ),
        };
        if self.conversion.is_ascii_uppercase() {
            digits.make_ascii_uppercase();
        }
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        self.pad(sign, &digits, value.is_finite(), out);
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    /// Appends `prefix` and `text`, padded to the width. If the spec requires zeros and `zeros` is true, the
    /// padding is zeros between `prefix` and `text`. Otherwise, the padding is spaces.
    fn pad(&self, prefix: &str, text: &str, zeros: bool, out: &mut String) {
        let missing = match self.width {
            0 => 0,
            width => width.saturating_sub(prefix.len() + text.chars().count()),
        };
        let (before, between, behind) = match (self.left, self.zero && zeros) {
            (true, _) => (0, 0, missing),
            (false, true) => (0, missing, 0),
            (false, false) => (missing, 0, 0),
        };
        out.extend(std::iter::repeat_n(' ', before));
        out.push_str(prefix);
        out.extend(std::iter::repeat_n('0', between));
        out.push_str(text);
        out.extend(std::iter::repeat_n(' ', behind));
    }
}

/// Reads a decimal number. If the number is larger than [`MAX_PADDING`], returns [`MAX_PADDING`].
fn number(chars: &mut Peekable<Chars<'_>>) -> usize {
    let mut value: usize = 0;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        value = (value * 10 + digit as usize).min(MAX_PADDING);
    }
    value
}

/// Formats like C's `%e`: the exponent has a sign and at least two digits.
fn exponential(magnitude: f64, precision: usize) -> String {
    let text = format!("{magnitude:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
            Some(digits) => format!("{mantissa}e-{digits:0>2}"),
            None => format!("{mantissa}e+{exponent:0>2}"),
        },
        None => text,
    }
}

/// Formats like C's `%g`, with `precision` significant digits. If the exponent is below -4 or at least
/// `precision`, uses the `%e` style. Otherwise, uses the `%f` style. Removes trailing zeros unless
/// `keep_zeros` is true.
fn general(magnitude: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponential(magnitude, precision - 1);
    let exponent: i64 = scientific
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    let fixed = usize::try_from(precision as i64 - 1 - exponent)
        .ok()
        .filter(|_| exponent >= -4);
    let trim = |text: &str| {
        if text.contains('.') && !keep_zeros {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    match (fixed, scientific.split_once('e')) {
        (None, Some((mantissa, exponent))) => format!("{}e{exponent}", trim(mantissa)),
        (decimals, _) => trim(&format!("{magnitude:.*}", decimals.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(spec: &str, value: i64, bytes: u8) -> String {
        let mut out = String::new();
        Spec::parse(spec).write_integer(value as u64, bytes, &mut out);
        out
    }

    fn float(spec: &str, value: f64) -> String {
        let mut out = String::new();
        Spec::parse(spec).write_float(value, &mut out);
        out
    }

    fn text(spec: &str, value: &str) -> String {
        let mut out = String::new();
        Spec::parse(spec).write_text(value, &mut out);
        out
    }

    /// The expected texts are the output of C's `printf`.
    #[test]
    fn integers_print_as_in_c() {
        assert_eq!(integer("d", -1000, 4), "-1000");
        assert_eq!(integer("u", -1, 4), "4294967295");
        assert_eq!(integer("x", -1, 2), "ffff");
        assert_eq!(integer("I64x", -1, 8), "ffffffffffffffff");
        assert_eq!(integer("05d", -42, 4), "-0042");
        assert_eq!(integer("-6d", 42, 4) + "|", "42    |");
        assert_eq!(integer("+d", 42, 4), "+42");
        assert_eq!(integer(" d", 42, 4), " 42");
        assert_eq!(integer("#x", 255, 4), "0xff");
        assert_eq!(integer("#06X", 255, 4), "0X00FF");
        assert_eq!(integer("#o", 8, 4), "010");
        assert_eq!(integer("8.3d", 7, 4), "     007");
        assert_eq!(integer("08.3d", 7, 4), "     007");
        assert_eq!(integer("hd", 65535, 2), "-1");
        assert_eq!(integer("lld", i64::MIN, 8), "-9223372036854775808");
        assert_eq!(integer("c", 65, 1), "A");
    }

    #[test]
    fn floats_print_as_in_c() {
        assert_eq!(float("g", 0.0), "0");
        assert_eq!(float("g", 100000.0), "100000");
        assert_eq!(float("g", 1e6), "1e+06");
        assert_eq!(float("g", 0.0001), "0.0001");
        assert_eq!(float("g", 0.00001234), "1.234e-05");
        assert_eq!(float("g", 999999.5), "1e+06");
        assert_eq!(float("s", 3.140625), "3.14062");
        assert_eq!(float("f", -2.5), "-2.500000");
        assert_eq!(float("08.2f", -2.5), "-0002.50");
        assert_eq!(float(".3e", 12345.0), "1.234e+04");
        assert_eq!(float("G", 1e-7), "1E-07");
        assert_eq!(float("#g", 1.0), "1.00000");
        assert_eq!(float("f", f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn text_is_cut_and_padded_by_characters() {
        assert_eq!(text("s", "né"), "né");
        assert_eq!(text(".1s", "éa"), "é");
        assert_eq!(text("4s", "né"), "  né");
        assert_eq!(text("-4ws", "né"), "né  ");
        assert_eq!(text("?", "né"), "né");
    }

    #[test]
    fn paddings_are_clamped() {
        assert_eq!(integer("99999999999999999999999d", 1, 4).len(), MAX_PADDING);
        assert_eq!(integer(".99999999999d", 1, 4).len(), MAX_PADDING);
        assert_eq!(float("999999.999999f", 1.0).len(), MAX_PADDING + 2);
    }

    #[test]
    fn pieces_of_a_format() {
        let context = [("FUNC", Some("main")), ("LEVEL", None)];
        let format = Format::parse("%0100%% %!FUNC! %!LEVEL! %10!5d!, %117 50%", &context);
        let text = |text: &str| Piece::Text(text.to_owned());
        let insert = |index, spec, written: &str| Piece::Insert {
            index,
            spec: Spec::parse(spec),
            written: written.to_owned(),
        };
        assert_eq!(
            format.pieces,
            [
                text("100% main %!LEVEL! "),
                insert(10, "5d", "%10!5d!"),
                text(", "),
                insert(11, "s", "%11"),
                text("7 50%"),
            ]
        );
    }
}
