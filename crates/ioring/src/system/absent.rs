//! Where there are no I/O rings: nothing here can ever be made. `unsafe` is only the promise that
//! the other systems' function of the same name asks for.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use crate::entry::{CompletionEntry, Entry};
use crate::{Capabilities, Error, Interface, Operation, Version};

/// No functions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Functions {}

impl Functions {
    pub(crate) fn of_system() -> Result<Self, Error> {
        Err(Error::NotAvailable("only 64-bit Windows 11 has them"))
    }

    #[expect(unsafe_code, reason = "as on Windows")]
    pub(crate) unsafe fn of_dll(_: &Path) -> Result<Self, Error> {
        Self::of_system()
    }

    pub(crate) fn capabilities(&self, _: Interface) -> Result<Capabilities, Error> {
        match *self {}
    }
}

/// No queue.
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

/// A file's handle: no ring will ever ask for it.
pub(crate) fn handle(_: &File) -> usize {
    0
}
