//! `.pcapng`: captured packets for Wireshark.
//!
//! Blocks and options follow `draft-ietf-opsawg-pcapng`. Numbers are in little-endian byte order.

use std::io::{self, BufWriter, Write};

use rustc_hash::FxHashMap;
use tables::{PacketsView, Table};

use super::part::Part;
use super::roster::Roster;
use crate::Error;

/// Tables that the export needs.
pub const TABLES: [Table; 3] = [Table::Processes, Table::Threads, Table::Packets];

/// Writes the packets of the part whose link type is known. Returns their number.
///
/// # Errors
/// Returns an error if a table cannot be read, there are no packets, or the file cannot be written.
pub fn write(part: &Part<'_>, out: impl Write) -> Result<u64, Error> {
    let start = part.start_unix_ns().unwrap_or(0);
    let roster = Roster::read(part)?;
    let mut out = Section::new(BufWriter::with_capacity(1 << 16, out))?;
    let mut written = 0;
    let columns = [
        "source",
        "interface",
        "interface_name",
        "direction",
        "link_type",
        "length_bytes",
        "frame",
        "process_id",
        "process_row",
    ];
    for batch in part.rows(Table::Packets, &columns)? {
        let batch = batch?;
        let view = PacketsView::new(&batch)?;
        for row in 0..batch.num_rows() {
            let Some(link_type) = view.link_type.get(row).and_then(link_type) else {
                continue;
            };
            let process = view.process_row.get(row);
            let process = process.and_then(|row| roster.processes.get(row as usize));
            let process = process.map(|p| format!("{} ({})", p.name, p.process_id));
            let interface = out.interface(Interface {
                link_type,
                number: view.interface.get(row),
                name: view.interface_name.get(row).map(str::to_owned),
            })?;
            let unix_ns = start.saturating_add(view.time_ns[row]);
            out.packet(&Packet {
                interface,
                unix_ns: unix_ns.max(0).unsigned_abs(),
                frame: view.frame.get(row),
                length: view.length_bytes[row],
                direction: match view.direction.get(row) {
                    Some("receive") => Some(INBOUND),
                    Some("send") => Some(OUTBOUND),
                    _ => None,
                },
                comment: process.as_deref(),
            })?;
            written += 1;
        }
    }
    out.finish()?;
    match written {
        0 => Err(Error::NoPackets),
        written => Ok(written),
    }
}

/// Returns the number of a link type (`tcpdump.org/linktypes.html`), or `None` if it is unknown.
fn link_type(name: &str) -> Option<u16> {
    Some(match name {
        "ethernet" => 1,
        "ip" => 101,
        "802.11" => 105,
        "linux_cooked" => 113,
        "loopback" => 0,
        other => return other.strip_prefix("linktype ")?.parse().ok(),
    })
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Value of `epb_flags` for a received packet.
const INBOUND: u32 = 1;
/// Value of `epb_flags` for a sent packet.
const OUTBOUND: u32 = 2;

/// Network interface on which packets were captured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Interface {
    link_type: u16,
    number: Option<u32>,
    name: Option<String>,
}

/// A captured packet.
struct Packet<'a> {
    interface: u32,
    unix_ns: u64,
    /// Bytes that were captured, which may be fewer than `length`.
    frame: &'a [u8],
    /// Length of the original packet in bytes.
    length: u32,
    direction: Option<u32>,
    comment: Option<&'a str>,
}

/// Writer of the file's only section.
struct Section<W> {
    out: W,
    interfaces: FxHashMap<Interface, u32>,
    block: Vec<u8>,
}

impl<W: Write> Section<W> {
    fn new(out: W) -> io::Result<Section<W>> {
        let mut section = Section {
            out,
            interfaces: FxHashMap::default(),
            block: Vec::new(),
        };
        section.block.extend(0x1A2B_3C4D_u32.to_le_bytes());
        section.block.extend(1_u16.to_le_bytes());
        section.block.extend(0_u16.to_le_bytes());
        // Section length: -1 means that it is not specified.
        section.block.extend((-1_i64).to_le_bytes());
        let program = concat!("laglab ", env!("CARGO_PKG_VERSION"));
        section.option(SHB_USERAPPL, program.as_bytes());
        section.end(SECTION_HEADER)?;
        Ok(section)
    }

    /// Returns the number of an interface in the file. Writes its description on first use.
    fn interface(&mut self, interface: Interface) -> io::Result<u32> {
        if let Some(number) = self.interfaces.get(&interface) {
            return Ok(*number);
        }
        let number = self.interfaces.len() as u32;
        self.block.extend(interface.link_type.to_le_bytes());
        self.block.extend(0_u16.to_le_bytes());
        // Snapshot length: 0 means that it is unlimited.
        self.block.extend(0_u32.to_le_bytes());
        let name = match (&interface.name, interface.number) {
            (Some(name), _) => Some(name.clone()),
            (None, number) => number.map(|number| format!("interface {number}")),
        };
        if let Some(name) = name {
            self.option(IF_NAME, name.as_bytes());
        }
        // Time resolution: 10^-9 s, one nanosecond.
        self.option(IF_TSRESOL, &[9]);
        self.end(INTERFACE_DESCRIPTION)?;
        self.interfaces.insert(interface, number);
        Ok(number)
    }

    fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.block.extend(packet.interface.to_le_bytes());
        self.block
            .extend(((packet.unix_ns >> 32) as u32).to_le_bytes());
        self.block.extend((packet.unix_ns as u32).to_le_bytes());
        let captured = packet.frame.len() as u32;
        self.block.extend(captured.to_le_bytes());
        self.block.extend(packet.length.max(captured).to_le_bytes());
        self.padded(packet.frame);
        if let Some(comment) = packet.comment {
            self.option(COMMENT, comment.as_bytes());
        }
        if let Some(direction) = packet.direction {
            self.option(EPB_FLAGS, &direction.to_le_bytes());
        }
        self.end(ENHANCED_PACKET)
    }

    /// Adds an option to the block. If the value exceeds 65,535 bytes, it is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(u16::MAX.into())];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Ends the list of options and writes the block.
    fn end(&mut self, kind: u32) -> io::Result<()> {
        self.block.extend([0; 4]);
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use testdata::HOSTILE_NAMES;

    use super::*;

    fn number(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    /// Returns the type and the body of each block of a file.
    fn blocks(mut file: &[u8]) -> Vec<(usize, &[u8])> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = number(file, 4);
            assert_eq!(number(file, length - 4), length);
            blocks.push((number(file, 0), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    /// Returns the value of an option, from the bytes at which the options of a block start.
    fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
        while !options.is_empty() {
            let [code, length] = [0, 2].map(|at| [options[at], options[at + 1]]);
            let length = usize::from(u16::from_le_bytes(length));
            if u16::from_le_bytes(code) == wanted {
                return Some(&options[4..4 + length]);
            }
            options = &options[4 + length.next_multiple_of(4)..];
        }
        None
    }

    #[test]
    fn names_are_exact() {
        let mut file = Vec::new();
        let mut section = Section::new(&mut file).unwrap();
        for name in HOSTILE_NAMES {
            let interface = Interface {
                link_type: 1,
                number: None,
                name: Some((*name).to_owned()),
            };
            let packet = Packet {
                interface: section.interface(interface).unwrap(),
                unix_ns: 1,
                frame: b"frame",
                length: 5,
                direction: Some(INBOUND),
                comment: Some(name),
            };
            section.packet(&packet).unwrap();
        }
        section.finish().unwrap();
        let blocks = blocks(&file);
        assert_eq!(blocks.len(), 1 + 2 * HOSTILE_NAMES.len());
        for (name, described) in HOSTILE_NAMES.iter().zip(blocks[1..].chunks(2)) {
            let [(1, interface), (6, packet)] = described else {
                panic!("{described:?}");
            };
            // The fixed fields of an interface have 8 bytes. The fixed fields of a packet have 20 bytes.
            // After them, there are 5 bytes of data and 3 bytes of padding.
            assert_eq!(option(&interface[8..], 2), Some(name.as_bytes()));
            assert_eq!(option(&packet[28..], 1), Some(name.as_bytes()));
        }
    }
}
