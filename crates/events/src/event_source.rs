//! Manifests that .NET's EventSource providers write into the trace.
//!
//! A provider writes its manifest in chunks of at most 64 KiB, as events with id 0xFFFE. Every process that
//! has the provider writes the manifest when a trace session starts and when it ends. The payload is {u8
//! format = 1, u8 major version, u8 minor version, u8 magic = 0x5B, u16 number of chunks, u16 index of this
//! chunk} and UTF-8 text (`ManifestEnvelope` in the public .NET sources).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use etl::{Event, Guid, le};

use crate::manifest::{self, ManifestError, ManifestProvider, parse_manifest};
use crate::schema::Source;

/// Event id of manifest chunks.
pub const MANIFEST_EVENT_ID: u16 = 0xFFFE;

const MAGIC: u8 = 0x5B;
const HEADER_SIZE: usize = 8;
/// Maximum total size of the incomplete manifests in bytes. An incomplete manifest has missing chunks.
const MAX_PENDING_BYTES: usize = 64 << 20;
/// Maximum number of fields in all manifests of a trace. Real traces have a few thousand.
const MAX_FIELDS: usize = 1_000_000;
/// Maximum number of faults that are kept.
const MAX_FAULTS: usize = 1000;

/// Collector of manifests from their chunks. Chunks may be out of order, repeated or missing.
#[derive(Debug, Default)]
pub struct EventSourceManifests {
    pending: HashMap<Writer, Pending>,
    pending_bytes: usize,
    finished: HashSet<(Guid, Vec<u8>)>,
    fields: usize,
    collected: CollectedManifests,
}

/// Manifests and faults that [`EventSourceManifests`] collected.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedManifests {
    /// Providers that the trace describes, in trace order. If processes wrote different manifests of a
    /// provider, the provider occurs once for each manifest.
    pub providers: Vec<ManifestProvider>,
    /// Faults of the manifests that could not be read. At most the first thousand different faults are kept.
    pub faults: Vec<ManifestFault>,
}

/// A manifest in the trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("manifest of provider {provider} from process {process}: {problem}")]
pub struct ManifestFault {
    /// Provider that the manifest describes.
    pub provider: Guid,
    /// Id of the process that wrote the manifest.
    pub process: u32,
    /// Kind of the fault in the manifest.
    pub problem: ManifestFaultKind,
}

/// Kind of fault in a manifest of the trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFaultKind {
    /// Some chunks are missing from the trace.
    #[error("found {found} of {expected} chunks")]
    Incomplete {
        /// Number of chunks in the trace.
        found: usize,
        /// Number of chunks that the manifest has.
        expected: u16,
    },
    /// A chunk's header is invalid.
    #[error("chunk header {0:02x?} is not of format 1")]
    BadChunk(Vec<u8>),
    /// The manifest exceeds the size limit, too many manifests are unfinished, or the manifests
    /// describe too many fields.
    #[error(
        "too large (more than {} bytes, or too many fields)",
        manifest::MAX_SIZE
    )]
    TooLarge,
    /// The text is not UTF-8.
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// The text is not a manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Identity of the writer of one manifest: a provider in a thread. Chunks from the same writer belong to the
/// same manifest.
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
    /// Creates an empty collection.
    pub fn new() -> EventSourceManifests {
        EventSourceManifests::default()
    }

    /// Collects `event` if it is a chunk of a manifest. Returns true if `event` is a chunk.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        let is_chunk = event
            .descriptor()
            .is_some_and(|d| d.id == MANIFEST_EVENT_ID && d.opcode == 0xFE && d.task == 0xFFFE);
        let payload = event.payload();
        // TraceLogging providers may use the same event id, task and opcode. But they do not use the magic
        // byte.
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

    /// Returns all manifests and faults. A manifest with missing chunks is a fault.
    pub fn finish(mut self) -> CollectedManifests {
        let mut pending: Vec<_> = self.pending.drain().collect();
        pending.sort_unstable_by_key(|(writer, _)| *writer);
        for (writer, pending) in pending {
            let chunks = pending.chunks.len();
            let problem = ManifestFaultKind::Incomplete {
                found: chunks,
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
            // The thread began a new copy of its manifest, for example for a second trace session.
            let before = std::mem::take(pending);
            self.pending_bytes -= before.bytes;
            if !before.chunks.is_empty() {
                let chunks = before.chunks.len();
                let problem = ManifestFaultKind::Incomplete {
                    found: chunks,
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
        // Every process writes the same manifest. It writes the manifest again when the session ends. So each
        // manifest is kept only once.
        let manifest = (writer.provider, chunks.concat());
        if self.finished.contains(&manifest) {
            return;
        }
        match parse(&manifest.1) {
            Ok(providers) => {
                self.fields += providers
                    .iter()
                    .map(ManifestProvider::field_count)
                    .sum::<usize>();
                if self.fields > MAX_FIELDS {
                    self.collected.fault(writer, ManifestFaultKind::TooLarge);
                } else {
                    self.collected.providers.extend(providers);
                }
            }
            Err(problem) => self.collected.fault(writer, problem),
        }
        self.finished.insert(manifest);
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
        if self.faults.len() < MAX_FAULTS && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

/// Reads a complete manifest.
fn parse(bytes: &[u8]) -> Result<Vec<ManifestProvider>, ManifestFaultKind> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ManifestFaultKind::NotUtf8(error.valid_up_to()))?;
    // Some writers pad the last chunk with NULs.
    let mut providers = parse_manifest(text.trim_end_matches('\0'))?;
    for described in &mut providers {
        for schema in described.events.values_mut() {
            schema.source = Source::EventSource;
        }
    }
    Ok(providers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = include_bytes!("../tests/data/event_source.man");

    fn writer(thread: u32) -> Writer {
        let provider = "5b2e7d10-94c3-4f8a-8a6e-0d1c2b3a4f55".parse().unwrap();
        Writer {
            provider,
            process: 7,
            thread,
        }
    }

    fn chunk(number: u16, total: u16, text: &[u8]) -> Vec<u8> {
        let [n, t] = [number.to_le_bytes(), total.to_le_bytes()];
        [&[1, 1, 0, MAGIC], &t[..], &n[..], text].concat()
    }

    /// Returns the test manifest in three chunks.
    fn chunks() -> [Vec<u8>; 3] {
        let (first, rest) = TEXT.split_at(1000);
        let (second, third) = rest.split_at(500);
        [chunk(0, 3, first), chunk(1, 3, second), chunk(2, 3, third)]
    }

    #[test]
    fn chunks_come_in_any_order_and_more_than_once() {
        let [first, second, third] = chunks();
        let mut manifests = EventSourceManifests::new();
        for bytes in [
            &third, &first, &first, &third, &second, &first, &second, &third,
        ] {
            manifests.push_chunk(writer(1), bytes);
        }
        let collected = manifests.finish();
        assert_eq!(collected.faults, []);
        let [provider] = &collected.providers[..] else {
            panic!("{collected:?}")
        };
        assert_eq!(&*provider.name, "Contoso-Web");
        assert!(
            provider
                .events
                .values()
                .all(|schema| schema.source == Source::EventSource)
        );
        assert_eq!(&*provider.events[&(1, 0)].name, "Request/Start");
    }

    #[test]
    fn threads_do_not_mix_and_missing_chunks_are_told() {
        let [first, second, third] = chunks();
        let mut manifests = EventSourceManifests::new();
        manifests.push_chunk(writer(1), &first);
        manifests.push_chunk(writer(2), &second);
        manifests.push_chunk(writer(1), &third);
        let collected = manifests.finish();
        assert_eq!(collected.providers, []);
        let kinds: Vec<_> = collected
            .faults
            .into_iter()
            .map(|fault| fault.problem)
            .collect();
        let incomplete = |found| ManifestFaultKind::Incomplete { found, expected: 3 };
        assert_eq!(kinds, [incomplete(2), incomplete(1)]);
    }

    #[test]
    fn a_writer_that_starts_over_is_read_from_there() {
        let mut manifests = EventSourceManifests::new();
        manifests.push_chunk(writer(1), &chunk(0, 3, b"<another"));
        for bytes in chunks() {
            manifests.push_chunk(writer(1), &bytes);
        }
        let collected = manifests.finish();
        assert_eq!(collected.providers.len(), 1);
        assert!(matches!(
            collected.faults[..],
            [ManifestFault {
                problem: ManifestFaultKind::Incomplete { found: 1, .. },
                ..
            }]
        ));
    }

    #[test]
    fn nonsense_is_a_fault_and_memory_is_bounded() {
        use ManifestFaultKind::*;
        let kind = |bytes: &[u8]| {
            let mut manifests = EventSourceManifests::new();
            manifests.push_chunk(writer(1), bytes);
            manifests.finish().faults.remove(0).problem
        };
        assert!(matches!(kind(&[1, 1, 0, MAGIC]), BadChunk(_)));
        assert!(matches!(kind(&chunk(3, 3, b"")), BadChunk(_)));
        assert!(matches!(kind(&chunk(0, 0, b"")), BadChunk(_)));
        assert_eq!(kind(&chunk(0, 1, b"ab\xff")), NotUtf8(2));
        assert!(matches!(kind(&chunk(0, 1, b"<a")), Manifest(_)));

        let mut manifests = EventSourceManifests::new();
        let text = vec![b' '; 0xFF00];
        for number in 0..2000 {
            manifests.push_chunk(writer(number.into()), &chunk(number, u16::MAX, &text));
            assert!(manifests.pending_bytes <= MAX_PENDING_BYTES);
        }
        for number in 0..1000 {
            manifests.push_chunk(writer(5000), &chunk(number, u16::MAX, &text));
            assert!(manifests.pending_bytes <= MAX_PENDING_BYTES);
        }
    }
}
