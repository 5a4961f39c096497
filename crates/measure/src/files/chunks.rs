//! Pieces in which files are read.

use super::FileSet;

/// Maximum number of bytes per read.
pub const CHUNK: usize = 65_536;

/// Piece of a file for one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Index of the file.
    pub(super) file: usize,
    /// Offset in the file in bytes.
    pub(super) offset: u64,
    /// Expected number of bytes. The read itself requests a whole buffer, because an unbuffered read at the
    /// end of a file requires this.
    pub(super) length: usize,
}

impl Chunk {
    /// Returns the rest of the piece after `length` bytes arrived. Returns `None` if the piece is
    /// complete, or if no bytes arrived.
    pub(super) fn after(self, length: usize) -> Option<Chunk> {
        (0 < length && length < self.length).then(|| Chunk {
            offset: self.offset + length as u64,
            length: self.length - length,
            ..self
        })
    }
}

/// Returns all pieces of a file of `size` bytes. An empty file has no pieces.
pub(super) fn of_file(file: usize, size: u64) -> impl Iterator<Item = Chunk> {
    (0..size).step_by(CHUNK).map(move |offset| Chunk {
        file,
        offset,
        length: usize::try_from(size - offset).map_or(CHUNK, |rest| rest.min(CHUNK)),
    })
}

/// Returns the pieces of all files, file by file.
pub(super) fn of_set(set: &FileSet) -> impl Iterator<Item = Chunk> {
    let sizes = set.files().iter().map(|file| file.size);
    sizes
        .enumerate()
        .flat_map(|(file, size)| of_file(file, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_file_exactly() {
        for size in [0, 1, 65_535, 65_536, 65_537, 1_000_000] {
            let mut end = 0;
            for chunk in of_file(3, size) {
                assert_eq!((chunk.file, chunk.offset), (3, end));
                assert!((1..=CHUNK).contains(&chunk.length));
                end += chunk.length as u64;
            }
            assert_eq!(end, size);
        }
    }

    #[test]
    fn a_short_read_leaves_the_rest() {
        let chunk = Chunk {
            file: 1,
            offset: 100,
            length: 50,
        };
        let rest = Chunk {
            file: 1,
            offset: 120,
            length: 30,
        };
        assert_eq!(chunk.after(20), Some(rest));
        for end in [0, 50, 60] {
            assert_eq!(chunk.after(end), None, "{end}");
        }
    }
}
