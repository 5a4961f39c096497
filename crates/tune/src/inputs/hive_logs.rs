//! Changes of a hive that are in its transaction logs only: Windows writes them there first, and to the
//! hive itself up to an hour later. A hive that was copied in between says what was before them.
//!
//! Format: <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>

use std::io::Cursor;

use ::regf::TransactionLog;
use ::regf::structures::{BASE_BLOCK_SIZE, BaseBlock};
use ::regf::transaction_log::LogEntry;

use super::regf;

/// How the names of logs end, after that of their hive.
pub(super) const ENDS: [&str; 3] = [".log", ".log1", ".log2"];

/// Where the changes begin in a log, in bytes.
const SECTOR: usize = 512;

/// A log, as a file of its own.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Bytes that belong into a hive.
struct Page {
    /// Where, from the hive's first bin.
    offset: u32,
    bytes: Vec<u8>,
}

/// What was written to the hive at once.
struct Change {
    /// Its number; logs before Windows 8.1 have none.
    number: Option<u32>,
    pages: Vec<Page>,
}

/// Whether these are the first bytes of a log: one begins as hives do, but says what it is.
pub(super) fn is_log(bytes: &[u8]) -> bool {
    let kind = bytes.get(28..32);
    regf::starts(bytes) && kind.is_some_and(|kind| matches!(kind, [1 | 2 | 6, 0, 0, 0]))
}

/// Whether a file of that name is a log of the hive of the other name.
pub(super) fn is_named_after(log: &str, hive: &str) -> bool {
    let (log, hive) = (log.to_lowercase(), hive.to_lowercase());
    log.strip_prefix(&hive)
        .is_some_and(|end| ENDS.contains(&end))
}

/// Brings into a hive what is in its logs only, and says what was found. A hive that holds all of its
/// changes is left as it is.
pub(super) fn replay(hive: &mut Vec<u8>, logs: impl FnOnce() -> Vec<Log>) -> Vec<String> {
    let head = hive.get(..BASE_BLOCK_SIZE);
    let Some(head) = head.and_then(|head| BaseBlock::parse(head).ok()) else {
        return Vec::new();
    };
    if head.checksum_valid && head.primary_sequence == head.secondary_sequence {
        return Vec::new();
    }
    let mut said = Vec::new();
    if !head.checksum_valid {
        said.push(
            "the checksum of its first block is wrong, so which changes it lacks is not known: what is \
             in its logs is not read"
                .to_owned(),
        );
        return said;
    }
    let mut changes = Vec::new();
    for Log { name, bytes } in logs() {
        // One of them is in most cases made and never written to.
        if bytes.is_empty() {
            continue;
        }
        match TransactionLog::parse(Cursor::new(&bytes)) {
            Ok(log) => {
                if let Some(at) = broken_off(&log, &bytes) {
                    said.push(format!(
                        "the log {name} is damaged at byte {at:#x}: what it has from there on is not read"
                    ));
                }
                changes.extend(lacking(log, &head));
            }
            Err(error) => said.push(format!("the log {name} cannot be read: {error}")),
        }
    }
    changes.sort_by_key(|change| change.number);
    if changes.is_empty() {
        said.push(
            "the hive was copied while in use, and its last changes are missing: they are in its .LOG1 \
             and .LOG2, of which none beside it has them"
                .to_owned(),
        );
        return said;
    }
    let (first, last) = (changes[0].number, changes[changes.len() - 1].number);
    said.push(match first.zip(last) {
        Some((first, last)) => format!(
            "the hive was copied while in use: its changes {first} to {last} are taken from its logs"
        ),
        None => "the hive was copied while in use: its last change is taken from its log".to_owned(),
    });
    let before = head.primary_sequence.wrapping_sub(1);
    let numbers: Vec<u32> = [before]
        .into_iter()
        .chain(changes.iter().filter_map(|change| change.number))
        .collect();
    for pair in numbers.windows(2) {
        if pair[1] > pair[0].saturating_add(1) {
            said.push(format!(
                "its changes {} to {} are in none of its logs; what they set may be missing",
                pair[0].saturating_add(1),
                pair[1] - 1
            ));
        }
    }
    if let Err(why) = write(hive, &changes) {
        said.push(why);
    }
    said
}

/// Where a log has a change that was not read, since it is not whole.
fn broken_off(log: &TransactionLog, bytes: &[u8]) -> Option<usize> {
    let TransactionLog::New(log) = log else {
        return None;
    };
    let sizes = log.log_entries.iter().map(|entry| entry.size as usize);
    let end = sizes.fold(SECTOR, usize::saturating_add);
    let next = bytes.get(end..)?;
    next.starts_with(LogEntry::SIGNATURE).then_some(end)
}

/// The changes of a log that the hive lacks.
fn lacking(log: TransactionLog, head: &BaseBlock) -> Vec<Change> {
    match log {
        TransactionLog::Old(log) if !log.can_apply_to(head.last_written) => Vec::new(),
        TransactionLog::Old(log) => {
            let pages = log.dirty_pages.into_iter().map(|page| Page {
                offset: page.offset,
                bytes: page.data,
            });
            vec![Change {
                number: None,
                pages: pages.collect(),
            }]
        }
        TransactionLog::New(log) => (log.log_entries.into_iter())
            .filter(|entry| entry.sequence_number >= head.primary_sequence)
            .map(|entry| Change {
                number: Some(entry.sequence_number),
                pages: (entry.page_references.iter().zip(entry.dirty_pages))
                    .map(|(reference, bytes)| Page {
                        offset: reference.offset,
                        bytes,
                    })
                    .collect(),
            })
            .collect(),
    }
}

/// Writes the changes into the hive, which grows by no more than they hold.
fn write(hive: &mut Vec<u8>, changes: &[Change]) -> Result<(), String> {
    let pages = || changes.iter().flat_map(|change| &change.pages);
    let logged: usize = pages().map(|page| page.bytes.len()).sum();
    let most = hive.len().saturating_add(logged);
    for page in pages() {
        let start =
            BASE_BLOCK_SIZE.saturating_add(usize::try_from(page.offset).unwrap_or(usize::MAX));
        let end = start.saturating_add(page.bytes.len());
        if end > most {
            return Err(format!(
                "a page in its logs belongs to byte {start:#x}, far beyond its end: it and those after it \
                 are not read"
            ));
        }
        if end > hive.len() {
            hive.resize(end, 0);
        }
        hive[start..end].copy_from_slice(&page.bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::regf::structures::{FileType, calculate_checksum};
    use ::regf::transaction_log::DirtyPageReference;
    use testdata::Rng;

    use super::*;

    const BINS: u32 = 8192;

    /// The first block of a hive or of a log, by the format's document.
    fn head(kind: FileType, primary: u32, secondary: u32) -> Vec<u8> {
        let mut head = vec![0; BASE_BLOCK_SIZE];
        head[..4].copy_from_slice(b"regf");
        for (at, number) in [
            (4, primary),
            (8, secondary),
            (20, 1),
            (24, 5),
            (28, kind as u32),
            (32, 1),
            (36, 32),
            (40, BINS),
            (44, 1),
        ] {
            head[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = calculate_checksum(&head);
        head[508..512].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// A hive whose bins are of zeros, and whose last two writes are in logs.
    fn dirty() -> Vec<u8> {
        let mut hive = head(FileType::Primary, 10, 9);
        hive.resize(BASE_BLOCK_SIZE + BINS as usize, 0);
        hive
    }

    /// A log with changes of one page each: their number, the page's offset and what fills it. Written
    /// by a library that is not ours.
    fn log(name: &str, changes: &[(u32, u32, u8)]) -> Log {
        let first = changes[0].0;
        let mut bytes = head(FileType::TransactionLogNew, first, first);
        bytes.truncate(512);
        for (number, offset, fill) in changes {
            let entry = LogEntry {
                signature: *LogEntry::SIGNATURE,
                size: 4608,
                flags: 0,
                sequence_number: *number,
                hive_bins_data_size: BINS.max(offset + 4096),
                dirty_pages_count: 1,
                hash1: 0,
                hash2: 0,
                page_references: vec![DirtyPageReference {
                    offset: *offset,
                    size: 4096,
                }],
                dirty_pages: vec![vec![*fill; 4096]],
            };
            entry.write(&mut bytes).unwrap();
        }
        Log {
            name: name.to_owned(),
            bytes,
        }
    }

    #[test]
    fn changes_are_brought_in_by_their_numbers_whichever_log_has_them() {
        let mut hive = dirty();
        let logs = vec![
            log("SYSTEM.LOG1", &[(11, 4096, 0xBB)]),
            // Number 9 is in the hive already; 10 goes before 11.
            log(
                "SYSTEM.LOG2",
                &[(9, 0, 0x99), (10, 4096, 0xAA), (10, 8192, 0xCC)],
            ),
        ];
        let said = replay(&mut hive, || logs);
        assert_eq!(
            said,
            ["the hive was copied while in use: its changes 10 to 11 are taken from its logs"]
        );
        assert_eq!(hive.len(), BASE_BLOCK_SIZE + 3 * 4096, "it grew by a page");
        assert_eq!(hive[BASE_BLOCK_SIZE], 0);
        assert_eq!(hive[BASE_BLOCK_SIZE + 4096], 0xBB);
        assert_eq!(hive[BASE_BLOCK_SIZE + 8192], 0xCC);
    }

    #[test]
    fn what_cannot_be_brought_in_is_said() {
        let mut hive = dirty();
        let none = replay(&mut hive, Vec::new);
        assert!(none[0].contains("its last changes are missing"), "{none:?}");
        let gap = replay(&mut hive, || vec![log("a.LOG1", &[(12, 0, 1)])]);
        assert!(gap[1].contains("changes 10 to 11 are in none"), "{gap:?}");
        let far = replay(&mut hive, || vec![log("a.LOG1", &[(10, 1 << 20, 1)])]);
        assert!(far[1].contains("far beyond its end"), "{far:?}");
        let mut broken = log("a.LOG1", &[(10, 0, 1)]);
        broken.bytes[8] ^= 1;
        let said = replay(&mut hive, || vec![broken]);
        assert!(said[0].contains("a.LOG1 cannot be read"), "{said:?}");
        let mut torn = log("a.LOG1", &[(10, 0, 1), (11, 0, 2)]);
        *torn.bytes.last_mut().unwrap() ^= 1;
        let said = replay(&mut hive, || vec![torn]);
        assert!(
            said[0].contains("a.LOG1 is damaged at byte 0x1400"),
            "{said:?}"
        );
        assert!(
            said[1].contains("its changes 10 to 10 are taken"),
            "{said:?}"
        );
    }

    #[test]
    fn a_hive_that_holds_all_its_changes_is_left_as_it_is() {
        let mut hive = head(FileType::Primary, 10, 10);
        assert!(replay(&mut hive, || unreachable!("no log is asked for")).is_empty());
        assert!(!is_log(&hive));
        assert!(is_log(&log("a", &[(1, 0, 0)]).bytes));
    }

    /// An old log, by the format's document: a bitmap of pages of 512 bytes, then these.
    #[test]
    fn a_log_from_before_windows_8_1_is_brought_in() {
        let mut hive = dirty();
        let mut bytes = head(FileType::TransactionLog, 10, 10);
        bytes.truncate(512);
        bytes.extend(b"DIRT");
        // The ninth page.
        bytes.extend([0, 1]);
        bytes.resize(1024, 0);
        bytes.extend([7; 512]);
        let name = "SYSTEM.LOG1".to_owned();
        let said = replay(&mut hive, || vec![Log { name, bytes }]);
        assert!(said[0].contains("its last change is taken"), "{said:?}");
        assert_eq!(hive[BASE_BLOCK_SIZE + 8 * 512 - 1], 0);
        assert_eq!(hive[BASE_BLOCK_SIZE + 8 * 512..][..512], [7; 512]);
        assert_eq!(hive[BASE_BLOCK_SIZE + 9 * 512], 0);
    }

    #[test]
    fn any_damage_to_a_log_is_survived() {
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
            let _ = replay(&mut hive, || vec![Log { name, bytes }]);
            assert!(hive.len() <= BASE_BLOCK_SIZE + 4 * 4096);
        }
    }
}
