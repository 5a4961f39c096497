//! Packets in pcapng and pcap files.

use std::fs::File;
use std::path::{Path, PathBuf};

use pcap_parser::pcapng::{Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};
use tables::import::{EventTable, FirstPass, Rows, Trackers};
use tables::{
    Direction, GiveRows, Options, PacketRows, PacketSource, Packets, Recording, RecordingInfo,
    SessionHeader, Sessions, StoreError, Table, Tables, Unreadable,
};

use crate::frame::Link;
use crate::table::packets::{Packet, push};

/// A failure to read a capture file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Reason given by the operating system.
        source: std::io::Error,
    },
    /// The file does not begin like a capture.
    #[error("{} is not a pcapng or pcap file", file.display())]
    NotACapture {
        /// Path of the file.
        file: PathBuf,
    },
}

/// First bytes of capture files. They are the start of a pcapng file, or of a pcap file with microseconds or
/// nanoseconds in either byte order.
const MAGICS: [[u8; 4]; 5] = [
    [0x0A, 0x0D, 0x0D, 0x0A],
    [0xD4, 0xC3, 0xB2, 0xA1],
    [0xA1, 0xB2, 0xC3, 0xD4],
    [0x4D, 0x3C, 0xB2, 0xA1],
    [0xA1, 0xB2, 0x3C, 0x4D],
];

/// Returns true if a file begins like a packet capture. Returns false if the file cannot be read.
pub fn is_capture(file: &Path) -> bool {
    files::first_bytes(file).is_some_and(|magic| MAGICS.contains(&magic))
}

/// Initial size of the read buffer, in bytes.
const BLOCK: usize = 1 << 16;
/// Maximum size of a block, in bytes.
const LARGEST_BLOCK: usize = 16 << 20;

/// Maximum number of characters of an interface's name, the limit of Windows (`IF_MAX_STRING_SIZE`). Every packet has a
/// copy of the name.
const LONGEST_NAME: usize = 256;

/// Reads the packets of all captures in time order. Times are relative to `start_unix_ns`, and are computed from the
/// UTC times of the packets. A file is read up to its first invalid block.
///
/// # Errors
/// Returns an error if a file cannot be read or is not a capture.
pub(crate) fn read(files: &[PathBuf], start_unix_ns: i128) -> Result<Packets, CaptureError> {
    let mut rows = Packets::default();
    for file in files {
        walk(file, &mut |packet, unix_ns| {
            let since = unix_ns - start_unix_ns;
            let time_ns = since.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            push(&mut rows, &Packet { time_ns, ..packet });
            true
        })?;
    }
    Rows::sort(&mut rows);
    Ok(rows)
}

/// Returns the times of the first and the last packet of all captures, in nanoseconds since 1970 (UTC). Returns `None`
/// if there are no packets.
///
/// # Errors
/// Returns an error if a file cannot be read or is not a capture.
fn span_unix_ns(files: &[PathBuf]) -> Result<Option<(i64, i64)>, CaptureError> {
    let mut span: Option<(i128, i128)> = None;
    for file in files {
        walk(file, &mut |_, unix_ns| {
            let (first, last) = span.unwrap_or((unix_ns, unix_ns));
            span = Some((first.min(unix_ns), last.max(unix_ns)));
            true
        })?;
    }
    let limited = |ns: i128| ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Ok(span.map(|(first, last)| (limited(first), limited(last))))
}

/// Packet captures.
#[derive(Debug)]
pub struct CaptureRecording {
    files: Vec<PathBuf>,
    info: RecordingInfo,
}

impl CaptureRecording {
    /// Opens files with packets.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not a capture.
    pub fn open(files: &[PathBuf]) -> Result<CaptureRecording, StoreError> {
        /// Resolution of the start and the end, in nanoseconds.
        const TICK_NS: i64 = 100;
        let span = span_unix_ns(files).map_err(StoreError::of_format)?;
        let start = span.map(|(first, _)| first.div_euclid(TICK_NS) * TICK_NS);
        // The end is one tick after the last packet.
        let end = span.map(|(_, last)| {
            last.div_euclid(TICK_NS)
                .saturating_add(1)
                .saturating_mul(TICK_NS)
        });
        let end_ns = start.zip(end).map(|(start, end)| end.saturating_sub(start));
        let header = SessionHeader {
            name: "packet capture".to_owned(),
            end_ns,
            start_unix_ns: start,
            end_unix_ns: end,
            ..SessionHeader::default()
        };
        Ok(CaptureRecording {
            files: files.to_owned(),
            info: RecordingInfo::without_events(files, header, Table::Packets),
        })
    }
}

impl Recording for CaptureRecording {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn memory(&self, _: &[Table]) -> u64 {
        self.info.size_bytes
    }

    fn rows(
        &self,
        wanted: &[Table],
        _: Options<'_>,
        give: &mut GiveRows<'_>,
    ) -> Result<Vec<Unreadable>, StoreError> {
        let mut tables = Tables {
            sessions: Sessions::from_info(&self.info),
            ..Tables::default()
        };
        if wanted.contains(&Table::Packets) {
            let start = self.info.start_unix_ns.unwrap_or(0);
            let mut raw = PacketRows::default();
            let packets = read(&self.files, start.into()).map_err(StoreError::of_format)?;
            raw.add(packets);
            let nothing = FirstPass::default();
            let trackers = Trackers::new(&nothing);
            tables
                .packets
                .push(Packets::join(&mut raw, &mut (), &trackers));
        }
        tables.give(wanted, give)?;
        Ok(Vec::new())
    }
}

/// A network interface of a capture.
struct Interface {
    link: Link,
    /// Name, cut after [`LONGEST_NAME`] characters.
    name: Option<String>,
    /// Number of time-stamp ticks per second.
    resolution: u64,
    /// Number of seconds to add to time stamps.
    offset: i64,
}

/// Passes each packet to `give`. The second argument of `give` is the time of the packet, in nanoseconds
/// since 1970. The field `time_ns` of the packet is 0. Stops when `give` returns `false`.
fn walk(path: &Path, give: &mut dyn FnMut(Packet<'_>, i128) -> bool) -> Result<(), CaptureError> {
    let io = |source| CaptureError::Io {
        file: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let mut reader = create_reader(BLOCK, file).map_err(|_| CaptureError::NotACapture {
        file: path.to_owned(),
    })?;
    let mut capture = Capture::default();
    let mut room = BLOCK;
    loop {
        let size = match reader.next() {
            Ok((size, block)) => {
                if !capture.take(&block, give) {
                    return Ok(());
                }
                size
            }
            Err(PcapError::Incomplete(_)) => {
                if reader.reader_exhausted() || reader.refill().is_err() {
                    return Ok(());
                }
                continue;
            }
            Err(PcapError::BufferTooSmall) if room < LARGEST_BLOCK => {
                room *= 2;
                reader.grow(room);
                if reader.refill().is_err() {
                    return Ok(());
                }
                continue;
            }
            Err(_) => return Ok(()),
        };
        reader.consume(size);
    }
}

/// State of reading a capture.
#[derive(Default)]
struct Capture {
    interfaces: Vec<Interface>,
}

impl Capture {
    /// Reads a block. Returns false if the reading of the capture must stop.
    fn take(
        &mut self,
        block: &PcapBlockOwned<'_>,
        give: &mut dyn FnMut(Packet<'_>, i128) -> bool,
    ) -> bool {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let is_nanoseconds = header.is_nanosecond_precision();
                self.interfaces = vec![Interface {
                    link: Link::from_number(header.network.0),
                    name: None,
                    resolution: if is_nanoseconds {
                        1_000_000_000
                    } else {
                        1_000_000
                    },
                    offset: i64::from(header.thiszone),
                }];
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some(interface) = self.interfaces.first() else {
                    return true;
                };
                let ticks = u64::from(packet.ts_sec) * interface.resolution;
                let ticks = ticks + u64::from(packet.ts_usec);
                let size = packet.data.len().min(packet.caplen as usize);
                let packet = interface.packet(None, packet.origlen, &packet.data[..size]);
                return give(packet, interface.unix_ns(ticks));
            }
            // Each section numbers its interfaces from 0. So a new section starts with an empty list.
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                self.interfaces.push(Interface::new(interface));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return true;
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let packet = Packet {
                    direction: direction(packet),
                    ..interface.packet(Some(packet.if_id), packet.origlen, packet.packet_data())
                };
                return give(packet, interface.unix_ns(ticks));
            }
            // Other blocks are skipped. Among them are simple packets, because they have no time.
            PcapBlockOwned::NG(_) => {}
        }
        true
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Interface {
        // The upper bit decides the base of the resolution. If it is set, the resolution is a power of 2.
        // Otherwise, the resolution is a power of 10. If the resolution is out of range, microseconds are
        // used.
        let exponent = u32::from(block.if_tsresol & 0x7F);
        let resolution = match block.if_tsresol & 0x80 {
            0 => 10u64.checked_pow(exponent),
            _ => 1u64.checked_shl(exponent),
        };
        let name = block.if_name().and_then(Result::ok);
        Interface {
            link: Link::from_number(block.linktype.0),
            name: name
                .filter(|name| !name.is_empty())
                .map(|name| name.chars().take(LONGEST_NAME).collect()),
            resolution: resolution.unwrap_or(1_000_000),
            offset: block.if_tsoffset,
        }
    }

    fn unix_ns(&self, ticks: u64) -> i128 {
        let resolution = i128::from(self.resolution);
        let ns = i128::from(ticks) * 1_000_000_000 / resolution;
        ns + i128::from(self.offset) * 1_000_000_000
    }

    fn packet<'p>(&'p self, interface: Option<u32>, length: u32, bytes: &'p [u8]) -> Packet<'p> {
        Packet {
            time_ns: 0,
            cpu: None,
            source: PacketSource::Pcap,
            interface,
            interface_name: self.name.as_deref(),
            direction: None,
            link: self.link,
            length: Some(length),
            bytes,
            packet_id: None,
            drop_reason: None,
            process_id: None,
        }
    }
}

/// Returns the direction of a packet. The two lowest bits of the option `epb_flags` contain the direction.
fn direction(packet: &EnhancedPacketBlock<'_>) -> Option<Direction> {
    const EPB_FLAGS: OptionCode = OptionCode(2);
    let option = packet
        .options
        .iter()
        .find(|option| option.code == EPB_FLAGS)?;
    let bytes: [u8; 4] = option.value().get(..4)?.try_into().ok()?;
    let flags = if PcapNGPacketBlock::big_endian(packet) {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    };
    match flags & 3 {
        1 => Some(Direction::Receive),
        2 => Some(Direction::Send),
        _ => None,
    }
}
