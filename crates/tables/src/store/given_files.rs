//! The files that a trace was given as: whether they stay as they are, and the key of their content.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use etl::{FileSource, Source};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::cache_folder::{CacheFolder, replace};
use crate::{Cancelled, Options};

/// A file that was written to this shortly before it was looked at may be written to again without
/// its times telling, since clocks of file systems tick as slowly as every 2 s (FAT).
const TICK: Duration = Duration::from_secs(2);

/// The files of a trace, as they were when it was opened.
#[derive(Debug)]
pub(crate) struct GivenFiles(Vec<Given>);

#[derive(Debug)]
struct Given {
    path: PathBuf,
    stamp: Stamp,
}

/// What changes when somebody writes to a file. Windows tells programs no time that cannot be set:
/// there a file whose bytes were changed and whose size and times were put back looks the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    /// Times and numbers that only the operating system sets, where it has such.
    marks: Vec<i64>,
    /// When the file was last written to, as far as is known.
    modified: SystemTime,
}

/// What is remembered of a file: its hash, as long as its stamp is the same.
#[derive(Serialize, Deserialize)]
struct Remembered {
    stamp: Stamp,
    hash: String,
}

impl GivenFiles {
    /// Looks at the files. To be called before the trace is opened, so that what changes while it
    /// is opened is seen.
    pub(crate) fn look(paths: &[PathBuf]) -> Result<GivenFiles, StoreError> {
        let look = |path: &PathBuf| {
            let seen = fs::canonicalize(path).and_then(|full| {
                let stamp = Stamp::of(&fs::metadata(&full)?)?;
                Ok(Given { path: full, stamp })
            });
            seen.map_err(|error| unread(path, error))
        };
        Ok(GivenFiles(
            paths.iter().map(look).collect::<Result<_, _>>()?,
        ))
    }

    /// Makes sure that no file changed since it was looked at.
    pub(crate) fn are_the_same(&self) -> Result<(), StoreError> {
        for given in &self.0 {
            let now = fs::metadata(&given.path).and_then(|found| Stamp::of(&found));
            if now.map_err(|error| unread(&given.path, error))? != given.stamp {
                return Err(StoreError::Changed {
                    file: given.path.clone(),
                });
            }
        }
        Ok(())
    }

    /// Names what tables of these files hold: it changes with their bytes, their order, and the
    /// code that makes tables.
    pub(crate) fn key(
        &self,
        cache: &CacheFolder,
        options: Options<'_>,
    ) -> Result<String, StoreError> {
        let mut key = blake3::Hasher::new();
        key.update(env!("TABLES_CODE").as_bytes());
        for given in &self.0 {
            key.update(given.hash(cache, options)?.as_bytes());
        }
        self.are_the_same()?;
        Ok(short_hex(&key))
    }
}

impl Given {
    /// The hash of the file's bytes, in hexadecimal: remembered, or made.
    fn hash(&self, cache: &CacheFolder, options: Options<'_>) -> Result<String, StoreError> {
        let memory = cache.hash_of(&name_of(self.path.as_os_str()));
        let remembered = fs::read(&memory)
            .ok()
            .and_then(|json| serde_json::from_slice::<Remembered>(&json).ok());
        if let Some(known) = remembered.filter(|known| known.stamp == self.stamp) {
            return Ok(known.hash);
        }
        let settled = self.stamp.settled(SystemTime::now());
        let hash = hash_bytes(&self.path, options)?;
        if settled {
            let known = Remembered {
                stamp: self.stamp.clone(),
                hash: hash.clone(),
            };
            // It is hashed again next time if it cannot be remembered.
            let _ = serde_json::to_vec(&known)
                .map_err(io::Error::from)
                .and_then(|json| replace(&memory, &json));
        }
        Ok(hash)
    }
}

impl Stamp {
    fn of(found: &Metadata) -> io::Result<Stamp> {
        Ok(Stamp {
            size: found.len(),
            marks: marks(found),
            modified: found.modified()?,
        })
    }

    /// Whether whatever is written from now on changes the stamp.
    fn settled(&self, now: SystemTime) -> bool {
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

/// Bytes that are read and hashed at once: few enough to stay in a CPU's own caches.
const BLOCK_BYTES: u64 = 256 << 10;

/// The hash of the hashes of the file's blocks, which threads make side by side.
fn hash_bytes(path: &Path, options: Options<'_>) -> Result<String, StoreError> {
    let file = File::open(path).and_then(FileSource::new);
    let file = file.map_err(|error| unread(path, error))?;
    let blocks = 0..file.len().div_ceil(BLOCK_BYTES);
    let hash = |bytes: &mut Vec<u8>, block: u64| -> Result<blake3::Hash, StoreError> {
        let read = file.read_at(block * BLOCK_BYTES, bytes);
        let read = read.map_err(|error| unread(path, error))?;
        // None of the trace's buffers is read into tables yet.
        match (options.progress)(0) {
            true => Ok(blake3::hash(&bytes[..read])),
            false => Err(Cancelled.into()),
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

/// 128 bits: enough that no two contents ever share them.
fn short_hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

fn unread(file: &Path, error: io::Error) -> StoreError {
    StoreError::Read {
        file: file.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these bytes that was written long ago, in a folder with a cache.
    struct Case {
        file: PathBuf,
        cache: CacheFolder,
        _folder: tempfile::TempDir,
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

        /// Writes the file and puts its time back.
        fn write(&self, bytes: &[u8]) {
            fs::write(&self.file, bytes).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            let file = File::options().write(true).open(&self.file).unwrap();
            file.set_modified(time).unwrap();
        }

        fn key(&self) -> String {
            let files = GivenFiles::look(std::slice::from_ref(&self.file)).unwrap();
            files.key(&self.cache, Options::default()).unwrap()
        }

        fn memories(&self) -> Vec<PathBuf> {
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
        // Nothing that std tells of a file on Windows changes with its content if its size and time
        // of modification do not.
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
    fn the_order_of_files_counts() {
        let case = Case::new(b"one");
        let other = case.file.with_file_name("other.etl");
        fs::write(&other, b"two").unwrap();
        let key = |files: [&PathBuf; 2]| {
            let files = GivenFiles::look(&files.map(PathBuf::clone)).unwrap();
            files.key(&case.cache, Options::default()).unwrap()
        };
        assert_ne!(key([&case.file, &other]), key([&other, &case.file]));
    }

    /// As long as nobody wrote to the file, the hash is remembered: the test changes the memory.
    #[test]
    fn a_settled_file_is_hashed_once() {
        let case = Case::new(b"one trace");
        let first = case.key();
        let memories = case.memories();
        let [memory] = memories.as_slice() else {
            panic!("{memories:?}")
        };
        let mut known: Remembered = serde_json::from_slice(&fs::read(memory).unwrap()).unwrap();
        let of_block = blake3::hash(b"one trace");
        let of_file = blake3::hash(of_block.as_bytes());
        assert_eq!(known.hash, of_file.to_hex().as_str());
        known.hash = "remembered".to_owned();
        fs::write(memory, serde_json::to_vec(&known).unwrap()).unwrap();
        assert_ne!(case.key(), first);
        fs::write(memory, b"{").unwrap();
        assert_eq!(case.key(), first);
    }

    /// The system's own time of the change tells, although size and time of writing are the same.
    #[cfg(unix)]
    #[test]
    fn a_changed_byte_is_seen_whatever_the_time_says() {
        let case = Case::new(b"one trace");
        let first = (
            case.key(),
            Stamp::of(&fs::metadata(&case.file).unwrap()).unwrap(),
        );
        std::thread::sleep(Duration::from_millis(20));
        case.write(b"ONE trace");
        let second = (
            case.key(),
            Stamp::of(&fs::metadata(&case.file).unwrap()).unwrap(),
        );
        assert_eq!(second.1.modified, first.1.modified);
        assert_ne!(second.0, first.0);
    }

    #[test]
    fn a_file_written_just_now_is_hashed_again() {
        let case = Case::new(b"one trace");
        fs::write(&case.file, b"two trace").unwrap();
        case.key();
        assert_eq!(case.memories(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_change_is_noticed() {
        let case = Case::new(b"one trace");
        let files = GivenFiles::look(std::slice::from_ref(&case.file)).unwrap();
        files.are_the_same().unwrap();
        fs::write(&case.file, b"one trace longer").unwrap();
        let error = files.are_the_same().unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    }
}
