//! Network namespaces where there are none.

use super::NetError;
use super::testbed::Side;

/// None can be.
#[derive(Debug)]
pub(super) enum Namespaces {}

impl Namespaces {
    pub(super) fn new() -> Result<Namespaces, NetError> {
        Err(NetError::Namespaces {
            doing: "looking for them".to_owned(),
            why: "only Linux has them".to_owned(),
        })
    }

    pub(super) fn within<T>(&self, _: Side, _: impl FnOnce() -> T) -> Result<T, NetError> {
        match *self {}
    }
}
