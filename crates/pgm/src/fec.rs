//! Forward error correction: a parity packet can replace any lost packet of its group (RFC 3208
//! appendix A).
//!
//! The code is a systematic Reed–Solomon code over GF(2⁸) with the layout of L. Rizzo's erasure
//! code, as in other PGM implementations. RFC 5510 and the well-known libraries use other
//! evaluation points, so they cannot repair the packets of a PGM source.

mod code;
mod field;
mod group;

pub use code::Code;
pub(crate) use group::{Member, Parity, encode, recover};
