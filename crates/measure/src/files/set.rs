//! Files to read: the files of a folder, or a generated set.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fastrand::Rng;

use super::FilesError;
use crate::Stop;
use crate::UnknownName;

/// Maximum size of a set in bytes. With this limit, a run takes minutes at most.
const MAX_BYTES: u64 = 64 << 30;

/// Set of files, in reading order.
#[derive(Clone, Debug)]
pub struct FileSet {
    folder: PathBuf,
    files: Vec<FileToRead>,
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileToRead {
    pub(super) path: PathBuf,
    /// Size in bytes when the set was created.
    pub(super) size: u64,
}

/// File sizes of a generated set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSizes {
    /// All files have 4 KiB.
    #[default]
    Small,
    /// Files have 1 KiB to 1 MiB. In this range, each doubling of the size (for example, 1 to 2 KiB) contains
    /// about the same number of files.
    Mixed,
}

impl FromStr for FileSizes {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<FileSizes, UnknownName> {
        match name {
            "small" => Ok(FileSizes::Small),
            "mixed" => Ok(FileSizes::Mixed),
            other => Err(UnknownName::new("file size", other, ["small", "mixed"])),
        }
    }
}

impl FileSet {
    /// Returns at most `most` files of a folder and its subfolders. The files of a folder, sorted by path, come
    /// before the files of its subfolders. Links and special files are skipped.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be read, has no files, or has more bytes than a run may
    /// read.
    pub fn of_folder(folder: &Path, most: usize) -> Result<FileSet, FilesError> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let listed = FilesError::at(&folder, "list");
            let mut entries: Vec<PathBuf> = fs::read_dir(&folder)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
                .map_err(listed)?;
            entries.sort();
            // Subfolders are pushed in reverse order, so that the first subfolder is visited next.
            let mut inner = Vec::new();
            for path in entries {
                let of_it =
                    fs::symlink_metadata(&path).map_err(FilesError::at(&path, "examine"))?;
                if of_it.is_dir() {
                    inner.push(path);
                } else if of_it.is_file() && files.len() < most {
                    let size = of_it.len();
                    files.push(FileToRead { path, size });
                }
            }
            folders.extend(inner.into_iter().rev());
            if files.len() >= most {
                break;
            }
        }
        FileSet::new(folder, files)
    }

    /// Generates a set in a new or empty folder. The same seed yields the same files. If a write fails or
    /// `stop` returns true, this function removes the files again.
    ///
    /// # Errors
    /// Returns an error if the folder is not empty, a file cannot be written (disk full), the set
    /// is too large, or `stop` returned true.
    pub fn make(
        folder: &Path,
        count: usize,
        sizes: FileSizes,
        seed: u64,
        stop: Stop<'_>,
    ) -> Result<FileSet, FilesError> {
        fs::create_dir_all(folder).map_err(FilesError::at(folder, "create"))?;
        let mut entries = fs::read_dir(folder).map_err(FilesError::at(folder, "list"))?;
        if entries.next().is_some() {
            return Err(FilesError::NotEmpty(folder.to_owned()));
        }
        let mut random = Rng::with_seed(seed);
        let files: Vec<FileToRead> = (0..count)
            .map(|number| FileToRead {
                path: folder.join(format!("{number:06}.bin")),
                size: sizes.draw(&mut random),
            })
            .collect();
        let set = FileSet::new(folder, files)?;
        for file in &set.files {
            let written = if stop() {
                Err(std::io::ErrorKind::Interrupted.into())
            } else {
                write(file, &mut random)
            };
            if let Err(source) = written {
                set.remove();
                return Err(FilesError::at(&file.path, "write")(source));
            }
        }
        Ok(set)
    }

    /// Removes the files of a generated set. If the folder is empty afterwards, removes the folder too.
    pub fn remove(&self) {
        for file in &self.files {
            let _ = fs::remove_file(&file.path);
        }
        let _ = fs::remove_dir(&self.folder);
    }

    fn new(folder: &Path, files: Vec<FileToRead>) -> Result<FileSet, FilesError> {
        if files.is_empty() {
            return Err(FilesError::NoFiles(folder.to_owned()));
        }
        let bytes = files
            .iter()
            .fold(0_u64, |sum, file| sum.saturating_add(file.size));
        if bytes > MAX_BYTES {
            return Err(FilesError::TooMuch {
                bytes,
                most: MAX_BYTES,
            });
        }
        Ok(FileSet {
            folder: folder.to_owned(),
            files,
            bytes,
        })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of files.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn files(&self) -> &[FileToRead] {
        &self.files
    }

    /// Returns a set of the first `count` files, for a trial.
    pub(super) fn first(&self, count: usize) -> FileSet {
        let files = self.files[..count.min(self.files.len())].to_vec();
        FileSet {
            folder: self.folder.clone(),
            bytes: files.iter().map(|file| file.size).sum(),
            files,
        }
    }
}

impl FileSizes {
    fn draw(self, random: &mut Rng) -> u64 {
        match self {
            FileSizes::Small => 4096,
            FileSizes::Mixed => (1024.0 * (10.0 * random.f64()).exp2()) as u64,
        }
    }
}

/// Writes a file of random bytes.
fn write(file: &FileToRead, random: &mut Rng) -> std::io::Result<()> {
    let mut content = vec![0; file.size as usize];
    random.fill(&mut content);
    File::create_new(&file.path)?.write_all(&content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_generates_the_same_set() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, seed| {
            let folder = folder.path().join(name);
            let set = FileSet::make(&folder, 20, FileSizes::Mixed, seed, &|| false).unwrap();
            let content: Vec<_> = set
                .files
                .iter()
                .map(|f| fs::read(&f.path).unwrap())
                .collect();
            (set, content)
        };
        let (set, first) = make("a", 1);
        assert_eq!(first, make("b", 1).1);
        assert_ne!(first, make("c", 2).1);
        assert!(
            set.files
                .iter()
                .all(|file| (1024..=1 << 20).contains(&file.size))
        );

        let again = FileSet::of_folder(&folder.path().join("a"), 100).unwrap();
        assert_eq!(again.files, set.files);
        let bytes: usize = first.iter().map(Vec::len).sum();
        assert_eq!(again.bytes(), bytes as u64);
        let fewer = FileSet::of_folder(folder.path(), 25).unwrap();
        assert_eq!(fewer.count(), 25, "folders in it count too");
    }

    #[test]
    fn mixed_sizes_are_log_uniform() {
        let mut random = Rng::with_seed(7);
        let mut per_octave = [0; 10];
        for _ in 0..10_000 {
            let size = FileSizes::Mixed.draw(&mut random);
            per_octave[(size / 1024).ilog2().min(9) as usize] += 1;
        }
        // Each factor of two should contain 1,000 of the sizes. The tolerance of 150 is five standard
        // deviations.
        assert!(
            per_octave.iter().all(|count| (850..1_150).contains(count)),
            "{per_octave:?}"
        );
    }

    #[test]
    fn sets_need_an_empty_folder_and_are_removed_on_stop() {
        let folder = tempfile::tempdir().unwrap();
        let stopped = folder.path().join("stopped");
        let calls = std::sync::atomic::AtomicU32::new(0);
        let stop = || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3;
        assert!(FileSet::make(&stopped, 10, FileSizes::Small, 0, &stop).is_err());
        assert!(!stopped.exists());

        fs::write(folder.path().join("mine"), "precious").unwrap();
        let error = FileSet::make(folder.path(), 1, FileSizes::Small, 0, &|| false).unwrap_err();
        assert!(matches!(error, FilesError::NotEmpty(_)), "{error}");
        assert!(folder.path().join("mine").exists());
    }

    #[test]
    fn a_folder_without_files_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = FileSet::of_folder(folder.path(), 10).unwrap_err();
        assert!(matches!(error, FilesError::NoFiles(_)));
        let missing = FileSet::of_folder(&folder.path().join("none"), 10).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
