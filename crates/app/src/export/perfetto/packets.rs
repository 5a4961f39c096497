//! Packets one after another: what a file of Perfetto is.

use std::io::{self, Write};

use prost::Message;
use rustc_hash::FxHashMap;

use super::proto::{
    InternedData, InternedName, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE,
    TracePacket, TrackEvent,
};

/// Field 1 of `Trace`, `packet`, as length and bytes follow it.
const PACKET: u8 = 1 << 3 | 2;

/// All packets are of one sequence: what one interns, those behind it may use.
const SEQUENCE: u32 = 1;

/// Writes packets.
pub(super) struct Packets<W> {
    out: W,
    bytes: Vec<u8>,
    /// Numbers of names that are interned.
    names: FxHashMap<String, u64>,
}

/// The number of an interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name(u64);

impl<W: Write> Packets<W> {
    /// Begins a file whose slices are of these categories, numbered from 1.
    ///
    /// # Errors
    /// If it cannot be written.
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
    /// If it cannot be written.
    pub(super) fn write(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.push(PACKET);
        // It fails only where a buffer cannot grow, and this one can.
        let _ = packet.encode_length_delimited(&mut self.bytes);
        self.out.write_all(&self.bytes)
    }

    /// Writes what happened on a track.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn event(&mut self, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        self.write(&TracePacket {
            timestamp: Some(time_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Interns a name.
    ///
    /// # Errors
    /// If it cannot be written.
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

    /// Writes what is still held back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Name {
    /// Its number.
    pub(super) fn iid(self) -> u64 {
        self.0
    }
}
