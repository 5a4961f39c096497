//! Packets, which are the contents of a Perfetto file.

use std::io::{self, Write};

use prost::Message;
use rustc_hash::FxHashMap;

use super::proto::{
    InternedData, InternedName, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE,
    TracePacket, TrackEvent,
};

/// Tag of the field `packet` (number 1) of the message `Trace`. The length and the bytes of a
/// packet follow.
const PACKET: u8 = 1 << 3 | 2;

/// Id of the sequence to which all packets belong. Interned names are valid for later packets of
/// the same sequence.
const SEQUENCE: u32 = 1;

/// Writer of packets.
pub(super) struct Packets<W> {
    out: W,
    bytes: Vec<u8>,
    /// Numbers of interned names. An interned name is written once, and events refer to it by its number.
    names: FxHashMap<String, u64>,
}

/// Number of an interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name(u64);

impl<W: Write> Packets<W> {
    /// Starts a file and writes the names of the slices' categories, which get numbers from 1.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn new(out: W, categories: &[&str]) -> io::Result<Packets<W>> {
        let mut packets = Packets {
            out,
            bytes: Vec::new(),
            names: FxHashMap::default(),
        };
        let event_categories = (1..).zip(categories).map(|(iid, name)| InternedName {
            iid: Some(iid),
            name: Some((*name).to_owned()),
        });
        packets.write(&TracePacket {
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            interned_data: Some(InternedData {
                event_categories: event_categories.collect(),
                ..InternedData::default()
            }),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        })?;
        Ok(packets)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn write(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.push(PACKET);
        // Encoding fails only if the buffer cannot grow, and this buffer can.
        let _ = packet.encode_length_delimited(&mut self.bytes);
        self.out.write_all(&self.bytes)
    }

    /// Writes an event on a track.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn event(&mut self, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        self.write(&TracePacket {
            timestamp: Some(time_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Returns the number of an interned name. Writes the name on first use.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn name(&mut self, name: &str) -> io::Result<Name> {
        if let Some(iid) = self.names.get(name) {
            return Ok(Name(*iid));
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), iid);
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            interned_data: Some(InternedData {
                event_names: vec![InternedName {
                    iid: Some(iid),
                    name: Some(name.to_owned()),
                }],
                ..InternedData::default()
            }),
            ..TracePacket::default()
        })?;
        Ok(Name(iid))
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Name {
    /// Returns the number of the name.
    pub(super) fn iid(self) -> u64 {
        self.0
    }
}
