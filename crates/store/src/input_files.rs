//! Input files: detection of changes, and the key that identifies their content.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use files::{FileSource, Source};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::cache_folder::{CacheFolder, replace};

/// Resolution of the coarsest file-system clock (FAT). If a file is written twice within this time,
/// the second write may leave the file's times unchanged.
const TICK: Duration = Duration::from_secs(2);

/// Input files and their state when they were inspected.
#[derive(Debug)]
pub struct InputFiles(Vec<InputFile>);

/// Callback that is called while files are read. Reading stops if it returns `false`.
pub type Continue<'c> = &'c (dyn Fn() -> bool + Sync);

#[derive(Debug)]
struct InputFile {
    path: PathBuf,
    stamp: Stamp,
}

/// Properties of a file that change when it is written.
///
/// On Windows, programs can set all file times. If a program changes the content of a file and
/// restores its size and times, the file looks unchanged there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// On Unix: change time, device number and inode number. Only the operating system can set them. On
    /// Windows: creation time.
    marks: Vec<i64>,
    /// Time of the last write.
    modified: SystemTime,
}

/// Stored hash of a file. It is valid while the stamp of the file is unchanged.
#[derive(Serialize, Deserialize)]
struct StoredHash {
    stamp: Stamp,
    hash: String,
}

impl InputFiles {
    /// Records the state of the files. Call this function before the files are read, so that later changes
    /// are detected.
    ///
    /// # Errors
    /// Returns an error if a file does not exist or its metadata cannot be read.
    pub fn inspect(paths: &[PathBuf]) -> Result<InputFiles, Error> {
        let inspect = |path: &PathBuf| {
            let seen = fs::canonicalize(path).and_then(|full| {
                let stamp = Stamp::new(&fs::metadata(&full)?)?;
                Ok(InputFile { path: full, stamp })
            });
            seen.map_err(|error| read_error(path, error))
        };
        let files = paths.iter().map(inspect).collect::<Result<_, _>>()?;
        Ok(InputFiles(files))
    }

    /// Checks that no file changed since it was inspected.
    ///
    /// # Errors
    /// Returns an error if a file changed or cannot be read.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        for input in &self.0 {
            let now = fs::metadata(&input.path).and_then(|found| Stamp::new(&found));
            if now.map_err(|error| read_error(&input.path, error))? != input.stamp {
                return Err(Error::Changed {
                    file: input.path.clone(),
                });
            }
        }
        Ok(())
    }

    /// Returns the key under which the tables of these files are stored. The key is a hash of the bytes and
    /// the order of the files, and of `code`. The text `code` identifies the version of the code that makes
    /// tables.
    ///
    /// # Errors
    /// Returns an error if a file changed or cannot be read, or if `go_on` asks to stop.
    pub fn key(
        &self,
        cache: &CacheFolder,
        code: &str,
        go_on: Continue<'_>,
    ) -> Result<String, Error> {
        let mut key = blake3::Hasher::new();
        key.update(code.as_bytes());
        for input in &self.0 {
            key.update(input.hash(cache, go_on)?.as_bytes());
        }
        self.check_unchanged()?;
        Ok(short_hex(&key))
    }
}

/// Maximum number of bytes of a file with a stored hash.
const MOST_REMEMBERED: u64 = 64 << 10;

impl InputFile {
    /// Returns the hash of the file's bytes, in hexadecimal. If the file did not change since its hash was
    /// stored, the stored hash is returned and the file is not read.
    fn hash(&self, cache: &CacheFolder, go_on: Continue<'_>) -> Result<String, Error> {
        let memory = cache.hash_file(&name_of(self.path.as_os_str()));
        let remembered = files::read_file(&memory, MOST_REMEMBERED)
            .ok()
            .and_then(|json| serde_json::from_slice::<StoredHash>(&json).ok());
        if let Some(known) = remembered.filter(|known| known.stamp == self.stamp) {
            return Ok(known.hash);
        }
        let is_settled = self.stamp.is_settled(SystemTime::now());
        let hash = hash_bytes(&self.path, go_on)?;
        if is_settled {
            let known = StoredHash {
                stamp: self.stamp.clone(),
                hash: hash.clone(),
            };
            // If this fails, the file is hashed again next time.
            let _ = serde_json::to_vec(&known)
                .map_err(io::Error::from)
                .and_then(|json| replace(&memory, &json));
        }
        Ok(hash)
    }
}

impl Stamp {
    fn new(found: &Metadata) -> io::Result<Stamp> {
        Ok(Stamp {
            size: found.len(),
            marks: marks(found),
            modified: found.modified()?,
        })
    }

    /// Returns true if every later write changes the stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        let age = now.duration_since(self.modified);
        age.is_ok_and(|age| age > TICK)
    }
}

#[cfg(unix)]
fn marks(found: &Metadata) -> Vec<i64> {
    use std::os::unix::fs::MetadataExt;
    vec![
        found.ctime(),
        found.ctime_nsec(),
        found.dev().cast_signed(),
        found.ino().cast_signed(),
    ]
}

#[cfg(windows)]
fn marks(found: &Metadata) -> Vec<i64> {
    use std::os::windows::fs::MetadataExt;
    vec![found.creation_time().cast_signed()]
}

/// Size in bytes of the blocks that are hashed in parallel. A block fits into the private caches of
/// a CPU core.
const BLOCK_BYTES: u64 = 256 << 10;

/// Hashes each block of the file, and returns the hash of these block hashes.
fn hash_bytes(path: &Path, go_on: Continue<'_>) -> Result<String, Error> {
    let file = File::open(path).and_then(FileSource::new);
    let file = file.map_err(|error| read_error(path, error))?;
    let blocks = 0..file.len().div_ceil(BLOCK_BYTES);
    let hash = |bytes: &mut Vec<u8>, block: u64| -> Result<blake3::Hash, Error> {
        let read = file.read_at(block * BLOCK_BYTES, bytes);
        let read = read.map_err(|error| read_error(path, error))?;
        if go_on() {
            Ok(blake3::hash(&bytes[..read]))
        } else {
            Err(Error::Cancelled)
        }
    };
    let hashes: Vec<blake3::Hash> = blocks
        .into_par_iter()
        .map_init(|| vec![0; BLOCK_BYTES as usize], hash)
        .collect::<Result<_, _>>()?;
    let mut whole = blake3::Hasher::new();
    for hash in hashes {
        whole.update(hash.as_bytes());
    }
    Ok(whole.finalize().to_hex().to_string())
}

fn name_of(path: &OsStr) -> String {
    short_hex(blake3::Hasher::new().update(path.as_encoded_bytes()))
}

/// Returns the first 128 bits of a hash in hexadecimal. With 128 bits, two different contents practically never have
/// the same hash.
fn short_hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

fn read_error(file: &Path, source: io::Error) -> Error {
    Error::Read {
        file: file.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test file with an old modification time, and a cache folder next to it.
    struct Case {
        file: PathBuf,
        cache: CacheFolder,
        _folder: tempfile::TempDir,
    }

    fn key(files: &[PathBuf], cache: &CacheFolder) -> String {
        let files = InputFiles::inspect(files).unwrap();
        files.key(cache, "code", &|| true).unwrap()
    }

    impl Case {
        fn new(bytes: &[u8]) -> Case {
            let folder = tempfile::tempdir().unwrap();
            let case = Case {
                file: folder.path().join("trace.etl"),
                cache: CacheFolder::new(folder.path().join("cache"), u64::MAX),
                _folder: folder,
            };
            case.write(bytes);
            case
        }

        /// Writes the file and restores its modification time.
        fn write(&self, bytes: &[u8]) {
            fs::write(&self.file, bytes).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            let file = File::options().write(true).open(&self.file).unwrap();
            file.set_modified(time).unwrap();
        }

        fn key(&self) -> String {
            key(std::slice::from_ref(&self.file), &self.cache)
        }

        fn remembered(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(self.cache.path().join("hashes"));
            entries.map_or(Vec::new(), |entries| {
                entries.map(|e| e.unwrap().path()).collect()
            })
        }
    }

    #[test]
    fn the_key_is_of_the_content() {
        let case = Case::new(b"one trace");
        let first = case.key();
        let moved = case.file.with_file_name("moved.etl");
        fs::rename(&case.file, &moved).unwrap();
        fs::copy(&moved, &case.file).unwrap();
        assert_eq!(case.key(), first);
        case.write(b"another!!");
        // On Windows, the standard library cannot detect this change, because size and modification
        // time stay the same.
        if !cfg!(windows) {
            assert_ne!(case.key(), first);
        }
    }

    #[test]
    fn every_block_and_its_place_count() {
        let block = |byte: u8| vec![byte; BLOCK_BYTES as usize];
        let case = Case::new(&[block(1), block(2), vec![3]].concat());
        let first = case.key();
        for other in [[block(2), block(1), vec![3]], [block(1), block(2), vec![4]]] {
            assert_ne!(Case::new(&other.concat()).key(), first);
        }
    }

    #[test]
    fn another_code_is_another_key() {
        let case = Case::new(b"one trace");
        let files = InputFiles::inspect(std::slice::from_ref(&case.file)).unwrap();
        let key = |code| files.key(&case.cache, code, &|| true).unwrap();
        assert_ne!(key("one"), key("two"));
    }

    #[test]
    fn hashing_can_be_cancelled() {
        let case = Case::new(b"one trace");
        let files = InputFiles::inspect(std::slice::from_ref(&case.file)).unwrap();
        let error = files.key(&case.cache, "code", &|| false).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
    }

    #[test]
    fn the_order_of_files_counts() {
        let case = Case::new(b"one");
        let other = case.file.with_file_name("other.etl");
        fs::write(&other, b"two").unwrap();
        let one = key(&[case.file.clone(), other.clone()], &case.cache);
        let two = key(&[other, case.file.clone()], &case.cache);
        assert_ne!(one, two);
    }

    /// Checks that a stored hash is used. The test replaces the stored hash by another text, so the key must
    /// differ.
    #[test]
    fn a_settled_file_is_hashed_once() {
        let case = Case::new(b"one trace");
        let first = case.key();
        let remembered = case.remembered();
        let [memory] = remembered.as_slice() else {
            panic!("{remembered:?}")
        };
        let mut known: StoredHash = serde_json::from_slice(&fs::read(memory).unwrap()).unwrap();
        let of_block = blake3::hash(b"one trace");
        let of_file = blake3::hash(of_block.as_bytes());
        assert_eq!(known.hash, of_file.to_hex().as_str());
        known.hash = "remembered".to_owned();
        fs::write(memory, serde_json::to_vec(&known).unwrap()).unwrap();
        assert_ne!(case.key(), first);
        fs::write(memory, b"{").unwrap();
        assert_eq!(case.key(), first);
    }

    /// Checks that the key changes if a file is changed, although its size stays the same and its
    /// modification time is restored. The change time differs, because the operating system sets it.
    #[cfg(unix)]
    #[test]
    fn a_changed_byte_changes_the_key_even_if_the_time_is_restored() {
        let case = Case::new(b"one trace");
        let first = (
            case.key(),
            Stamp::new(&fs::metadata(&case.file).unwrap()).unwrap(),
        );
        std::thread::sleep(Duration::from_millis(20));
        case.write(b"ONE trace");
        let second = (
            case.key(),
            Stamp::new(&fs::metadata(&case.file).unwrap()).unwrap(),
        );
        assert_eq!(second.1.modified, first.1.modified);
        assert_ne!(second.0, first.0);
    }

    #[test]
    fn a_file_written_just_now_is_hashed_again() {
        let case = Case::new(b"one trace");
        fs::write(&case.file, b"two trace").unwrap();
        case.key();
        assert_eq!(case.remembered(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_change_is_noticed() {
        let case = Case::new(b"one trace");
        let files = InputFiles::inspect(std::slice::from_ref(&case.file)).unwrap();
        files.check_unchanged().unwrap();
        fs::write(&case.file, b"one trace longer").unwrap();
        let error = files.check_unchanged().unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
    }
}
