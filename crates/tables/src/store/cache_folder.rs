//! The folder that tables are kept in, of all traces together.
//!
//! ```text
//! tables/KEY/TABLE.table   the tables of the trace whose content has that key
//! tables/KEY/used          its time of writing says when they were last asked for
//! tables/KEY/.making-…     a table that is being made, or was when its process was killed
//! hashes/NAME.json         the hash of the file whose path has that name
//! ```
//!
//! Files appear whole, by renaming, so no lock is needed that a killed process could leave.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

const TABLES: &str = "tables";
const HASHES: &str = "hashes";
/// Its time of writing is when the folder's tables were last asked for.
const USED: &str = "used";
const UNFINISHED: &str = ".making-";
/// No table takes as long to make.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);
/// Hashes of files that nobody asked about for so long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 3600);

/// A folder that tables are kept in, and how large it may grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFolder {
    path: PathBuf,
    limit_bytes: u64,
}

/// How much a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of traces that it has tables of.
    pub traces: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

/// The tables of one trace.
struct Kept {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

impl CacheFolder {
    /// 20 GiB, some tables of some dozen traces.
    pub const DEFAULT_LIMIT_BYTES: u64 = 20 << 30;

    /// The folder at the path, which is made when something is kept. When a trace's tables make it
    /// larger than the limit, those of the traces that were not asked about for longest are removed.
    pub fn new(path: PathBuf, limit_bytes: u64) -> CacheFolder {
        CacheFolder { path, limit_bytes }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How large it may grow, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// How much it holds; nothing if there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn usage(&self) -> io::Result<CacheUsage> {
        let kept = self.kept()?;
        Ok(CacheUsage {
            traces: kept.len(),
            bytes: kept.iter().map(|kept| kept.bytes).sum(),
        })
    }

    /// Removes what it holds, and nothing else that may be in the folder. Programs that are reading
    /// tables keep them.
    ///
    /// # Errors
    /// If something cannot be removed; the rest is.
    pub fn clear(&self) -> io::Result<()> {
        let kept = self.kept()?.into_iter();
        let removed = kept.map(|kept| fs::remove_dir_all(kept.folder));
        let hashes = entries(&self.path.join(HASHES))?.into_iter();
        let hashes = hashes.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let outcomes: Vec<io::Result<()>> = removed.chain(hashes.map(fs::remove_file)).collect();
        for name in [TABLES, HASHES] {
            // Goes if it is empty, which it is not if somebody keeps a table meanwhile.
            let _ = fs::remove_dir(self.path.join(name));
        }
        outcomes
            .into_iter()
            .filter(|outcome| !is_missing(outcome))
            .collect()
    }

    /// Where the hash of the file with that name is remembered.
    pub(crate) fn hash_of(&self, name: &str) -> PathBuf {
        self.path.join(HASHES).join(format!("{name}.json"))
    }

    /// Where the tables of the trace with that key are.
    pub(crate) fn tables_of(&self, key: &str) -> PathBuf {
        self.path.join(TABLES).join(key)
    }

    /// Removes what killed processes left and, as long as there is more than the limit, the tables
    /// that were not asked for longest; never those with the key. What cannot be removed stays.
    pub(crate) fn tidy(&self, key: &str) {
        let now = SystemTime::now();
        for path in entries(&self.path.join(HASHES)).unwrap_or_default() {
            if is_older(&path, now, FORGOTTEN) {
                let _ = fs::remove_file(path);
            }
        }
        let mut kept = self.kept().unwrap_or_default();
        for folder in kept.iter().map(|kept| &kept.folder) {
            for path in entries(folder).unwrap_or_default() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(UNFINISHED) && is_older(&path, now, LEFT_BEHIND) {
                    let _ = fs::remove_file(path);
                }
            }
        }
        let mut total: u64 = kept.iter().map(|kept| kept.bytes).sum();
        kept.sort_by_key(|kept| kept.used);
        for kept in kept.iter().filter(|kept| !kept.folder.ends_with(key)) {
            if total <= self.limit_bytes {
                break;
            }
            if fs::remove_dir_all(&kept.folder).is_ok() {
                total -= kept.bytes;
            }
        }
    }

    fn kept(&self) -> io::Result<Vec<Kept>> {
        let folders = entries(&self.path.join(TABLES))?.into_iter();
        let mut kept = Vec::new();
        for folder in folders.filter(|folder| is_key(folder)) {
            let files = match entries(&folder) {
                Ok(files) => files,
                // What has the name of a key but is no folder is not ours.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
                Err(error) => return Err(error),
            };
            // Another process may remove them meanwhile.
            let size = |file: &PathBuf| fs::metadata(file).map_or(0, |found| found.len());
            let used = fs::metadata(folder.join(USED)).or_else(|_| fs::metadata(&folder));
            kept.push(Kept {
                used: used
                    .and_then(|found| found.modified())
                    .unwrap_or(SystemTime::UNIX_EPOCH),
                bytes: files.iter().map(size).sum(),
                folder,
            });
        }
        Ok(kept)
    }
}

/// Notes that the tables in the folder were asked for.
pub(crate) fn note_use(folder: &Path) {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(USED));
    // They are removed too early if it cannot be noted, and then made again.
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// A new file in the folder, which is made if there is none; it goes when it is dropped.
pub(crate) fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    fs::create_dir_all(folder)?;
    tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(folder)
}

/// Gives the file at the path this content, at once.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = unfinished(path.parent().unwrap_or(Path::new("")))?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// What is in the folder; nothing if there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn is_missing(outcome: &io::Result<()>) -> bool {
    matches!(outcome, Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Whether the folder has the name of a trace's key: nothing else is ever removed.
fn is_key(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn is_older(path: &Path, now: SystemTime, age: Duration) -> bool {
    let written = fs::metadata(path).and_then(|found| found.modified());
    written.is_ok_and(|written| now.duration_since(written).is_ok_and(|old| old > age))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 3] = [
        "00000000000000000000000000000000",
        "11111111111111111111111111111111",
        "22222222222222222222222222222222",
    ];

    /// A cache with 1000 bytes of each key; the first was used longest ago.
    fn cache(limit_bytes: u64) -> (tempfile::TempDir, CacheFolder) {
        let folder = tempfile::tempdir().unwrap();
        let cache = CacheFolder::new(folder.path().to_owned(), limit_bytes);
        for (i, key) in KEYS.iter().enumerate() {
            let tables = cache.tables_of(key);
            fs::create_dir_all(&tables).unwrap();
            fs::write(tables.join("samples.table"), [0; 1000]).unwrap();
            note_use(&tables);
            age(&tables.join(USED), Duration::from_secs(60 * (3 - i as u64)));
        }
        (folder, cache)
    }

    fn age(path: &Path, by: Duration) {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    fn left(cache: &CacheFolder) -> Vec<bool> {
        KEYS.iter()
            .map(|key| cache.tables_of(key).exists())
            .collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let (_folder, cache) = cache(2000);
        cache.tidy(KEYS[2]);
        assert_eq!(left(&cache), [false, true, true]);
    }

    #[test]
    fn the_one_in_use_stays() {
        let (_folder, cache) = cache(500);
        cache.tidy(KEYS[0]);
        assert_eq!(left(&cache), [true, false, false]);
        assert_eq!(
            cache.usage().unwrap(),
            CacheUsage {
                traces: 1,
                bytes: 1000
            }
        );
    }

    #[test]
    fn what_killed_processes_left_goes_after_a_day() {
        let (_folder, cache) = cache(u64::MAX);
        let [old, new] =
            ["old", "new"].map(|name| cache.tables_of(KEYS[1]).join(format!("{UNFINISHED}{name}")));
        fs::write(&old, b"half a table").unwrap();
        fs::write(&new, b"half a table").unwrap();
        age(&old, Duration::from_secs(25 * 3600));
        cache.tidy(KEYS[0]);
        assert_eq!((old.exists(), new.exists()), (false, true));
        assert_eq!(left(&cache), [true, true, true]);
    }

    #[test]
    fn clearing_removes_nothing_else() {
        let (folder, cache) = cache(u64::MAX);
        let mine = folder.path().join("tables").join("mine.txt");
        fs::write(&mine, b"mine").unwrap();
        replace(&cache.hash_of("some"), b"{}").unwrap();
        assert_eq!(
            cache.usage().unwrap(),
            CacheUsage {
                traces: 3,
                bytes: 3000
            }
        );
        cache.clear().unwrap();
        assert_eq!(cache.usage().unwrap(), CacheUsage::default());
        assert!(mine.exists() && !folder.path().join(HASHES).exists());
    }

    #[test]
    fn a_folder_that_is_not_there_holds_nothing() {
        let cache = CacheFolder::new("no/such/folder".into(), 0);
        assert_eq!(cache.usage().unwrap(), CacheUsage::default());
        cache.clear().unwrap();
    }
}
