//! What is read at a time.

use super::FileSet;

/// The most bytes that are read at a time.
pub const CHUNK: usize = 65_536;

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The file's place in the set.
    pub(super) file: usize,
    /// Where it begins.
    pub(super) offset: u64,
    /// The bytes that should be there. More is asked for: a buffer's worth, as unbuffered reads of a
    /// file's end must.
    pub(super) length: usize,
}

impl Chunk {
    /// What is left to read after `length` bytes came; none when that is all, or nothing more comes.
    pub(super) fn after(self, length: usize) -> Option<Chunk> {
        (0 < length && length < self.length).then(|| Chunk {
            offset: self.offset + length as u64,
            length: self.length - length,
            ..self
        })
    }
}

/// All reads of one file of `size` bytes. An empty file has none.
pub(super) fn of_file(file: usize, size: u64) -> impl Iterator<Item = Chunk> {
    (0..size).step_by(CHUNK).map(move |offset| Chunk {
        file,
        offset,
        length: usize::try_from(size - offset).map_or(CHUNK, |rest| rest.min(CHUNK)),
    })
}

/// All reads of all files, file by file.
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
    fn chunks_cover_a_file_without_gap_or_overlap() {
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
