//! Reader of numbers and texts from untrusted bytes, in the byte order of the recorded machine.

/// Byte order of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }

    pub(crate) fn of_u16(self, number: u16) -> [u8; 2] {
        match self {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    pub(crate) fn of_u32(self, number: u32) -> [u8; 4] {
        match self {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    pub(crate) fn of_u64(self, number: u64) -> [u8; 8] {
        match self {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }
}

/// Cursor over bytes. If too few bytes are left, each method returns `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'b> {
    rest: &'b [u8],
    order: Order,
}

impl<'b> Bytes<'b> {
    pub(crate) fn new(bytes: &'b [u8], order: Order) -> Bytes<'b> {
        Bytes { rest: bytes, order }
    }

    pub(crate) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, n: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|bytes| self.order.u16(bytes))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| self.order.u32(bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| self.order.u64(bytes))
    }

    /// Takes a 32-bit number and returns it as a length.
    pub(crate) fn len32(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    /// Takes a 64-bit number and returns it as a length.
    pub(crate) fn len64(&mut self) -> Option<usize> {
        usize::try_from(self.u64()?).ok()
    }

    /// Takes a text and the zero byte at its end. Returns the text without the zero byte.
    pub(crate) fn zero_terminated(&mut self) -> Option<&'b [u8]> {
        let len = self.rest.iter().position(|byte| *byte == 0)?;
        let text = self.take(len);
        self.take(1)?;
        text
    }
}

/// Returns the bytes before the first zero byte.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Returns the bytes before the first zero byte as text. Invalid UTF-8 is replaced by U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_zero(bytes)).into_owned()
}
