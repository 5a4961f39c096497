//! The cache folder, which holds the tables of many sets of input files.
//!
//! ```text
//! tables/KEY/TABLE.table   a table of the set of input files with that key
//! tables/KEY/used          a file whose modification time is the last use of the tables
//! tables/KEY/.making-…     an unfinished table, possibly left by a killed process
//! hashes/NAME.json         the content hash of one input file; NAME is the hash of its path
//! ```
//!
//! A file is written under a temporary name and renamed when it is complete. Therefore no lock file
//! is needed, and a killed process cannot leave a lock file behind.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::scratch_folder::create_private;

const TABLES: &str = "tables";
const HASHES: &str = "hashes";
/// Name of a file in each folder of tables. Its modification time is the time when the tables of the folder were last
/// used.
const USED: &str = "used";
const UNFINISHED: &str = ".making-";
/// Age at which an unfinished file is removed. No table takes this long to make.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Age at which the stored hash of an input file is removed.
const HASH_EXPIRY: Duration = Duration::from_secs(90 * 24 * 3600);

/// A cache folder and its size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheFolder {
    path: PathBuf,
    limit_bytes: u64,
}

/// Size of a cache's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of traces (sets of input files) that have tables in the cache.
    pub traces: usize,
    /// Total size of the table files, in bytes.
    pub bytes: u64,
}

/// Cached tables of one set of input files.
struct Entry {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

impl CacheFolder {
    /// Default size limit: 20 GiB, enough for the tables of a few dozen traces.
    pub const DEFAULT_LIMIT_BYTES: u64 = 20 << 30;

    /// Creates a description of the cache at a path. The folder is created when a table is stored.
    /// If the tables exceed the limit, the least recently used tables are removed.
    pub fn new(path: PathBuf, limit_bytes: u64) -> CacheFolder {
        CacheFolder { path, limit_bytes }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Computes the size of the content. The size is 0 if the folder does not exist.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn usage(&self) -> io::Result<CacheUsage> {
        let stored = self.entries()?;
        Ok(CacheUsage {
            traces: stored.len(),
            bytes: stored.iter().map(|entry| entry.bytes).sum(),
        })
    }

    /// Removes all tables and hashes, but no other files of the folder. A program that has a table open can
    /// still read it.
    ///
    /// # Errors
    /// Returns an error if a file cannot be removed. The other files are removed even then.
    pub fn clear(&self) -> io::Result<()> {
        let stored = self.entries()?.into_iter();
        let removed = stored.map(|entry| fs::remove_dir_all(entry.folder));
        let hashes = paths_in(&self.path.join(HASHES))?.into_iter();
        let hashes = hashes.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let outcomes: Vec<io::Result<()>> = removed.chain(hashes.map(fs::remove_file)).collect();
        for name in [TABLES, HASHES] {
            // This fails if the folder is not empty, for example because another process just
            // stored a table.
            let _ = fs::remove_dir(self.path.join(name));
        }
        outcomes
            .into_iter()
            .filter(|outcome| !is_missing(outcome))
            .collect()
    }

    /// Returns the path of the file that stores the hash of an input file.
    pub(crate) fn hash_file(&self, name: &str) -> PathBuf {
        self.path.join(HASHES).join(format!("{name}.json"))
    }

    /// Returns the folder of the tables with a key.
    pub(crate) fn tables_folder(&self, key: &str) -> PathBuf {
        self.path.join(TABLES).join(key)
    }

    /// Removes unfinished files of killed processes and expired hashes. Then removes the least recently used
    /// tables until the cache is within its limit. Never removes the tables with the given key. Ignores files
    /// that cannot be removed.
    pub(crate) fn evict(&self, key: &str) {
        let now = SystemTime::now();
        for path in paths_in(&self.path.join(HASHES)).unwrap_or_default() {
            if is_older(&path, now, HASH_EXPIRY) {
                let _ = fs::remove_file(path);
            }
        }
        let mut stored = self.entries().unwrap_or_default();
        for folder in stored.iter().map(|entry| &entry.folder) {
            for path in paths_in(folder).unwrap_or_default() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(UNFINISHED) && is_older(&path, now, ABANDONED) {
                    let _ = fs::remove_file(path);
                }
            }
        }
        let mut total: u64 = stored.iter().map(|entry| entry.bytes).sum();
        stored.sort_by_key(|entry| entry.used);
        for entry in stored.iter().filter(|entry| !entry.folder.ends_with(key)) {
            if total <= self.limit_bytes {
                break;
            }
            if fs::remove_dir_all(&entry.folder).is_ok() {
                total -= entry.bytes;
            }
        }
    }

    fn entries(&self) -> io::Result<Vec<Entry>> {
        let folders = paths_in(&self.path.join(TABLES))?.into_iter();
        let mut stored = Vec::new();
        for folder in folders.filter(|folder| is_key(folder)) {
            let files = match paths_in(&folder) {
                Ok(files) => files,
                // The entry is a file, not a folder. A file with the name of a key does not belong
                // to the cache.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
                Err(error) => return Err(error),
            };
            // Another process may remove a file at the same time. A removed file counts 0 bytes.
            let size = |file: &PathBuf| fs::metadata(file).map_or(0, |found| found.len());
            let used = fs::metadata(folder.join(USED)).or_else(|_| fs::metadata(&folder));
            stored.push(Entry {
                used: used
                    .and_then(|found| found.modified())
                    .unwrap_or(SystemTime::UNIX_EPOCH),
                bytes: files.iter().map(size).sum(),
                folder,
            });
        }
        Ok(stored)
    }
}

/// Records that the tables in the folder were used now.
pub(crate) fn record_use(folder: &Path) {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(folder.join(USED));
    // If this fails, the tables may be evicted too early. They are then made again.
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Creates a file with a temporary name in the folder. Creates the folder if it does not exist. The
/// file is removed when the returned value is dropped.
pub(crate) fn create_unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    create_private(folder)?;
    tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(folder)
}

/// Replaces the content of a file atomically.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create_unfinished(path.parent().unwrap_or(Path::new("")))?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// Lists the paths in a folder. The list is empty if the folder does not exist.
fn paths_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

/// Returns true if the folder's name is a key. Only such folders are ever removed.
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

    /// Creates a cache with 1000 bytes for each key. The first key is the least recently used.
    fn cache(limit_bytes: u64) -> (tempfile::TempDir, CacheFolder) {
        let folder = tempfile::tempdir().unwrap();
        let cache = CacheFolder::new(folder.path().to_owned(), limit_bytes);
        for (i, key) in KEYS.iter().enumerate() {
            let tables = cache.tables_folder(key);
            fs::create_dir_all(&tables).unwrap();
            fs::write(tables.join("samples.table"), [0; 1000]).unwrap();
            record_use(&tables);
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
            .map(|key| cache.tables_folder(key).exists())
            .collect()
    }

    #[test]
    fn the_least_recently_used_is_evicted_first() {
        let (_folder, cache) = cache(2000);
        cache.evict(KEYS[2]);
        assert_eq!(left(&cache), [false, true, true]);
    }

    #[test]
    fn the_key_in_use_stays() {
        let (_folder, cache) = cache(500);
        cache.evict(KEYS[0]);
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
    fn unfinished_files_are_removed_after_a_day() {
        let (_folder, cache) = cache(u64::MAX);
        let [old, new] = ["old", "new"].map(|name| {
            cache
                .tables_folder(KEYS[1])
                .join(format!("{UNFINISHED}{name}"))
        });
        fs::write(&old, b"half a table").unwrap();
        fs::write(&new, b"half a table").unwrap();
        age(&old, Duration::from_secs(25 * 3600));
        cache.evict(KEYS[0]);
        assert_eq!((old.exists(), new.exists()), (false, true));
        assert_eq!(left(&cache), [true, true, true]);
    }

    #[test]
    fn clearing_removes_nothing_else() {
        let (folder, cache) = cache(u64::MAX);
        let mine = folder.path().join("tables").join("mine.txt");
        fs::write(&mine, b"mine").unwrap();
        replace(&cache.hash_file("some"), b"{}").unwrap();
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
    fn a_missing_folder_is_an_empty_cache() {
        let cache = CacheFolder::new("no/such/folder".into(), 0);
        assert_eq!(cache.usage().unwrap(), CacheUsage::default());
        cache.clear().unwrap();
    }
}
