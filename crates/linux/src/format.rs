//! Layouts of the data of tracepoints. The recording contains a description of each layout.

use std::collections::HashSet;

use crate::bytes::{Order, until_zero};

/// Layout of the data of one tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Id of the tracepoint. It differs between kernels.
    pub id: u16,
    /// Subsystem of the tracepoint, for example `sched`.
    pub system: String,
    /// Name of the tracepoint within the subsystem, for example `sched_switch`.
    pub name: String,
    /// Fields in the order of the description.
    pub fields: Vec<Field>,
    /// Text after `print fmt:`: a format of `printf` in quotes and its arguments. Empty if there is none.
    pub(crate) printed: String,
}

/// One field of a tracepoint's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Type of the field in C, without the field's name and an array length.
    pub type_name: String,
    /// Offset of the field in the data, in bytes.
    pub offset: usize,
    /// Size of the field in bytes.
    pub size: usize,
    /// True if a number in the field is signed.
    pub is_signed: bool,
    /// True if the field is an array.
    pub is_array: bool,
    /// True if the kernel prints the number in hexadecimal.
    pub is_hexadecimal: bool,
}

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'d> {
    /// Signed number.
    Signed(i64),
    /// Unsigned number.
    Unsigned(u64),
    /// Unsigned number that the kernel prints in hexadecimal, for example an address.
    Hexadecimal(u64),
    /// Text, without zero bytes.
    Text(&'d [u8]),
    /// Data that is neither a number nor a text.
    Bytes(&'d [u8]),
}

impl Field {
    /// Returns true if the field contains only the offset and the length of a value (`__data_loc`, `__rel_loc`). The
    /// value itself is at another place of the tracepoint's data.
    pub fn is_elsewhere(&self) -> bool {
        self.place().contents != Contents::Value
    }

    /// Returns where the value of the field is in the data.
    pub(crate) fn place(&self) -> Place {
        Place {
            offset: self.offset,
            size: self.size,
            is_signed: self.is_signed,
            contents: match &*self.type_name {
                name if name.starts_with("__data_loc") => Contents::Offset,
                name if name.starts_with("__rel_loc") => Contents::RelativeOffset,
                _ => Contents::Value,
            },
        }
    }

    /// Returns the value; `None` if the data is too short.
    pub(crate) fn value<'d>(&self, data: &'d [u8], order: Order) -> Option<FieldValue<'d>> {
        let place = self.place();
        if place.contents != Contents::Value || self.is_array {
            return Some(if self.type_name.contains("char") {
                FieldValue::Text(place.text(data, order)?)
            } else {
                FieldValue::Bytes(place.content(data, order)?)
            });
        }
        let Some(number) = place.number(data, order) else {
            return place.bytes(data).map(FieldValue::Bytes);
        };
        Some(match (self.is_signed, self.is_hexadecimal) {
            (false, true) => FieldValue::Hexadecimal(number.cast_unsigned()),
            (false, false) => FieldValue::Unsigned(number.cast_unsigned()),
            (true, _) => FieldValue::Signed(number),
        })
    }
}

/// Place of a field's value in the data of a tracepoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Offset of the field in bytes.
    offset: usize,
    /// Size of the field in bytes.
    size: usize,
    is_signed: bool,
    contents: Contents,
}

/// Contents of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    Value,
    /// Offset and length of the value (`__data_loc`). The offset counts from the start of the data.
    Offset,
    /// Offset and length of the value (`__rel_loc`). The offset counts from the end of the field.
    RelativeOffset,
}

impl Place {
    /// Returns the same place at another offset.
    pub(crate) fn moved_to(self, offset: usize) -> Place {
        Place { offset, ..self }
    }

    /// Returns the number in the field. Returns `None` if the data is too short, or if the field does not have 1, 2,
    /// 4 or 8 bytes.
    #[inline]
    pub(crate) fn number(&self, data: &[u8], order: Order) -> Option<i64> {
        let bytes = self.bytes(data)?;
        let sign = |value: u64, bits: u32| {
            if self.is_signed {
                (value << (64 - bits)).cast_signed() >> (64 - bits)
            } else {
                value.cast_signed()
            }
        };
        Some(match *bytes {
            [byte] => sign(byte.into(), 8),
            [a, b] => sign(order.u16([a, b]).into(), 16),
            [a, b, c, d] => sign(order.u32([a, b, c, d]).into(), 32),
            _ => order.u64(bytes.try_into().ok()?).cast_signed(),
        })
    }

    /// Returns the text in the field up to its first zero byte. Returns `None` if the data is too short.
    pub(crate) fn text<'d>(&self, data: &'d [u8], order: Order) -> Option<&'d [u8]> {
        self.content(data, order).map(until_zero)
    }

    /// Returns the data of the field, which may be at another place of the event. Returns `None` if the event is too
    /// short.
    #[inline]
    pub(crate) fn content<'d>(&self, data: &'d [u8], order: Order) -> Option<&'d [u8]> {
        let base = match self.contents {
            Contents::Value => return self.bytes(data),
            Contents::Offset => 0,
            Contents::RelativeOffset => self.offset.checked_add(self.size)?,
        };
        // The low half has the offset, the high half the length.
        let place = self.number(data, order)?.cast_unsigned();
        let (offset, len) = ((place & 0xFFFF) as usize, (place >> 16 & 0xFFFF) as usize);
        data.get(base.checked_add(offset)?..)?.get(..len)
    }

    /// Returns the bytes of the field. Returns `None` if the data is too short.
    pub(crate) fn bytes<'d>(&self, data: &'d [u8]) -> Option<&'d [u8]> {
        data.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

impl Format {
    /// Returns the field called `name`, if it exists.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Parses the text of a `format` file of tracefs. Returns `None` if the text has no id or no name.
    pub(crate) fn parse(system: &str, text: &str) -> Option<Format> {
        let mut format = Format {
            id: 0,
            system: system.to_owned(),
            name: String::new(),
            fields: Vec::new(),
            printed: String::new(),
        };
        let mut id = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name: ") {
                format.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID: ") {
                id = number.trim().parse().ok();
            } else if let Some(field) = parse_field(line) {
                format.fields.push(field);
            } else if let Some(printed) = line.strip_prefix("print fmt:") {
                format.printed = printed.to_owned();
                let hexadecimal = hexadecimal_fields(printed);
                for field in &mut format.fields {
                    field.is_hexadecimal |= hexadecimal.contains(&*field.name);
                }
                break;
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }
}

/// Parses a line such as `field:pid_t next_pid; offset:56; size:4; signed:1;`.
pub(crate) fn parse_field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let mut value = |key: &str| {
        parts
            .next()?
            .strip_prefix(key)?
            .trim()
            .parse::<usize>()
            .ok()
    };
    let (offset, size) = (value("offset:")?, value("size:")?);
    let is_signed = value("signed:").unwrap_or(0) != 0;
    // The length of an array comes after its name, as in `char prev_comm[16]`.
    let (declaration, is_array) = match declaration.strip_suffix(']') {
        Some(array) => (array.rsplit_once('[')?.0.trim_end(), true),
        None => (declaration, false),
    };
    let at = declaration.rfind(|c: char| c.is_whitespace() || c == '*')?;
    let (type_name, name) = declaration.split_at(at + 1);
    let type_name = type_name.trim_end();
    Some(Field {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        offset,
        size,
        is_signed,
        is_array,
        is_hexadecimal: type_name.ends_with('*'),
    })
}

/// Returns the names of the fields that the kernel prints as an address or in hexadecimal. `printed` is the text after
/// `print fmt:`. It consists of a format of `printf` in quotes and its arguments: `"address=%ps error_code=0x%lx",
/// (void *)REC->address, REC->error_code`.
fn hexadecimal_fields(printed: &str) -> HashSet<&str> {
    let text = printed.trim_start().strip_prefix('"');
    let Some((format, arguments)) = text.and_then(|text| text.split_once('"')) else {
        return HashSet::new();
    };
    let pieces = format.replace("%%", "");
    let conversions = pieces.split('%').skip(1).map(|conversion| {
        let flags = |c: char| c.is_ascii_digit() || "#-+ .lhzjtL".contains(c);
        conversion
            .trim_start_matches(flags)
            .starts_with(['x', 'X', 'p'])
    });
    let arguments = conversions.zip(split_arguments(arguments));
    let hexadecimal = arguments.filter_map(|(is_hexadecimal, argument)| {
        // Casts and parentheses may surround the field. In any other expression, the text after `REC->` is not the name
        // of a field, so it matches no field.
        let (_, name) = argument.rsplit_once("REC->").filter(|_| is_hexadecimal)?;
        Some(name.trim_end_matches([')', ' ']))
    });
    hexadecimal.collect()
}

/// Splits the arguments of a call at the commas that are not in parentheses or braces.
fn split_arguments(arguments: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let is_end = move |c: char| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    arguments.split(is_end).skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Description of a tracepoint in the form that the kernel's documentation shows
    /// (`Documentation/trace/events.rst`).
    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:const char * name;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long flags;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long count;\toffset:48;\tsize:8;\tsigned:0;\n\
        \nprint fmt: \"100%% %s %d field:fake x;\toffset:1; %08lx %lu\", REC->prev_comm, f(1, REC->prev_pid), \
        ((unsigned long)(REC->flags)), REC->count";

    #[test]
    fn descriptions_become_fields() {
        let format = Format::parse("sched", SWITCH).unwrap();
        assert_eq!((format.id, format.name.as_str()), (372, "sched_switch"));
        let names: Vec<_> = format.fields.iter().map(|field| &field.name[..]).collect();
        let expected = [
            "common_type",
            "common_flags",
            "prev_comm",
            "prev_pid",
            "path",
            "name",
            "flags",
            "count",
        ];
        assert_eq!(names, expected);
        let hexadecimal = format.fields.iter().filter(|it| it.is_hexadecimal);
        let hexadecimal: Vec<_> = hexadecimal.map(|it| &it.name[..]).collect();
        assert_eq!(hexadecimal, ["name", "flags"]);
        let comm = format.field("prev_comm").unwrap();
        assert_eq!((comm.offset, comm.size), (8, 16));
        assert!(format.field("path").unwrap().is_elsewhere());
        assert_eq!(format.field("name").unwrap().type_name, "const char *");
        assert_eq!(Format::parse("sched", "name: x\n"), None);
    }

    #[test]
    fn numbers_have_their_sign() {
        let field = |size: usize, is_signed: bool| Field {
            name: String::new(),
            type_name: String::new(),
            offset: 1,
            size,
            is_signed,
            is_array: false,
            is_hexadecimal: false,
        };
        let data = [0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        for (size, unsigned) in [(1, 0xFE), (2, 0xFFFE), (4, 0xFFFF_FFFE), (8, -2)] {
            let number = |is_signed| field(size, is_signed).place().number(&data, Order::Little);
            assert_eq!(number(true), Some(-2));
            assert_eq!(number(false), Some(unsigned));
        }
        assert_eq!(field(3, true).place().number(&data, Order::Little), None);
        assert_eq!(
            field(8, true).place().number(&data[..8], Order::Little),
            None
        );
    }

    #[test]
    fn data_elsewhere_has_an_offset_and_a_length() {
        // The data has 3 bytes. It begins at offset 10 from the event's start, which is 6 bytes after the end of the
        // field.
        for (type_name, offset) in [("__data_loc char[]", 10), ("__rel_loc char[]", 6)] {
            let field = Field {
                name: String::new(),
                type_name: type_name.to_owned(),
                offset: 0,
                size: 4,
                is_signed: false,
                is_array: false,
                is_hexadecimal: false,
            };
            let data = [offset, 0, 3, 0, 9, 9, 9, 9, 9, 9, b'a', b'b', 0];
            let value = field.value(&data, Order::Little);
            assert_eq!(value, Some(FieldValue::Text(b"ab")), "{type_name}");
            assert_eq!(field.value(&data[..12], Order::Little), None);
        }
    }
}
