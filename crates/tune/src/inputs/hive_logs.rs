//! Changes of a hive that are in its transaction logs only: Windows writes them there first, and to the
//! hive itself up to an hour later. A hive that was copied in between says what was before them.
//!
//! Format: <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>

use super::regf::{self, BASE, u32_at};

/// How the names of logs end, after that of their hive.
const ENDS: [&str; 3] = [".log", ".log1", ".log2"];

/// The unit that logs are written in, and the size of their first block. In bytes.
const SECTOR: usize = 512;

/// How a change begins in a log, before its references to pages.
const SIGNATURE: &[u8] = b"HvLE";
const HEADER: usize = 40;

/// A log, as a file of its own.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Bytes that belong into a hive.
struct Page<'a> {
    /// Where, from the hive's first bin.
    offset: u32,
    bytes: &'a [u8],
}

/// What was written to the hive at once.
struct Change<'a> {
    /// Its number; logs before Windows 8.1 have none.
    number: Option<u32>,
    pages: Vec<Page<'a>>,
}

/// What a hive or a log says of itself first.
struct Head {
    /// Numbers of the last write that was begun, and of the last that was ended.
    begun: u32,
    ended: u32,
    /// When it was written, as it is stored.
    time: [u32; 2],
    kind: u32,
    /// The size of its bins, in bytes.
    bins: u32,
}

impl Head {
    /// The head; `None` if its checksum is wrong.
    fn read(bytes: &[u8]) -> Option<Self> {
        let words = bytes.get(..508)?.as_chunks::<4>().0.iter();
        let sum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
        // Windows leaves out these two.
        let checksum = match sum {
            0 => 1,
            u32::MAX => u32::MAX - 1,
            sum => sum,
        };
        let field = |at| u32_at(bytes, at);
        (field(508)? == checksum).then_some(Self {
            begun: field(4)?,
            ended: field(8)?,
            time: [field(12)?, field(16)?],
            kind: field(28)?,
            bins: field(40)?,
        })
    }
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
    if hive.len() < BASE {
        return Vec::new();
    }
    let Some(head) = Head::read(hive) else {
        return vec![
            "the checksum of its first block is wrong, so which changes it lacks is not known: what is in \
             its logs is not read"
                .to_owned(),
        ];
    };
    if head.begun == head.ended {
        return Vec::new();
    }
    let mut said = Vec::new();
    let logs = logs();
    let mut changes = Vec::new();
    for Log { name, bytes } in &logs {
        // One of them is in most cases made and never written to.
        if bytes.is_empty() {
            continue;
        }
        match lacking(bytes, &head, &mut changes) {
            Ok(()) => {}
            Err(Broken::FromStart) => said.push(format!(
                "{name} is no log that can be read: its first block is damaged"
            )),
            Err(Broken::From(at)) => said.push(format!(
                "the log {name} is damaged at byte {at:#x}: what it has from there on is not read"
            )),
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
    let before = head.begun.wrapping_sub(1);
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

/// From where on a log cannot be read.
enum Broken {
    FromStart,
    From(usize),
}

/// Adds the changes of a log that the hive lacks.
fn lacking<'a>(log: &'a [u8], hive: &Head, changes: &mut Vec<Change<'a>>) -> Result<(), Broken> {
    let head = Head::read(log).ok_or(Broken::FromStart)?;
    if head.kind != 6 {
        let is_whole = head.begun == head.ended;
        // Its numbers are not the hive's: it is the log of this hive if both were written at once.
        if is_whole && head.time == hive.time {
            changes.push(old_change(log, &head).ok_or(Broken::From(SECTOR))?);
        }
        return Ok(());
    }
    let mut at = SECTOR;
    while log
        .get(at..)
        .is_some_and(|rest| rest.starts_with(SIGNATURE))
    {
        let (size, change) = new_change(&log[at..]).ok_or(Broken::From(at))?;
        if change.number >= Some(hive.begun) {
            changes.push(change);
        }
        at += size;
    }
    Ok(())
}

/// The change that a log from before Windows 8.1 holds: a bitmap of the hive's sectors, then those that are
/// set in it.
fn old_change<'a>(log: &'a [u8], head: &Head) -> Option<Change<'a>> {
    let count = head.bins as usize / SECTOR;
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

/// The change that begins here, with its size in bytes, if it is whole.
fn new_change(log: &[u8]) -> Option<(usize, Change<'_>)> {
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

/// The seed of the hashes in logs. The format's document gives its eight bytes in the other order: with this
/// one the hashes come out that Windows wrote.
const SEED: u64 = 0x82EF_4D88_7A4E_55C5;

/// Marvin32, by the source of .NET:
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

/// Writes the changes into the hive, which grows by no more than they hold.
fn write(hive: &mut Vec<u8>, changes: &[Change<'_>]) -> Result<(), String> {
    let pages = || changes.iter().flat_map(|change| &change.pages);
    let logged: usize = pages().map(|page| page.bytes.len()).sum();
    let most = hive.len().saturating_add(logged);
    for page in pages() {
        let start = BASE.saturating_add(usize::try_from(page.offset).unwrap_or(usize::MAX));
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
        hive[start..end].copy_from_slice(page.bytes);
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

    /// The first block of a hive or of a log, by the format's document.
    fn head(kind: u32, primary: u32, secondary: u32) -> Vec<u8> {
        let mut head = vec![0; BASE];
        head[..4].copy_from_slice(b"regf");
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
            head[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        let words = head[..508].as_chunks::<4>().0.iter();
        let checksum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
        head[508..512].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// A hive whose bins are of zeros, and whose last two writes are in logs.
    fn dirty() -> Vec<u8> {
        let mut hive = head(HIVE, 10, 9);
        hive.resize(BASE + BINS as usize, 0);
        hive
    }

    /// A log with changes of one page each: their number, the page's offset and what fills it.
    fn log(name: &str, changes: &[(u32, u32, u8)]) -> Log {
        let first = changes[0].0;
        let mut bytes = head(NEW_LOG, first, first);
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
        Log {
            name: name.to_owned(),
            bytes,
        }
    }

    /// Published vectors of SymCrypt, and the head of a change that Windows wrote: of SYSTEM_B.LOG1 in
    /// <https://github.com/mkorman90/regipy/tree/master/regipy_tests/data>.
    #[test]
    fn hashes_are_those_that_windows_writes() {
        const SYMCRYPT: u64 = 0x004F_B61A_001B_DBCC;
        assert_eq!(marvin32(SYMCRYPT, &[]), 0x30ED_35C1_00CD_3C7D);
        assert_eq!(marvin32(SYMCRYPT, &[0xAF]), 0x48E7_3FC7_7D75_DDC1);
        assert_eq!(marvin32(SYMCRYPT, &[0xE7, 0x0F]), 0xB5F6_E1FC_485D_BFF8);
        let head: [u8; 40] = [
            0x48, 0x76, 0x4c, 0x45, 0x00, 0x3e, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x3b, 0x08,
            0x00, 0x00, 0x00, 0x30, 0xbd, 0x00, 0x03, 0x00, 0x00, 0x00, 0xc4, 0x81, 0x2c, 0xbe,
            0xa1, 0xb6, 0x70, 0x4b, 0x0a, 0xf3, 0x48, 0xdf, 0xd7, 0xc5, 0x88, 0xdd,
        ];
        let hash = u64::from_le_bytes(head[32..].try_into().unwrap());
        assert_eq!(marvin32(SEED, &head[..32]), hash);
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
        assert_eq!(hive.len(), BASE + 3 * 4096, "it grew by a page");
        assert_eq!(hive[BASE], 0);
        assert_eq!(hive[BASE + 4096], 0xBB);
        assert_eq!(hive[BASE + 8192], 0xCC);
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
        assert!(
            said[0].contains("a.LOG1 is no log that can be read"),
            "{said:?}"
        );
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
        let mut hive = head(HIVE, 10, 10);
        assert!(replay(&mut hive, || unreachable!("no log is asked for")).is_empty());
        assert!(!is_log(&hive));
        assert!(is_log(&log("a", &[(1, 0, 0)]).bytes));
    }

    /// An old log, by the format's document: a bitmap of pages of 512 bytes, then these.
    #[test]
    fn a_log_from_before_windows_8_1_is_brought_in() {
        let mut hive = dirty();
        let mut bytes = head(OLD_LOG, 10, 10);
        bytes.truncate(512);
        bytes.extend(b"DIRT");
        // The ninth page.
        bytes.extend([0, 1]);
        bytes.resize(1024, 0);
        bytes.extend([7; 512]);
        let name = "SYSTEM.LOG1".to_owned();
        let said = replay(&mut hive, || vec![Log { name, bytes }]);
        assert!(said[0].contains("its last change is taken"), "{said:?}");
        assert_eq!(hive[BASE + 8 * 512 - 1], 0);
        assert_eq!(hive[BASE + 8 * 512..][..512], [7; 512]);
        assert_eq!(hive[BASE + 9 * 512], 0);
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
            assert!(hive.len() <= BASE + 4 * 4096);
        }
    }
}
