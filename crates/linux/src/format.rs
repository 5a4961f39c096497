//! Layouts of tracepoints, from their descriptions in the recording.

use crate::bytes::Order;

/// Layout of a tracepoint's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Id, which differs between kernels.
    pub id: u16,
    /// Subsystem, for example `sched`.
    pub system: String,
    /// Name within the subsystem, for example `sched_switch`.
    pub name: String,
    /// Fields in the order of the description.
    pub fields: Vec<Field>,
}

/// Field of a tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type in C, without the name.
    pub type_name: String,
    /// Offset of the first byte.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// True if the number is signed.
    pub is_signed: bool,
}

impl Field {
    /// Returns true if the field has the offset and the length of data elsewhere in the event.
    pub fn is_elsewhere(&self) -> bool {
        self.type_name.starts_with("__data_loc")
    }

    /// Returns the number in the field; `None` if the data is too short, or the size is not that of a number.
    pub(crate) fn number(&self, data: &[u8], order: Order) -> Option<i64> {
        let bytes = self.bytes(data)?;
        let sign = |value: u64, bits: u32| match self.is_signed {
            true => (value << (64 - bits)).cast_signed() >> (64 - bits),
            false => value.cast_signed(),
        };
        Some(match *bytes {
            [byte] => sign(byte.into(), 8),
            [a, b] => sign(order.u16([a, b]).into(), 16),
            [a, b, c, d] => sign(order.u32([a, b, c, d]).into(), 32),
            _ => order.u64(bytes.try_into().ok()?).cast_signed(),
        })
    }

    /// Returns the text in the field, without zero bytes; `None` if the data is too short.
    pub(crate) fn text<'d>(&self, data: &'d [u8], order: Order) -> Option<&'d [u8]> {
        let bytes = match self.is_elsewhere() {
            true => {
                // The low half has the offset, the high half the length.
                let place = self.number(data, order)?.cast_unsigned();
                let (offset, len) = ((place & 0xFFFF) as usize, (place >> 16 & 0xFFFF) as usize);
                data.get(offset..offset + len)?
            }
            false => self.bytes(data)?,
        };
        let end = bytes.iter().position(|byte| *byte == 0);
        Some(&bytes[..end.unwrap_or(bytes.len())])
    }

    /// Returns the bytes of the field; `None` if the data is too short.
    pub(crate) fn bytes<'d>(&self, data: &'d [u8]) -> Option<&'d [u8]> {
        data.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

impl Format {
    /// Returns the field with a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Reads the text of a `format` file of tracefs; `None` if it has no id or no name.
    pub(crate) fn parse(system: &str, text: &str) -> Option<Format> {
        let mut format = Format {
            id: 0,
            system: system.to_owned(),
            name: String::new(),
            fields: Vec::new(),
        };
        let mut id = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name: ") {
                format.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID: ") {
                id = number.trim().parse().ok();
            } else if let Some(field) = parse_field(line) {
                format.fields.push(field);
            } else if line.starts_with("print fmt") {
                break;
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }
}

/// Reads a line such as `field:pid_t next_pid; offset:56; size:4; signed:1;`.
fn parse_field(line: &str) -> Option<Field> {
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
    // An array has its length after the name: `char prev_comm[16]`.
    let declaration = match declaration.strip_suffix(']') {
        Some(array) => array.rsplit_once('[')?.0.trim_end(),
        None => declaration,
    };
    let (type_name, name) = declaration.rsplit_once(|c: char| c.is_whitespace() || c == '*')?;
    Some(Field {
        name: name.to_owned(),
        type_name: type_name.trim_end().to_owned(),
        offset,
        size,
        is_signed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text in the form of the kernel's documentation (`Documentation/trace/events.rst`).
    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:const char * name;\toffset:32;\tsize:8;\tsigned:0;\n\
        \nprint fmt: \"field:fake x;\toffset:1;\"";

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
        ];
        assert_eq!(names, expected);
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
        };
        let data = [0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        for (size, unsigned) in [(1, 0xFE), (2, 0xFFFE), (4, 0xFFFF_FFFE), (8, -2)] {
            assert_eq!(field(size, true).number(&data, Order::Little), Some(-2));
            assert_eq!(
                field(size, false).number(&data, Order::Little),
                Some(unsigned)
            );
        }
        assert_eq!(field(3, true).number(&data, Order::Little), None);
        assert_eq!(field(8, true).number(&data[..8], Order::Little), None);
    }
}
