//! Transaction logs of hives. Windows first writes a change to a log, and up to an hour later to the hive. A hive that
//! is copied between these two writes lacks the change.
//!
//! Format: <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>

use std::fmt;

use crate::hive::{BASE, is_hive, u32_at};

/// Endings of a log's file name. The file name is the name of the hive and one of these endings.
const ENDINGS: [&str; 3] = [".log", ".log1", ".log2"];

/// Size of a sector in bytes. Logs are written in sectors, and a log's base block is one sector.
const SECTOR: usize = 512;

/// Signature of an entry in a log.
const SIGNATURE: &[u8] = b"HvLE";

/// Size of an entry's header in bytes. After the header, an entry has references to pages.
const HEADER: usize = 40;

/// A transaction log file.
#[derive(Clone)]
pub struct HiveLog {
    /// File name of the log.
    pub name: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Message of [`replay`] to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayNote {
    /// The base block of the hive is damaged, so it is unknown whether changes are missing.
    HiveChecksum,
    /// The base block of a log is damaged. The log was not read.
    LogUnreadable {
        /// File name of the log.
        log: String,
    },
    /// A log is damaged. The entries before the damage were read.
    LogDamaged {
        /// File name of the log.
        log: String,
        /// Offset of the damage, in bytes.
        at: usize,
    },
    /// Changes are missing in the hive, and no log contains these changes.
    ChangesMissing,
    /// Changes were applied. Contains the sequence numbers of the first and the last applied change. A log of
    /// Windows 8 or earlier has a single change without a sequence number. For such a log, contains `None`.
    Applied(Option<(u32, u32)>),
    /// Changes are missing in all logs. Contains the sequence numbers of the first and the last missing
    /// change.
    Gap(u32, u32),
    /// A page in a log is far beyond the end of the hive. This page and all later pages were not applied.
    PageOutOfRange {
        /// Offset of the page from the start of the hive file, in bytes.
        at: usize,
    },
}

impl fmt::Display for ReplayNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HiveChecksum => f.write_str(
                "the checksum of the hive's base block is wrong, so its logs were not read: its last \
                 changes may be missing",
            ),
            Self::LogUnreadable { log } => {
                write!(f, "cannot read the log {log}: its base block is damaged")
            }
            Self::LogDamaged { log, at } => write!(
                f,
                "the log {log} is damaged at byte {at:#x}: its entries from there on were not read"
            ),
            Self::ChangesMissing => f.write_str(
                "the hive was copied while in use and lacks its last changes, and no log next to it has \
                 them: copy its .LOG1 and .LOG2 files too",
            ),
            Self::Applied(Some((first, last))) => write!(
                f,
                "the hive was copied while in use: changes {first} to {last} were read from its logs"
            ),
            Self::Applied(None) => f.write_str(
                "the hive was copied while in use: its last change was read from its log",
            ),
            Self::Gap(first, last) => write!(
                f,
                "no log has changes {first} to {last} of the hive: settings may be missing or outdated"
            ),
            Self::PageOutOfRange { at } => write!(
                f,
                "a page in the logs belongs to byte {at:#x}, far beyond the end of the hive: this \
                 page and the pages after it were not read"
            ),
        }
    }
}

/// Bytes to write into a hive at an offset.
struct Page<'a> {
    /// Offset in the hive in bytes. The base block is not counted.
    offset: u32,
    bytes: &'a [u8],
}

/// Change of a hive. It consists of pages that Windows writes to the hive together.
struct Change<'a> {
    /// Sequence number of the change. Logs of Windows versions before 8.1 have no sequence numbers.
    number: Option<u32>,
    pages: Vec<Page<'a>>,
}

/// Base block of a hive or a log.
struct BaseBlock {
    /// Sequence number of the last write that started.
    primary: u32,
    /// Sequence number of the last write that finished.
    secondary: u32,
    /// Time of the last write, in the form that the file contains.
    time: [u32; 2],
    kind: u32,
    /// Size of the hive's data without the base block, in bytes.
    bins: u32,
}

impl BaseBlock {
    /// Parses a base block. Returns `None` if the checksum of the base block is wrong.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let words = bytes.get(..508)?.as_chunks::<4>().0.iter();
        let sum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
        // Windows never writes a checksum of 0 or `u32::MAX`. It writes 1 or `u32::MAX - 1` instead.
        let checksum = match sum {
            0 => 1,
            u32::MAX => u32::MAX - 1,
            sum => sum,
        };
        let field = |at| u32_at(bytes, at);
        (field(508)? == checksum).then_some(Self {
            primary: field(4)?,
            secondary: field(8)?,
            time: [field(12)?, field(16)?],
            kind: field(28)?,
            bins: field(40)?,
        })
    }
}

/// Returns true if a file is a transaction log. A log and a hive have the same signature, but they have
/// different values in the type field.
pub fn is_hive_log(bytes: &[u8]) -> bool {
    let kind = bytes.get(28..32);
    is_hive(bytes) && kind.is_some_and(|kind| matches!(kind, [1 | 2 | 6, 0, 0, 0]))
}

/// Returns true if `log` is the file name of a log of the hive with file name `hive`.
pub fn is_log_name_of(log: &str, hive: &str) -> bool {
    let (log, hive) = (log.to_lowercase(), hive.to_lowercase());
    log.strip_prefix(&hive)
        .is_some_and(|end| ENDINGS.contains(&end))
}

/// Applies to `hive` the changes that only the logs of `hive` contain. Calls `logs` only if changes are
/// missing in the hive.
pub fn replay(hive: &mut Vec<u8>, logs: impl FnOnce() -> Vec<HiveLog>) -> Vec<ReplayNote> {
    if hive.len() < BASE {
        return Vec::new();
    }
    let Some(block) = BaseBlock::parse(hive) else {
        return vec![ReplayNote::HiveChecksum];
    };
    if block.primary == block.secondary {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let logs = logs();
    let mut changes = Vec::new();
    for HiveLog { name, bytes } in &logs {
        // Windows creates two logs and often never writes to one of them. So an empty log is skipped.
        if bytes.is_empty() {
            continue;
        }
        let log = name.clone();
        match collect_missing(bytes, &block, &mut changes) {
            Ok(()) => {}
            Err(Damage::BaseBlock) => notes.push(ReplayNote::LogUnreadable { log }),
            Err(Damage::At(at)) => notes.push(ReplayNote::LogDamaged { log, at }),
        }
    }
    changes.sort_by_key(|change| change.number);
    let ([first, ..], [.., last]) = (&changes[..], &changes[..]) else {
        notes.push(ReplayNote::ChangesMissing);
        return notes;
    };
    notes.push(ReplayNote::Applied(first.number.zip(last.number)));
    // The last finished write may also be in a log. Entries before it were dropped from the logs, which is no gap.
    let has_finished = first.number == Some(block.secondary);
    let start = if has_finished {
        block.secondary
    } else {
        block.primary
    };
    let mut before = start.wrapping_sub(1);
    for number in changes.iter().filter_map(|change| change.number) {
        if number > before.saturating_add(1) {
            notes.push(ReplayNote::Gap(before.saturating_add(1), number - 1));
        }
        before = number;
    }
    notes.extend(apply(hive, &changes).err());
    notes
}

/// Position of a damage in a log. The log cannot be read from this position to its end.
enum Damage {
    BaseBlock,
    At(usize),
}

/// Adds changes from `log` to `changes`. Changes that the hive already contains are left out.
fn collect_missing<'a>(
    log: &'a [u8],
    hive: &BaseBlock,
    changes: &mut Vec<Change<'a>>,
) -> Result<(), Damage> {
    let block = BaseBlock::parse(log).ok_or(Damage::BaseBlock)?;
    if block.kind != 6 {
        let is_complete = block.primary == block.secondary;
        // Old logs have separate sequence numbers. They cannot be compared with the sequence numbers of the
        // hive. So the times are compared: if they are equal, the log belongs to this state of the hive.
        if is_complete && block.time == hive.time {
            changes.push(parse_old_log(log, &block).ok_or(Damage::At(SECTOR))?);
        }
        return Ok(());
    }
    let mut at = SECTOR;
    while log
        .get(at..)
        .is_some_and(|rest| rest.starts_with(SIGNATURE))
    {
        let (size, change) = parse_entry(&log[at..]).ok_or(Damage::At(at))?;
        // The secondary number is that of the last write that finished. Windows applies this entry again, because a
        // hive that was copied in use may have only some of its pages.
        if change.number >= Some(hive.secondary) {
            changes.push(change);
        }
        at += size;
    }
    Ok(())
}

/// Parses a log of a Windows version before 8.1. The log has a bitmap of the hive's sectors. After the bitmap
/// come the sectors whose bits are set.
fn parse_old_log<'a>(log: &'a [u8], block: &BaseBlock) -> Option<Change<'a>> {
    let count = block.bins as usize / SECTOR;
    let bitmap = log.get(SECTOR..)?.strip_prefix(b"DIRT")?;
    let bitmap = bitmap.get(..count.div_ceil(8))?;
    let mut sectors = log.get(SECTOR + (4 + bitmap.len()).next_multiple_of(SECTOR)..)?;
    let mut pages = Vec::new();
    for number in 0..count {
        if bitmap[number / 8] >> (number % 8) & 1 == 1 {
            let (bytes, rest) = sectors.split_at_checked(SECTOR)?;
            sectors = rest;
            let offset = u32::try_from(number * SECTOR).ok()?;
            pages.push(Page { offset, bytes });
        }
    }
    Some(Change {
        number: None,
        pages,
    })
}

/// Parses a log entry. Returns the size of the entry in bytes and its change. Returns `None` if the entry is
/// incomplete or a hash is wrong.
fn parse_entry(log: &[u8]) -> Option<(usize, Change<'_>)> {
    let field = |at| u32_at(log, at);
    let size = usize::try_from(field(4)?).ok()?;
    if size < HEADER || !size.is_multiple_of(SECTOR) {
        return None;
    }
    let entry = log.get(..size)?;
    let hash = |at: usize| Some(u64::from(field(at)?) | u64::from(field(at + 4)?) << 32);
    if hash(24)? != marvin32(SEED, &entry[HEADER..]) || hash(32)? != marvin32(SEED, &entry[..32]) {
        return None;
    }
    let count = usize::try_from(field(20)?).ok()?;
    let references = entry.get(HEADER..HEADER.checked_add(count.checked_mul(8)?)?)?;
    let mut rest = &entry[HEADER + references.len()..];
    let mut pages = Vec::new();
    for reference in references.as_chunks::<8>().0 {
        let offset = u32_at(reference, 0)?;
        let (bytes, others) =
            rest.split_at_checked(usize::try_from(u32_at(reference, 4)?).ok()?)?;
        rest = others;
        pages.push(Page { offset, bytes });
    }
    let number = Some(field(12)?);
    Some((size, Change { number, pages }))
}

/// Seed of the hashes in logs. The specification of the format lists the bytes `82 EF 4D 88 7A 4E 55 C5`. Windows uses
/// them as one big-endian number. With the little-endian number, the hashes differ from the hashes in files that
/// Windows wrote.
const SEED: u64 = 0x82EF_4D88_7A4E_55C5;

/// Returns the Marvin32 hash. The computation is the same as in the source of .NET:
/// <https://github.com/dotnet/runtime/blob/main/src/libraries/System.Private.CoreLib/src/System/Marvin.cs>.
fn marvin32(seed: u64, bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..odd.len()].copy_from_slice(odd);
    last[odd.len()] = 0x80;
    let words = words.iter().chain([&last, &[0; 4]]);
    let (mut low, mut high) = (seed as u32, (seed >> 32) as u32);
    for word in words {
        low = low.wrapping_add(u32::from_le_bytes(*word));
        high ^= low;
        low = low.rotate_left(20).wrapping_add(high);
        high = high.rotate_left(9) ^ low;
        low = low.rotate_left(27).wrapping_add(high);
        high = high.rotate_left(19);
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes changes into the hive. The hive may grow at most by the number of bytes in the changes.
fn apply(hive: &mut Vec<u8>, changes: &[Change<'_>]) -> Result<(), ReplayNote> {
    let pages = || changes.iter().flat_map(|change| &change.pages);
    let logged: usize = pages().map(|page| page.bytes.len()).sum();
    let most = hive.len().saturating_add(logged);
    for page in pages() {
        let at = BASE.saturating_add(usize::try_from(page.offset).unwrap_or(usize::MAX));
        let end = at.saturating_add(page.bytes.len());
        if end > most {
            return Err(ReplayNote::PageOutOfRange { at });
        }
        if end > hive.len() {
            hive.resize(end, 0);
        }
        hive[at..end].copy_from_slice(page.bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;

    const BINS: u32 = 8192;
    const HIVE: u32 = 0;
    const OLD_LOG: u32 = 1;
    const NEW_LOG: u32 = 6;

    /// Builds the base block of a hive or a log, as the specification describes it.
    fn base_block(kind: u32, primary: u32, secondary: u32) -> Vec<u8> {
        let mut block = vec![0; BASE];
        block[..4].copy_from_slice(b"regf");
        for (at, number) in [
            (4, primary),
            (8, secondary),
            (20, 1),
            (24, 5),
            (28, kind),
            (32, 1),
            (36, 32),
            (40, BINS),
            (44, 1),
        ] {
            block[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let words = block[..508].as_chunks::<4>().0.iter();
        let checksum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
        block[508..512].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    /// Returns a hive of zeros that lacks its last write. The sequence number of the started write is 10, and
    /// the sequence number of the finished write is 9.
    fn dirty() -> Vec<u8> {
        let mut hive = base_block(HIVE, 10, 9);
        hive.resize(BASE + BINS as usize, 0);
        hive
    }

    /// Returns a log. Each change in the log has one page. Each element of `changes` has the number of the
    /// change, the offset of the page, and the byte that fills the page.
    fn log(name: &str, changes: &[(u32, u32, u8)]) -> HiveLog {
        let first = changes[0].0;
        let mut bytes = base_block(NEW_LOG, first, first);
        bytes.truncate(512);
        for (number, offset, fill) in changes {
            let mut entry = vec![0; 4608];
            entry[..4].copy_from_slice(SIGNATURE);
            for (at, field) in [
                (4, 4608),
                (12, *number),
                (16, BINS),
                (20, 1),
                (40, *offset),
                (44, 4096),
            ] {
                entry[at..at + 4].copy_from_slice(&field.to_le_bytes());
            }
            entry[48..48 + 4096].fill(*fill);
            let hash = marvin32(SEED, &entry[HEADER..]);
            entry[24..32].copy_from_slice(&hash.to_le_bytes());
            let hash = marvin32(SEED, &entry[..32]);
            entry[32..40].copy_from_slice(&hash.to_le_bytes());
            bytes.extend(entry);
        }
        HiveLog {
            name: name.to_owned(),
            bytes,
        }
    }

    /// Compares hashes with the test vectors of SymCrypt. Also compares a hash with the header of an entry
    /// that Windows wrote, in SYSTEM_B.LOG1 of
    /// <https://github.com/mkorman90/regipy/tree/master/regipy_tests/data>.
    #[test]
    fn hashes_match_published_vectors_and_windows() {
        const SYMCRYPT: u64 = 0x004F_B61A_001B_DBCC;
        assert_eq!(marvin32(SYMCRYPT, &[]), 0x30ED_35C1_00CD_3C7D);
        assert_eq!(marvin32(SYMCRYPT, &[0xAF]), 0x48E7_3FC7_7D75_DDC1);
        assert_eq!(marvin32(SYMCRYPT, &[0xE7, 0x0F]), 0xB5F6_E1FC_485D_BFF8);
        let header: [u8; 40] = [
            0x48, 0x76, 0x4c, 0x45, 0x00, 0x3e, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x3b, 0x08,
            0x00, 0x00, 0x00, 0x30, 0xbd, 0x00, 0x03, 0x00, 0x00, 0x00, 0xc4, 0x81, 0x2c, 0xbe,
            0xa1, 0xb6, 0x70, 0x4b, 0x0a, 0xf3, 0x48, 0xdf, 0xd7, 0xc5, 0x88, 0xdd,
        ];
        let hash = u64::from_le_bytes(header[32..].try_into().unwrap());
        assert_eq!(marvin32(SEED, &header[..32]), hash);
    }

    #[test]
    fn changes_are_applied_by_number_from_any_log() {
        let mut hive = dirty();
        let logs = vec![
            log("SYSTEM.LOG1", &[(11, 4096, 0xBB)]),
            // Change 8 is older than the hive. Change 10 must be applied before change 11.
            log(
                "SYSTEM.LOG2",
                &[
                    (8, 0, 0x88),
                    (9, 8192, 0x99),
                    (10, 4096, 0xAA),
                    (10, 12288, 0xCC),
                ],
            ),
        ];
        let notes = replay(&mut hive, || logs);
        assert_eq!(notes, [ReplayNote::Applied(Some((9, 11)))]);
        assert_eq!(hive.len(), BASE + 4 * 4096, "the hive grew by two pages");
        assert_eq!(hive[BASE], 0);
        assert_eq!(hive[BASE + 4096], 0xBB);
        assert_eq!(hive[BASE + 8192], 0x99);
        assert_eq!(hive[BASE + 12288], 0xCC);
    }

    #[test]
    fn a_log_that_starts_after_the_finished_write_has_no_gap() {
        for (changes, expected) in [
            (&[(9, 0, 1), (10, 0, 2)][..], vec![]),
            (&[(10, 0, 2)], vec![]),
            (&[(9, 0, 1), (12, 0, 2)], vec![ReplayNote::Gap(10, 11)]),
        ] {
            let notes = replay(&mut dirty(), || vec![log("a.LOG1", changes)]);
            assert_eq!(notes[1..], expected, "{changes:?}");
        }
    }

    #[test]
    fn changes_that_cannot_be_applied_are_noted() {
        let mut hive = dirty();
        assert_eq!(replay(&mut hive, Vec::new), [ReplayNote::ChangesMissing]);
        let gap = replay(&mut hive, || vec![log("a.LOG1", &[(12, 0, 1)])]);
        assert_eq!(gap[1], ReplayNote::Gap(10, 11));
        let far = replay(&mut hive, || vec![log("a.LOG1", &[(10, 1 << 20, 1)])]);
        let at = BASE + (1 << 20);
        assert_eq!(far[1], ReplayNote::PageOutOfRange { at });
        let mut broken = log("a.LOG1", &[(10, 0, 1)]);
        broken.bytes[8] ^= 1;
        let notes = replay(&mut hive, || vec![broken]);
        let log_name = || "a.LOG1".to_owned();
        assert_eq!(notes[0], ReplayNote::LogUnreadable { log: log_name() });
        let mut torn = log("a.LOG1", &[(10, 0, 1), (11, 0, 2)]);
        *torn.bytes.last_mut().unwrap() ^= 1;
        let notes = replay(&mut hive, || vec![torn]);
        let damaged = ReplayNote::LogDamaged {
            log: log_name(),
            at: 0x1400,
        };
        assert_eq!(notes, [damaged, ReplayNote::Applied(Some((10, 10)))]);
    }

    #[test]
    fn a_complete_hive_is_not_changed() {
        let mut hive = base_block(HIVE, 10, 10);
        assert!(replay(&mut hive, || unreachable!("a complete hive needs no log")).is_empty());
        assert!(!is_hive_log(&hive));
        assert!(is_hive_log(&log("a", &[(1, 0, 0)]).bytes));
    }

    /// Applies an old log. The log is built as the specification describes it: a bitmap of pages of 512
    /// bytes, then the pages.
    #[test]
    fn a_log_from_before_windows_8_1_is_applied() {
        let mut hive = dirty();
        let mut bytes = base_block(OLD_LOG, 10, 10);
        bytes.truncate(512);
        bytes.extend(b"DIRT");
        // In the bitmap, only the bit of the ninth page is set.
        bytes.extend([0, 1]);
        bytes.resize(1024, 0);
        bytes.extend([7; 512]);
        let name = "SYSTEM.LOG1".to_owned();
        let notes = replay(&mut hive, || vec![HiveLog { name, bytes }]);
        assert_eq!(notes, [ReplayNote::Applied(None)]);
        assert_eq!(hive[BASE + 8 * 512 - 1], 0);
        assert_eq!(hive[BASE + 8 * 512..][..512], [7; 512]);
        assert_eq!(hive[BASE + 9 * 512], 0);
    }

    #[test]
    fn a_damaged_log_neither_panics_nor_grows_the_hive() {
        let whole = log("a.LOG1", &[(10, 0, 1), (11, 4096, 2)]).bytes;
        let mut rng = Rng(3);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(3) {
                let place = rng.below(600);
                bytes[place] = rng.bits() as u8;
            }
            bytes.truncate(bytes.len() - rng.below(2) * rng.below(bytes.len()));
            let name = String::new();
            let mut hive = dirty();
            let _ = replay(&mut hive, || vec![HiveLog { name, bytes }]);
            assert!(hive.len() <= BASE + 4 * 4096);
        }
    }
}
