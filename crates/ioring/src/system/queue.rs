//! The queues of a ring, through either interface.

use std::fs::File;
use std::os::windows::io::AsRawHandle;
use std::time::Duration;

use super::functions::Functions;
use super::kernel_base::KernelBaseRing;
use super::nt::NtRing;
use crate::entry::{CompletionEntry, Entry};
use crate::{Error, Interface, Operation, Version};

/// A ring of the system. The files and memory of an entry must stay valid until the entry
/// completes.
#[derive(Debug)]
pub(crate) enum Queue {
    KernelBase(KernelBaseRing),
    Nt(NtRing),
    Closed,
}

impl Queue {
    pub(crate) fn new(
        functions: &Functions,
        interface: Interface,
        version: Version,
        entries: u32,
    ) -> Result<Self, Error> {
        Ok(match interface {
            Interface::KernelBase => {
                let functions = functions.kernel_base()?;
                Self::KernelBase(KernelBaseRing::new(functions, version, entries)?)
            }
            Interface::Nt => Self::Nt(NtRing::new(functions.nt()?, version, entries)?),
        })
    }

    pub(crate) fn version(&self) -> Version {
        match self {
            Self::KernelBase(ring) => ring.version(),
            Self::Nt(ring) => ring.version(),
            Self::Closed => Version(0),
        }
    }

    pub(crate) fn completion_entries(&self) -> u32 {
        match self {
            Self::KernelBase(ring) => ring.completion_entries(),
            Self::Nt(ring) => ring.completion_entries(),
            Self::Closed => 0,
        }
    }

    pub(crate) fn supports(&self, operation: Operation) -> bool {
        match self {
            Self::KernelBase(ring) => ring.supports(operation),
            // The NT interface has no query for supported operations. The version of the ring decides which
            // operations it supports.
            Self::Nt(_) => true,
            Self::Closed => false,
        }
    }

    pub(crate) fn push(&mut self, entry: &Entry, token: u64) -> Result<(), Error> {
        match self {
            Self::KernelBase(ring) => ring.push(entry, token),
            Self::Nt(ring) => ring.push(entry, token),
            Self::Closed => Err(Error::Full),
        }
    }

    pub(crate) fn submit(&mut self, wait: u32, limit: Option<Duration>) -> Result<(), Error> {
        match self {
            Self::KernelBase(ring) => ring.submit(wait, limit),
            Self::Nt(ring) => ring.submit(wait, limit),
            Self::Closed => Ok(()),
        }
    }

    pub(crate) fn pop(&mut self) -> Result<Option<CompletionEntry>, Error> {
        match self {
            Self::KernelBase(ring) => ring.pop(),
            Self::Nt(ring) => ring.pop(),
            Self::Closed => Ok(None),
        }
    }

    pub(crate) fn close(&mut self) {
        *self = Self::Closed;
    }
}

/// Returns the handle of a file as a number.
pub(crate) fn handle(file: &File) -> usize {
    file.as_raw_handle().expose_provenance()
}
