//! The hash table by which debuggers find symbols of a name.

use std::cmp::Ordering;

use etl::write::Payload;

/// Number of buckets: IPHR_HASH of Microsoft's sources.
const BUCKETS: usize = 4096;

/// Bytes that a hash record had in the memory of the 32-bit programs the format comes from: buckets
/// count in these.
const RECORD_IN_MEMORY: u32 = 12;

/// A symbol with a name.
pub(super) struct Public<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Where its record begins in the stream of symbol records.
    pub(super) record: u32,
}

/// The table: a header, the symbols in the order of their buckets, which buckets have any, and where
/// each of those begins.
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
        records.u32(symbol.record + 1).u32(1); // one more, since 0 is none; one use
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

/// Within a bucket, shorter names come first, then case does not count, then addresses decide.
fn by_name(a: &Public<'_>, b: &Public<'_>) -> Ordering {
    let lower = |public: &Public<'_>| public.name.to_ascii_lowercase();
    (a.name.len().cmp(&b.name.len()))
        .then_with(|| lower(a).cmp(&lower(b)))
        .then(a.record.cmp(&b.record))
}

/// The hash of a name (`LHashPbCb` of Microsoft's sources, `hashStringV1` of LLVM's): its 32-bit
/// words and what is left over xored, folded, and without regard to the case of ASCII letters.
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
