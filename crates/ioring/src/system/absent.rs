//! Placeholder for systems without I/O rings. Its types have no values, so that most of its
//! functions can never be called.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use crate::entry::{CompletionEntry, Entry};
use crate::{Capabilities, Error, Interface, Operation, Version};

/// Type without values, because the system has no ring functions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Functions {}

impl Functions {
    pub(crate) fn from_system() -> Result<Self, Error> {
        Err(Error::NotAvailable("they need 64-bit Windows 11"))
    }

    #[expect(unsafe_code, reason = "as on Windows")]
    pub(crate) unsafe fn from_dll(_: &Path) -> Result<Self, Error> {
        Self::from_system()
    }

    pub(crate) fn capabilities(&self, _: Interface) -> Result<Capabilities, Error> {
        match *self {}
    }
}

/// Type without values, because the system has no ring queues.
#[derive(Debug)]
pub(crate) enum Queue {}

impl Queue {
    pub(crate) fn new(
        functions: &Functions,
        _: Interface,
        _: Version,
        _: u32,
    ) -> Result<Self, Error> {
        match *functions {}
    }

    pub(crate) fn version(&self) -> Version {
        match *self {}
    }

    pub(crate) fn completion_entries(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn supports(&self, _: Operation) -> bool {
        match *self {}
    }

    pub(crate) fn push(&mut self, _: &Entry, _: u64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn submit(&mut self, _: u32, _: Option<Duration>) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn pop(&mut self) -> Result<Option<CompletionEntry>, Error> {
        match *self {}
    }

    pub(crate) fn close(&mut self) {
        match *self {}
    }
}

/// Returns a placeholder for the handle of a file. This function is never called.
pub(crate) fn handle(_: &File) -> usize {
    0
}
