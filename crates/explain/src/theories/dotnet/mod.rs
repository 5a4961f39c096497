//! Theories about the .NET runtime.

mod pauses;
mod pools;

pub(super) use pauses::Pauses;
pub(super) use pools::Pools;
