//! Number and sum of the bytes read from each file.

use std::fmt;

use super::{FileSet, FilesError};

/// Number of bytes read from a file, and the sum of these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSum {
    pub(super) bytes: u64,
    pub(super) sum: u64,
}

impl FileSum {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // The sum of a piece fits into 32 bits. Sums of 32 bits allow twice as many vector lanes as
        // sums of 64 bits.
        for piece in bytes.chunks(1 << 16) {
            let sum: u32 = piece.iter().map(|&byte| u32::from(byte)).sum();
            self.sum += u64::from(sum);
        }
    }

    fn merge(&mut self, other: FileSum) {
        self.bytes += other.bytes;
        self.sum += other.sum;
    }
}

impl fmt::Display for FileSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes with the sum {}", self.bytes, self.sum)
    }
}

/// Sums of all files of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums(Vec<FileSum>);

impl Sums {
    /// Returns empty sums for this many files.
    pub(super) fn new(files: usize) -> Sums {
        Sums(vec![FileSum::default(); files])
    }

    pub(super) fn add(&mut self, file: usize, bytes: &[u8]) {
        self.0[file].add(bytes);
    }

    /// Adds the sums of another thread.
    pub(super) fn merge(&mut self, other: &Sums) {
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }

    /// Compares a method's sums with the sums of an ordinary read.
    ///
    /// # Errors
    /// Returns an error about the first file that differs.
    pub(super) fn expect(
        &self,
        expected: &Sums,
        set: &FileSet,
        method: &str,
    ) -> Result<(), FilesError> {
        let pairs = self.0.iter().zip(&expected.0).zip(set.files());
        for ((sum, expected), file) in pairs {
            if sum != expected {
                return Err(FilesError::Different {
                    path: file.path.clone(),
                    method: method.to_owned(),
                    found: sum.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_overflow_and_do_not_depend_on_pieces() {
        let bytes = vec![0xFF; 200_000];
        let mut at_once = FileSum::default();
        at_once.add(&bytes);
        assert_eq!((at_once.bytes, at_once.sum), (200_000, 200_000 * 255));
        let mut in_pieces = FileSum::default();
        bytes.chunks(777).for_each(|piece| in_pieces.add(piece));
        assert_eq!(in_pieces, at_once);
    }
}
