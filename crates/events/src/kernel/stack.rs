//! Events with the call stacks of other events.

use super::cursor::Cursor;

/// Iterator over the return addresses of a stack, innermost call first. Each address has 4 or 8
/// bytes in the payload.
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

/// Stack, hook 0x1820: the call stack of another event. The raw time of that event is [`Stack::event_time`].
/// The kernel part and the user part of a stack may be in two Stack events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Raw time of the event to which the stack belongs.
    pub event_time: u64,
    /// Process of the thread that has the stack.
    pub process_id: u32,
    /// Thread that has the stack.
    pub thread_id: u32,
    /// Return addresses of the stack, innermost call first.
    pub addresses: Addresses<'a>,
}

impl<'a> Stack<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
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

/// StackKeyKernel and StackKeyUser, hooks 0x1825 (kernel part) and 0x1826 (user part). They refer to an
/// event's stack by a key. The kernel reuses keys. So the reference means the first definition of the key at
/// or after the time of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackReference {
    /// Raw time of the event to which the stack belongs.
    pub event_time: u64,
    /// Process of the thread that has the stack.
    pub process_id: u32,
    /// Thread that has the stack.
    pub thread_id: u32,
    /// Key of the stack: an address in the kernel's stack cache.
    pub key: u64,
}

impl StackReference {
    /// Reads the payload. Returns `None` if the payload is too short.
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

/// KeyCreate, KeyDelete and KeyRundown, hooks 0x1822, 0x1823 and 0x1824. They define a stack key: they
/// contain the return addresses of the key's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackDefinition<'a> {
    /// Key of the stack.
    pub key: u64,
    /// Return addresses of the stack, innermost call first.
    pub addresses: Addresses<'a>,
}

impl<'a> StackDefinition<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
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
