//! Operations that are not complete, and what they hold: the files and memory that the kernel may
//! still use.

use std::fs::File;
use std::mem;
use std::sync::Arc;

use crate::Buffer;
use crate::entry::BufferInfo;

/// The file that an operation is about. It stays open until the operation is complete.
#[derive(Debug, Clone)]
pub enum Target {
    /// A file; it must not be bound to a completion port.
    File(Arc<File>),
    /// The place of a file among those that were registered.
    Registered(u32),
}

/// The memory that an operation reads into or writes from.
#[derive(Debug)]
pub enum Memory {
    /// A buffer, which is the ring's until the operation is complete.
    Owned(Buffer),
    /// The place of a buffer among those that were registered.
    Registered(u32),
}

/// An operation, to cancel it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

/// What an operation holds until it is complete.
#[derive(Debug)]
pub(crate) enum Held {
    /// What only the ring itself asks for.
    Nothing,
    Transfer {
        target: Target,
        memory: Memory,
        user_data: u64,
    },
    Control {
        target: Target,
        user_data: u64,
    },
    Files {
        files: Vec<Arc<File>>,
        /// Read by the kernel only, as is `_infos`.
        _handles: Vec<usize>,
    },
    Buffers {
        buffers: Vec<Buffer>,
        _infos: Vec<BufferInfo>,
    },
}

/// The operations that are not complete, found by their token.
///
/// A token is a place and how often that place was used, so that one of an operation that is
/// complete is not mistaken for that of the next at the same place.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    uses: u32,
    held: Option<Held>,
}

impl InFlight {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Keeps what a new operation holds, and gives its token.
    pub(crate) fn insert(&mut self, held: Held) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                uses: 0,
                held: None,
            });
            // As many as a queue has entries at most: its size is 32 bits wide.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[place as usize];
        slot.uses = slot.uses.wrapping_add(1);
        slot.held = Some(held);
        u64::from(slot.uses) << 32 | u64::from(place)
    }

    /// What the operation holds; none when there is none with this token.
    pub(crate) fn get(&self, token: u64) -> Option<&Held> {
        let slot = self.slots.get(place(token))?;
        slot.held.as_ref().filter(|_| slot.uses == uses(token))
    }

    /// Forgets an operation, giving back what it held.
    pub(crate) fn remove(&mut self, token: u64) -> Option<Held> {
        self.get(token)?;
        let held = self.slots[place(token)].held.take();
        self.free.push(place(token) as u32);
        held
    }

    /// Makes sure that nothing held is ever freed.
    pub(crate) fn leak(&mut self) {
        mem::forget(mem::take(self));
    }
}

fn place(token: u64) -> usize {
    (token & u64::from(u32::MAX)) as usize
}

fn uses(token: u64) -> u32 {
    (token >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_operation() {
        let mut in_flight = InFlight::default();
        let first = in_flight.insert(Held::Nothing);
        let second = in_flight.insert(Held::Nothing);
        assert_ne!(first, second);
        assert!(in_flight.remove(first).is_some());
        assert!(in_flight.remove(first).is_none());

        let third = in_flight.insert(Held::Nothing);
        assert_eq!(place(third), place(first), "the place is used again");
        assert!(in_flight.remove(first).is_none(), "the token is not");
        assert_eq!(in_flight.len(), 2);
    }

    #[test]
    fn a_token_that_was_never_given_is_unknown() {
        let mut in_flight = InFlight::default();
        in_flight.insert(Held::Nothing);
        for token in [0, 1, u64::MAX, 1 << 32 | 7] {
            assert!(in_flight.remove(token).is_none(), "{token:#x}");
        }
    }
}
