//! Building payloads: little-endian fields one after another, without gaps.

use std::net::IpAddr;

use etl::Guid;

/// A payload that fields are added to.
pub(super) trait Payload: Sized {
    /// Adds bytes as they are.
    fn bytes(self, bytes: &[u8]) -> Self;

    #[inline]
    fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    #[inline]
    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn guid(self, guid: Guid) -> Self {
        self.bytes(&guid.0)
    }

    /// A network address in the network's order.
    #[inline]
    fn ip(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }

    /// A port in the network's order.
    #[inline]
    fn port(self, port: u16) -> Self {
        self.bytes(&port.to_be_bytes())
    }

    /// UTF-16 without an end.
    fn utf16(self, text: &str) -> Self {
        text.encode_utf16().fold(self, Payload::u16)
    }

    /// UTF-16 and a NUL.
    fn wide(self, text: &str) -> Self {
        self.utf16(text).u16(0)
    }

    /// `units` of UTF-16, of which the last is NUL.
    fn wide_array(self, text: &str, units: usize) -> Self {
        let padded = text.encode_utf16().take(units - 1);
        padded
            .chain(std::iter::repeat(0))
            .take(units)
            .fold(self, Payload::u16)
    }

    /// Text in bytes, and a NUL.
    fn narrow(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).u8(0)
    }
}

impl Payload for Vec<u8> {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.extend_from_slice(bytes);
        self
    }
}

/// A payload of few bytes, for events that are logged by the million.
#[derive(Clone, Copy)]
pub(super) struct Small {
    bytes: [u8; Small::CAPACITY],
    used: usize,
}

impl Small {
    /// The largest such payload: a TCP send over IPv6.
    const CAPACITY: usize = 64;

    #[inline]
    pub(super) fn new() -> Small {
        Small {
            bytes: [0; Small::CAPACITY],
            used: 0,
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Payload for Small {
    #[inline]
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self
    }
}
