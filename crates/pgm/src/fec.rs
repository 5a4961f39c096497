//! Forward error correction: parity packets, any of which replaces any lost packet of its group
//! (RFC 3208 appendix A).
//!
//! The code is a systematic Reed–Solomon code over GF(2⁸), in the layout of L. Rizzo's erasure code,
//! which PGM's implementations share. It is neither that of RFC 5510 nor that of the well-known
//! libraries, whose evaluation points are others, so that none of them could repair what a PGM
//! source sends.

mod code;
mod field;
mod group;

pub use code::Code;
pub(crate) use group::{Member, Parity, encode, recover};
