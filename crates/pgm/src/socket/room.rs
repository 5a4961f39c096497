//! Memory in which packets come.

use bytes::{Bytes, BytesMut};

/// Memory in which packets come, and which messages of theirs may share.
#[derive(Debug)]
pub(super) struct Room(Bytes);

impl Room {
    pub(super) fn of(length: usize) -> Room {
        Room(BytesMut::zeroed(length).freeze())
    }

    /// Has it filled: the same memory again, or other where a message still has a share in it.
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
    use super::Room;

    #[test]
    fn what_is_shared_stays_as_it_is() {
        let mut room = Room::of(8);
        room.fill(|bytes| bytes.copy_from_slice(b"messages"));
        let place = room.bytes().as_ptr();
        let message = room.bytes().slice(..7);
        room.fill(|bytes| bytes.fill(b'-'));
        assert_eq!(&message[..], b"message");
        assert_eq!(&room.bytes()[..], b"--------");
        assert_ne!(room.bytes().as_ptr(), place);
        let place = room.bytes().as_ptr();
        room.fill(|bytes| bytes.fill(b'+'));
        assert_eq!(room.bytes().as_ptr(), place, "nobody else has it");
    }
}
