//! Table of the operations in flight, with the files and memory that the kernel may still use for
//! them.

use std::fs::File;
use std::mem;
use std::sync::Arc;

use crate::Buffer;
use crate::entry::BufferInfo;

/// File that an operation uses. It stays open until the operation completes.
#[derive(Debug, Clone)]
pub enum Target {
    /// Open file. It must not be bound to a completion port.
    File(Arc<File>),
    /// Index of a registered file.
    Registered(u32),
}

/// Memory that an operation uses.
#[derive(Debug)]
pub enum Memory {
    /// Buffer that the ring owns until the operation completes.
    Owned(Buffer),
    /// Index of a registered buffer.
    Registered(u32),
}

/// Handle of an operation, for [`Ring::cancel`](crate::Ring::cancel).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

/// Resources that an operation holds until it completes.
#[derive(Debug)]
pub(crate) enum Resources {
    /// No resources. The ring itself issued the operation, and the operation uses no files or memory.
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
        /// Array of file handles. The kernel reads this array, and also `_infos`, until the
        /// registration completes.
        _handles: Vec<usize>,
    },
    Buffers {
        buffers: Vec<Buffer>,
        _infos: Vec<BufferInfo>,
    },
}

/// Operations in flight, by token.
///
/// A token consists of the index of a slot (low 32 bits) and the number of times that the slot was
/// used (high 32 bits). The token of a completed operation therefore does not match the next
/// operation in the same slot.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    uses: u32,
    held: Option<Resources>,
}

impl InFlight {
    /// Returns the number of operations in flight.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Stores the resources of a new operation and returns its token.
    pub(crate) fn insert(&mut self, held: Resources) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                uses: 0,
                held: None,
            });
            // The index fits into 32 bits, because there are at most as many slots as entries in a
            // queue.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[place as usize];
        slot.uses = slot.uses.wrapping_add(1);
        slot.held = Some(held);
        u64::from(slot.uses) << 32 | u64::from(place)
    }

    /// Returns the resources of the operation with this token, if it is in flight.
    pub(crate) fn get(&self, token: u64) -> Option<&Resources> {
        let slot = self.slots.get(place(token))?;
        slot.held.as_ref().filter(|_| slot.uses == uses(token))
    }

    /// Removes the operation with this token and returns its resources.
    pub(crate) fn remove(&mut self, token: u64) -> Option<Resources> {
        self.get(token)?;
        let resources = self.slots[place(token)].held.take();
        self.free.push(place(token) as u32);
        resources
    }

    /// Leaks all resources, so that they are never freed.
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
        let first = in_flight.insert(Resources::Nothing);
        let second = in_flight.insert(Resources::Nothing);
        assert_ne!(first, second);
        assert!(in_flight.remove(first).is_some());
        assert!(in_flight.remove(first).is_none());

        let third = in_flight.insert(Resources::Nothing);
        assert_eq!(place(third), place(first), "the slot is used again");
        assert!(
            in_flight.remove(first).is_none(),
            "the old token is invalid"
        );
        assert_eq!(in_flight.len(), 2);
    }

    #[test]
    fn a_token_that_was_never_given_is_unknown() {
        let mut in_flight = InFlight::default();
        in_flight.insert(Resources::Nothing);
        for token in [0, 1, u64::MAX, 1 << 32 | 7] {
            assert!(in_flight.remove(token).is_none(), "{token:#x}");
        }
    }
}
