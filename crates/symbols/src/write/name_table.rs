//! Hash table in which debuggers find symbols by name.

use std::cmp::Ordering;

use etl::write::Payload;

/// Number of buckets (IPHR_HASH in Microsoft's sources).
const BUCKETS: usize = 4096;

/// Unit of the bucket offsets in bytes. This is the size of a hash record in the memory of the original
/// 32-bit programs.
const RECORD_IN_MEMORY: u32 = 12;

/// A public symbol with its name.
pub(super) struct Public<'a> {
    /// Name of the symbol.
    pub(super) name: &'a str,
    /// Offset of the symbol's record in the stream of symbol records.
    pub(super) record: u32,
}

/// Returns the hash table. It consists of a header, the symbols sorted by bucket, a bit mask of the non-empty
/// buckets, and the offset of the first symbol in each non-empty bucket.
pub(super) fn name_table(symbols: &[Public<'_>]) -> Payload {
    const VERSION: u32 = 0xeffe_0000 + 19_990_810;
    let mut order: Vec<(usize, &Public<'_>)> = symbols
        .iter()
        .map(|symbol| (hash(symbol.name.as_bytes()) as usize % BUCKETS, symbol))
        .collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_name(a.1, b.1)));

    let mut records = Payload::new();
    let mut bitmap = [0u32; BUCKETS / 32 + 1];
    let mut begins = Payload::new();
    for (at, (bucket, symbol)) in order.iter().enumerate() {
        records.u32(symbol.record + 1).u32(1); // offset + 1, because 0 means no symbol; one reference
        if at == 0 || order[at - 1].0 != *bucket {
            bitmap[bucket / 32] |= 1 << (bucket % 32);
            begins.u32(at as u32 * RECORD_IN_MEMORY);
        }
    }
    let mut table = Payload::new();
    table.u32(u32::MAX).u32(VERSION).u32(records.len() as u32);
    table.u32((4 * bitmap.len() + begins.len()) as u32);
    table.bytes(&records);
    for word in bitmap {
        table.u32(word);
    }
    table.bytes(&begins);
    table
}

/// Compares two symbols of a bucket: first by the length of their names, then by name (case is ignored), then
/// by record.
fn by_name(a: &Public<'_>, b: &Public<'_>) -> Ordering {
    let lower = |public: &Public<'_>| public.name.to_ascii_lowercase();
    (a.name.len().cmp(&b.name.len()))
        .then_with(|| lower(a).cmp(&lower(b)))
        .then(a.record.cmp(&b.record))
}

/// Returns the hash of a name (`LHashPbCb` in Microsoft's sources, `hashStringV1` in LLVM's sources). The
/// hash is the XOR of the 32-bit words of the name and of the remaining bytes. The result is then folded. The
/// case of ASCII letters is ignored.
fn hash(name: &[u8]) -> u32 {
    let (words, rest) = name.as_chunks::<4>();
    let mut hash = words
        .iter()
        .fold(0, |hash, word| hash ^ u32::from_le_bytes(*word));
    let (halves, rest) = rest.as_chunks::<2>();
    for half in halves {
        hash ^= u32::from(u16::from_le_bytes(*half));
    }
    for byte in rest {
        hash ^= u32::from(*byte);
    }
    hash |= 0x2020_2020;
    hash ^= hash >> 11;
    hash ^ hash >> 16
}
