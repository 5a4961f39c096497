//! Queue of reads through Windows I/O rings. On systems without such rings, the `ioring` crate
//! returns an error.

use std::fs::File;
use std::io;
use std::sync::Arc;

use ioring::{Buffer, Interface, Library, Memory, Ring, Target};

use super::drive::{Completion, ReadQueue};
use super::{CHUNK, FilesError};

pub(super) struct RingQueue {
    ring: Ring,
    targets: Vec<Target>,
    /// Buffers by slot. While a read uses the buffer of its slot, the entry of that slot is `None`. If
    /// buffers are registered, the whole field is `None`.
    owned: Option<Vec<Option<Buffer>>>,
    slots: usize,
}

impl RingQueue {
    /// Creates a ring with `slots` slots. If `registered` is true, files and buffers are registered.
    pub(super) fn new(
        files: Vec<File>,
        library: Option<Library>,
        interface: Interface,
        slots: u32,
        registered: bool,
    ) -> Result<Self, FilesError> {
        let not_here = |error: ioring::Error| FilesError::Unavailable(error.to_string());
        let library = library.map_or_else(Library::system, Ok).map_err(not_here)?;
        let mut ring = Ring::new(&library, interface, slots).map_err(not_here)?;
        let files: Vec<_> = files.into_iter().map(Arc::new).collect();
        let buffers: Vec<_> = (0..slots).map(|_| Buffer::new(CHUNK)).collect();
        let (targets, owned) = if registered {
            let indices = 0..u32::try_from(files.len()).unwrap_or(u32::MAX);
            ring.register_files(files).map_err(not_here)?;
            ring.register_buffers(buffers).map_err(not_here)?;
            (indices.map(Target::Registered).collect(), None)
        } else {
            let targets = files.into_iter().map(Target::File).collect();
            (targets, Some(buffers.into_iter().map(Some).collect()))
        };
        Ok(Self {
            ring,
            targets,
            owned,
            slots: slots as usize,
        })
    }
}

impl ReadQueue for RingQueue {
    fn slots(&self) -> usize {
        self.slots
    }

    fn queue(&mut self, slot: usize, file: usize, offset: u64) -> io::Result<()> {
        let memory = match &mut self.owned {
            Some(buffers) => {
                Memory::Owned(buffers[slot].take().ok_or(io::ErrorKind::ResourceBusy)?)
            }
            None => Memory::Registered(slot as u32),
        };
        let target = &self.targets[file];
        self.ring
            .read(target, memory, CHUNK as u32, offset, slot as u64)
            .map_err(io::Error::other)?;
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Completion>) -> io::Result<()> {
        while done.len() < least {
            let count = (least - done.len()) as u32;
            self.ring
                .submit_and_wait(count, None)
                .map_err(io::Error::other)?;
            while let Some(completion) = self.ring.pop().map_err(io::Error::other)? {
                let slot = completion.user_data as usize;
                if let (Some(buffers), Some(Memory::Owned(buffer))) =
                    (&mut self.owned, completion.memory)
                {
                    buffers[slot] = Some(buffer);
                }
                done.push((slot, completion.result.map_err(io::Error::other)));
            }
        }
        Ok(())
    }

    fn bytes(&mut self, slot: usize, length: usize) -> io::Result<&[u8]> {
        let buffer = match &self.owned {
            Some(buffers) => buffers[slot].as_ref().ok_or(io::ErrorKind::ResourceBusy)?,
            None => &*self.ring.buffer(slot as u32).map_err(io::Error::other)?,
        };
        Ok(&buffer[..length])
    }
}
