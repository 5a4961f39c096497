//! Buffer for received packets.

use bytes::{Bytes, BytesMut};

/// Receive buffer. Messages may share its memory.
#[derive(Debug)]
pub(super) struct ReceiveBuffer(Bytes);

impl ReceiveBuffer {
    pub(super) fn new(length: usize) -> ReceiveBuffer {
        ReceiveBuffer(BytesMut::zeroed(length).freeze())
    }

    /// Fills the buffer by calling `fill`. If a message still shares the memory, new memory is
    /// allocated first.
    pub(super) fn fill<T>(&mut self, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        let length = self.0.len();
        let own = std::mem::take(&mut self.0).try_into_mut();
        let mut own = own.unwrap_or_else(|_| BytesMut::zeroed(length));
        let filled = fill(&mut own);
        self.0 = own.freeze();
        filled
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::ReceiveBuffer;

    #[test]
    fn shared_memory_is_not_overwritten() {
        let mut room = ReceiveBuffer::new(8);
        room.fill(|bytes| bytes.copy_from_slice(b"messages"));
        let place = room.bytes().as_ptr();
        let message = room.bytes().slice(..7);
        room.fill(|bytes| bytes.fill(b'-'));
        assert_eq!(&message[..], b"message");
        assert_eq!(&room.bytes()[..], b"--------");
        assert_ne!(room.bytes().as_ptr(), place);
        let place = room.bytes().as_ptr();
        room.fill(|bytes| bytes.fill(b'+'));
        assert_eq!(room.bytes().as_ptr(), place, "not shared any more");
    }
}
