//! Placeholder for systems without network namespaces.

use super::NetError;
use super::testbed::Side;

/// Type without values, because the system has no network namespaces.
#[derive(Debug)]
pub(super) enum Namespaces {}

impl Namespaces {
    pub(super) fn new() -> Result<Namespaces, NetError> {
        Err(NetError::Namespaces {
            doing: "checking the system".to_owned(),
            why: "they exist on Linux only".to_owned(),
        })
    }

    pub(super) fn within<T>(&self, _: Side, _: impl FnOnce() -> T) -> Result<T, NetError> {
        match *self {}
    }
}
