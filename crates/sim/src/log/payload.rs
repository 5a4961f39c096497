//! Construction of event payloads: little-endian fields without gaps.

use std::net::IpAddr;

/// A payload under construction.
pub(super) trait Payload {
    /// Appends bytes.
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self;

    #[inline(always)]
    fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    #[inline(always)]
    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline(always)]
    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline(always)]
    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Appends an IP address in network byte order.
    #[inline]
    fn ip(&mut self, address: IpAddr) -> &mut Self {
        match address {
            IpAddr::V4(address) => self.bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }

    /// Appends a port in network byte order.
    #[inline]
    fn port(&mut self, port: u16) -> &mut Self {
        self.bytes(&port.to_be_bytes())
    }

    /// Appends the text as UTF-16 without a NUL.
    fn utf16(&mut self, text: &str) -> &mut Self {
        text.encode_utf16()
            .fold(self, |payload, unit| payload.u16(unit))
    }

    /// Appends the text as UTF-16, followed by a NUL.
    fn wide(&mut self, text: &str) -> &mut Self {
        self.utf16(text).u16(0)
    }

    /// Appends the text as exactly `units` UTF-16 code units. A longer text is cut, and a shorter text is
    /// padded with NULs. The last unit is always NUL.
    fn wide_array(&mut self, text: &str, units: usize) -> &mut Self {
        let padded = text.encode_utf16().take(units - 1);
        padded
            .chain(std::iter::repeat(0))
            .take(units)
            .fold(self, |payload, unit| payload.u16(unit))
    }

    /// Appends the UTF-8 bytes of the text and a NUL.
    fn narrow(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes()).u8(0)
    }
}

impl Payload for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.extend_from_slice(bytes);
        self
    }
}

/// A small payload without heap memory, for events that are logged millions of times.
#[derive(Clone, Copy)]
pub(super) struct Small {
    bytes: [u8; Small::CAPACITY],
    used: usize,
}

impl Small {
    /// Capacity in bytes: the size of the largest small payload, a TCP send over IPv6.
    const CAPACITY: usize = 64;

    #[inline(always)]
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
    // If this function is inlined, the compiler turns a chain of fields into a few stores at constant
    // offsets.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self
    }
}
