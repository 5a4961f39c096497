//! Aligned memory for reads and writes.

use std::ops::{Deref, DerefMut};

/// Bytes that start at a multiple of [`Buffer::ALIGNMENT`], because unbuffered files require this
/// alignment. Moving the buffer does not move its bytes.
#[derive(Debug)]
pub struct Buffer {
    /// Allocated memory. It is longer than requested, so that it contains an aligned range of the requested
    /// length.
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Alignment in bytes. It is the size of a memory page, and at least as large as the sector size of
    /// today's disks.
    pub const ALIGNMENT: usize = 4096;

    /// Returns a buffer of `length` zeros.
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length.saturating_add(Self::ALIGNMENT)];
        let past = memory.as_ptr().addr() % Self::ALIGNMENT;
        Self {
            memory,
            start: (Self::ALIGNMENT - past) % Self::ALIGNMENT,
            length,
        }
    }

    /// Returns the address of the bytes. Pointers made from this address may write to the bytes.
    pub(crate) fn address(&mut self) -> usize {
        self.as_mut_ptr().expose_provenance()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_as_long_as_asked_for() {
        for length in [0, 1, 4095, 4096, 65_536] {
            let mut buffer = Buffer::new(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.address() % Buffer::ALIGNMENT, 0);
            let moved_from = buffer.address();
            assert_eq!({ buffer }.address(), moved_from);
        }
    }
}
