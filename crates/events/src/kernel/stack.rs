//! Call stacks of other events.

use super::cursor::Cursor;

/// Return addresses of a stack, the innermost call first; 4 or 8 bytes each in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses<'a> {
    bytes: &'a [u8],
    pointer_size: usize,
}

impl<'a> Addresses<'a> {
    fn new(bytes: &'a [u8], pointer_size: usize) -> Self {
        Addresses {
            bytes,
            pointer_size: if pointer_size == 4 { 4 } else { 8 },
        }
    }
}

impl Iterator for Addresses<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let mut cursor = Cursor::new(self.bytes, self.pointer_size);
        let address = cursor.pointer()?;
        self.bytes = cursor.rest();
        Some(address)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.bytes.len() / self.pointer_size;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Addresses<'_> {}

/// Stack, hook 0x1820: the stack of the event that has exactly [`Stack::event_time`] as raw time.
/// Its kernel and user halves may come as two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Raw time of the event that the stack belongs to.
    pub event_time: u64,
    /// Process of the stack's thread.
    pub process_id: u32,
    /// The thread whose stack it is.
    pub thread_id: u32,
    /// Its addresses.
    pub addresses: Addresses<'a>,
}

impl<'a> Stack<'a> {
    /// Reads the payload; `None` if it is too short.
    #[inline]
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(Stack {
            event_time: cursor.u64()?,
            process_id: cursor.u32()?,
            thread_id: cursor.u32()?,
            addresses: Addresses::new(cursor.rest(), pointer_size),
        })
    }
}

/// Stack key, hooks 0x1825 (kernel half) and 0x1826 (user half): a stack of an event as a
/// reference. It means the first definition of the key at or after the reference's time, as keys
/// are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackReference {
    /// Raw time of the event that the stack belongs to.
    pub event_time: u64,
    /// Process of the stack's thread.
    pub process_id: u32,
    /// The thread whose stack it is.
    pub thread_id: u32,
    /// The key, an address in the kernel's cache of stacks.
    pub key: u64,
}

impl StackReference {
    /// Reads the payload; `None` if it is too short.
    #[inline]
    pub fn read(payload: &[u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        Some(StackReference {
            event_time: cursor.u64()?,
            process_id: cursor.u32()?,
            thread_id: cursor.u32()?,
            key: cursor.pointer()?,
        })
    }
}

/// Definition of a stack key, hooks 0x1822 (created), 0x1823 (deleted) and 0x1824 (rundown).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackDefinition<'a> {
    /// The key.
    pub key: u64,
    /// The addresses of the stack.
    pub addresses: Addresses<'a>,
}

impl<'a> StackDefinition<'a> {
    /// Reads the payload; `None` if it is too short.
    #[inline]
    pub fn read(payload: &'a [u8], _version: u8, pointer_size: usize) -> Option<Self> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let key = cursor.pointer()?;
        Some(StackDefinition {
            key,
            addresses: Addresses::new(cursor.rest(), pointer_size),
        })
    }
}
