//! Manifests that .NET's EventSource providers write into the trace themselves.
//!
//! A provider writes its manifest as events with id 0xFFFE, in chunks of at most 64 KiB: whenever
//! a session starts or ends, from every process. The payload is {u8 format = 1, u8 major version,
//! u8 minor version, u8 magic = 0x5B, u16 chunks in all, u16 this chunk's number} and UTF-8 text
//! (`ManifestEnvelope` in the public .NET sources).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use etl::{Event, Guid, le};

use crate::manifest::{self, ManifestError, ManifestProvider, parse_manifest};
use crate::schema::{Field, InType, Schema, Source};

/// Event id of a manifest's chunks.
pub const MANIFEST_EVENT_ID: u16 = 0xFFFE;

const MAGIC: u8 = 0x5B;
const HEADER_SIZE: usize = 8;
/// Bytes that unfinished manifests may hold together.
const MAX_PENDING_BYTES: usize = 64 << 20;

/// Collects the manifests in a trace from their chunks. Chunks may come in any order, repeatedly,
/// or not at all.
#[derive(Debug, Default)]
pub struct EventSourceManifests {
    pending: HashMap<Writer, Pending>,
    pending_bytes: usize,
    finished: HashMap<Guid, Vec<Vec<u8>>>,
    collected: CollectedManifests,
}

/// What [`EventSourceManifests`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedManifests {
    /// Providers as the trace describes them. One that differs between processes is here once
    /// per difference, in trace order.
    pub providers: Vec<ManifestProvider>,
    /// Manifests that could not be read.
    pub faults: Vec<ManifestFault>,
}

/// A manifest in the trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("manifest of provider {provider} from process {process}: {problem}")]
pub struct ManifestFault {
    /// The provider.
    pub provider: Guid,
    /// Id of the process that wrote it.
    pub process: u32,
    /// What is wrong.
    pub problem: ManifestFaultKind,
}

/// What is wrong with a manifest in the trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFaultKind {
    /// Some chunks are not in the trace.
    #[error("found {found} of {expected} chunks")]
    Incomplete {
        /// Chunks found.
        found: usize,
        /// Chunks the manifest has.
        expected: u16,
    },
    /// A chunk's header makes no sense.
    #[error("chunk header {0:02x?} is none of format 1")]
    BadChunk(Vec<u8>),
    /// The manifest is longer than is read, or too many are unfinished at once.
    #[error("more than {} bytes", manifest::MAX_SIZE)]
    TooLarge,
    /// The text is not UTF-8.
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// The text is no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Whose chunks belong together: those that one thread writes for one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Writer {
    provider: Guid,
    process: u32,
    thread: u32,
}

#[derive(Debug, Default)]
struct Pending {
    total: u16,
    chunks: BTreeMap<u16, Box<[u8]>>,
    bytes: usize,
}

impl EventSourceManifests {
    /// No manifests yet.
    pub fn new() -> EventSourceManifests {
        EventSourceManifests::default()
    }

    /// Takes `event` if it is a chunk of a manifest, and says whether it is.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        let is_chunk = event
            .descriptor()
            .is_some_and(|d| d.id == MANIFEST_EVENT_ID && d.opcode == 0xFE && d.task == 0xFFFE);
        let payload = event.payload();
        // TraceLogging providers have the same ids at their disposal, but not the magic byte.
        if !is_chunk || payload.get(3) != Some(&MAGIC) {
            return false;
        }
        let writer = Writer {
            provider: event.guid().unwrap_or_default(),
            process: event.process_id().unwrap_or(0),
            thread: event.thread_id().unwrap_or(0),
        };
        self.push_chunk(writer, payload);
        true
    }

    /// All that was found; manifests that are still unfinished are faults.
    pub fn finish(mut self) -> CollectedManifests {
        let mut pending: Vec<_> = self.pending.drain().collect();
        pending.sort_unstable_by_key(|(writer, _)| *writer);
        for (writer, pending) in pending {
            let found = pending.chunks.len();
            let problem = ManifestFaultKind::Incomplete {
                found,
                expected: pending.total,
            };
            self.collected.fault(writer, problem);
        }
        self.collected
    }

    fn push_chunk(&mut self, writer: Writer, payload: &[u8]) {
        let header = payload.first_chunk::<HEADER_SIZE>();
        let total = le::u16(payload, 4).unwrap_or(0);
        let number = le::u16(payload, 6).unwrap_or(0);
        let Some([1, _, _, MAGIC, ..]) = header.filter(|_| number < total) else {
            let header = payload.iter().take(HEADER_SIZE).copied().collect();
            return self
                .collected
                .fault(writer, ManifestFaultKind::BadChunk(header));
        };
        let text = &payload[HEADER_SIZE..];

        let pending = self.pending.entry(writer).or_default();
        let differs = pending
            .chunks
            .get(&number)
            .is_some_and(|known| **known != *text);
        if differs || pending.total != total {
            // The thread has started over, as it does for a second session.
            let before = std::mem::take(pending);
            self.pending_bytes -= before.bytes;
            if !before.chunks.is_empty() {
                let found = before.chunks.len();
                let problem = ManifestFaultKind::Incomplete {
                    found,
                    expected: before.total,
                };
                self.collected.fault(writer, problem);
            }
            pending.total = total;
        }
        if let Entry::Vacant(place) = pending.chunks.entry(number) {
            place.insert(text.into());
            pending.bytes += text.len();
            self.pending_bytes += text.len();
        }
        let is_complete = pending.chunks.len() == usize::from(total);
        let is_too_large =
            pending.bytes > manifest::MAX_SIZE || self.pending_bytes > MAX_PENDING_BYTES;
        if (is_complete || is_too_large)
            && let Some(pending) = self.pending.remove(&writer)
        {
            self.pending_bytes -= pending.bytes;
            if is_too_large {
                self.collected.fault(writer, ManifestFaultKind::TooLarge);
            } else {
                self.complete(writer, pending);
            }
        }
    }

    fn complete(&mut self, writer: Writer, pending: Pending) {
        let chunks: Vec<_> = pending.chunks.into_values().collect();
        let bytes = chunks.concat();
        // Every process writes the same one, and again when the session ends.
        let known = self.finished.entry(writer.provider).or_default();
        if known.contains(&bytes) {
            return;
        }
        match parse(writer.provider, &bytes) {
            Ok(providers) => self.collected.providers.extend(providers),
            Err(problem) => self.collected.fault(writer, problem),
        }
        known.push(bytes);
    }
}

impl CollectedManifests {
    fn fault(&mut self, writer: Writer, problem: ManifestFaultKind) {
        let Writer {
            provider, process, ..
        } = writer;
        let fault = ManifestFault {
            provider,
            process,
            problem,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

/// Reads a whole manifest that `provider` wrote.
fn parse(provider: Guid, bytes: &[u8]) -> Result<Vec<ManifestProvider>, ManifestFaultKind> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ManifestFaultKind::NotUtf8(error.valid_up_to()))?;
    // Writers pad the last chunk.
    let mut providers = parse_manifest(text.trim_end_matches('\0'))?;
    for described in &mut providers {
        described
            .events
            .values_mut()
            .for_each(|schema| schema.source = Source::EventSource);
        if described.guid == provider {
            let schema = chunk_schema(described);
            described
                .events
                .entry((MANIFEST_EVENT_ID, 1))
                .or_insert(schema);
        }
    }
    Ok(providers)
}

/// The chunks' own schema, which no manifest lists.
fn chunk_schema(provider: &ManifestProvider) -> Schema {
    let field = |(name, in_type)| Field::new(name, in_type);
    let fields = [
        ("Format", InType::U8),
        ("MajorVersion", InType::U8),
        ("MinorVersion", InType::U8),
        ("Magic", InType::U8),
        ("TotalChunks", InType::U16),
        ("ChunkNumber", InType::U16),
        ("Manifest", InType::AnsiRest),
    ];
    Schema {
        provider: provider.guid,
        provider_name: Some(provider.name.clone()),
        name: "ManifestData".into(),
        message: None,
        source: Source::EventSource,
        fields: fields.map(field).into(),
    }
}
