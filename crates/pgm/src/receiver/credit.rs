//! Limit on the number of bytes sent to a source.

use crate::wire::{Body, Packet};

/// Number of bytes that may be sent to a source. Each byte received from the source allows two
/// bytes.
///
/// The address of a source can be spoofed. Without a limit, a forged SPM with thousands of sequence
/// numbers would make receivers flood the owner of that address with requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    bytes: usize,
    most: usize,
    is_used_up: bool,
}

impl Credit {
    /// Number of bytes that may be sent per received byte.
    const FACTOR: usize = 2;

    /// Creates an empty credit that grows to at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            bytes: 0,
            most,
            is_used_up: false,
        }
    }

    /// Adds the credit for a received packet. The bytes of its options do not count.
    pub(super) fn earn(&mut self, packet: &Packet<'_>) {
        let body = match packet.body {
            Body::Odata(_) | Body::Rdata(_) => 8,
            Body::Spm(spm) if spm.path.is_ipv6() => 32,
            _ => 20,
        };
        let size = Packet::HEADER + body + packet.payload.len();
        self.bytes = (self.bytes + Self::FACTOR * size).min(self.most);
        self.is_used_up = false;
    }

    /// Subtracts the size of a packet from the credit. If the credit is too small, returns false.
    /// Then no packet can be sent to the source until the next packet from the source arrives.
    pub(super) fn pay(&mut self, bytes: usize) -> bool {
        let rest = self.bytes.checked_sub(bytes);
        self.is_used_up = rest.is_none();
        self.bytes = rest.unwrap_or(self.bytes);
        rest.is_some()
    }

    pub(super) fn bytes(self) -> usize {
        self.bytes
    }

    pub(super) fn is_used_up(self) -> bool {
        self.is_used_up
    }
}
