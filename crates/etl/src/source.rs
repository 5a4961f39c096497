//! Where a trace's bytes come from. The reader asks for byte ranges; drivers bring them.

use std::fs::File;
use std::io;

/// A file-like run of bytes that can be read at any offset, from several threads at once.
///
/// Reading, not mapping: a file that shrinks while it is read gives an error instead of a signal,
/// and memory stays bounded by the buffers in use instead of the pages touched.
pub trait Source: Send + Sync {
    /// Length in bytes when the trace was opened.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `offset` on and returns how many there were: fewer than
    /// asked for only at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.as_slice().len());
        let rest = &self[from..];
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// A regular file.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// Wraps an open file; its present length is what the trace has.
    pub fn new(file: File) -> io::Result<FileSource> {
        let len = file.metadata()?.len();
        Ok(FileSource { file, len })
    }

    #[cfg(unix)]
    fn read_once(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, into, offset)
    }

    #[cfg(windows)]
    fn read_once(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, into, offset)
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.read_once(offset + done as u64, &mut into[done..]) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }
}
