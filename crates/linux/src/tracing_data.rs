//! Descriptions of tracepoints. In a recording of perf, they are in the section `HEADER_TRACING_DATA`. In a recording
//! of trace-cmd, they are at the start (version 6) or in several sections (version 7).

use crate::bytes::{Bytes, Order, text};
use crate::format::Format;

/// First bytes of the section, and of a recording of trace-cmd.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Reads the layouts of all tracepoints. Also returns true if the section is complete. If the section is damaged,
/// returns the layouts before the damage, and false.
pub(crate) fn read(section: &[u8], order: Order) -> (Vec<Format>, bool) {
    let mut formats = Vec::new();
    let is_whole = read_into(section, order, &mut formats).is_some();
    (formats, is_whole)
}

fn read_into(section: &[u8], order: Order, formats: &mut Vec<Format>) -> Option<()> {
    let mut bytes = Bytes::new(section, order);
    (bytes.take(MAGIC.len())? == MAGIC).then_some(())?;
    // The first fields are the version as text, and six bytes: the machine's byte order, the size of `long`, and the
    // page size.
    bytes.zero_terminated()?;
    bytes.take(6)?;
    read_page(&mut bytes)?;
    read_of_ftrace(&mut bytes, formats)?;
    read_of_systems(&mut bytes, formats)
}

/// Reads two descriptions of the ring buffer's pages: `header_page` and `header_event`. Returns their texts.
pub(crate) fn read_page(bytes: &mut Bytes<'_>) -> Option<[String; 2]> {
    let mut read = || {
        bytes.zero_terminated()?;
        let size = bytes.len64()?;
        bytes.take(size).map(text)
    };
    Some([read()?, read()?])
}

/// Reads the layouts of the events of ftrace itself, such as stacks.
pub(crate) fn read_of_ftrace(bytes: &mut Bytes<'_>, formats: &mut Vec<Format>) -> Option<()> {
    read_formats("ftrace", bytes, formats)
}

/// Reads the layouts of the tracepoints of all subsystems.
pub(crate) fn read_of_systems(bytes: &mut Bytes<'_>, formats: &mut Vec<Format>) -> Option<()> {
    for _ in 0..bytes.u32()? {
        let system = text(bytes.zero_terminated()?);
        read_formats(&system, bytes, formats)?;
    }
    Some(())
}

fn read_formats(system: &str, bytes: &mut Bytes<'_>, formats: &mut Vec<Format>) -> Option<()> {
    for _ in 0..bytes.u32()? {
        let size = bytes.len64()?;
        formats.extend(Format::parse(system, &text(bytes.take(size)?)));
    }
    Some(())
}
