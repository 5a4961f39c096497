//! Reliable multicast by RFC 3208 (Pragmatic General Multicast), without I/O.

pub mod fec;
pub mod wire;
