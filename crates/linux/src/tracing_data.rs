//! Descriptions of tracepoints in a recording (the section `HEADER_TRACING_DATA`).

use crate::bytes::{Bytes, Order, text};
use crate::format::Format;

/// First bytes of the section.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Reads the formats of all tracepoints. If the section is damaged, returns the formats before the damage and
/// false.
pub(crate) fn read(section: &[u8], order: Order) -> (Vec<Format>, bool) {
    let mut formats = Vec::new();
    let is_whole = read_into(section, order, &mut formats).is_some();
    (formats, is_whole)
}

fn read_into(section: &[u8], order: Order, formats: &mut Vec<Format>) -> Option<()> {
    let mut bytes = Bytes::new(section, order);
    (bytes.take(MAGIC.len())? == MAGIC).then_some(())?;
    // Version; byte order and size of `long` of the machine; size of a page.
    bytes.zero_terminated()?;
    bytes.take(6)?;
    // Layouts of pages of the ring buffer: `header_page` and `header_event`.
    for _ in 0..2 {
        bytes.zero_terminated()?;
        let size = bytes.len64()?;
        bytes.take(size)?;
    }
    for _ in 0..bytes.u32()? {
        let size = bytes.len64()?;
        formats.extend(Format::parse("ftrace", &text(bytes.take(size)?)));
    }
    for _ in 0..bytes.u32()? {
        let system = text(bytes.zero_terminated()?);
        for _ in 0..bytes.u32()? {
            let size = bytes.len64()?;
            formats.extend(Format::parse(&system, &text(bytes.take(size)?)));
        }
    }
    Some(())
}
