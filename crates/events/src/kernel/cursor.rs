//! Reader of a packed payload from front to back.

use std::net::{Ipv4Addr, Ipv6Addr};

use etl::Guid;

use crate::sid;
use crate::text::{self, Ansi, Utf16};

/// Unread bytes of a payload. If a read needs more bytes than are left, it returns `None` and leaves the
/// cursor unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    pointer_size: usize,
}

macro_rules! integers {
    ($($name:ident),*) => {$(
        #[inline]
        pub(super) fn $name(&mut self) -> Option<$name> {
            self.chunk().map($name::from_le_bytes)
        }
    )*};
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(super) fn new(payload: &'a [u8], pointer_size: usize) -> Self {
        Cursor {
            rest: payload,
            pointer_size,
        }
    }

    integers!(u8, i8, u16, u32, i32, u64);

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*chunk)
    }

    /// Reads an address or a size. It has the event's pointer size (4 or 8 bytes).
    #[inline]
    pub(super) fn pointer(&mut self) -> Option<u64> {
        match self.pointer_size {
            4 => self.u32().map(u64::from),
            _ => self.u64(),
        }
    }

    /// Reads a process id or a thread id. In the payload, the id has the size of a pointer.
    #[inline]
    pub(super) fn wide_id(&mut self) -> Option<u32> {
        self.pointer().map(|id| id as u32)
    }

    pub(super) fn port(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    pub(super) fn ipv4(&mut self) -> Option<Ipv4Addr> {
        self.chunk::<4>().map(Ipv4Addr::from)
    }

    pub(super) fn ipv6(&mut self) -> Option<Ipv6Addr> {
        self.chunk::<16>().map(Ipv6Addr::from)
    }

    pub(super) fn guid(&mut self) -> Option<Guid> {
        self.chunk().map(Guid)
    }

    pub(super) fn skip(&mut self, size: usize) -> Option<()> {
        self.rest = self.rest.get(size..)?;
        Some(())
    }

    /// Reads a TOKEN_USER image (two pointers) and the SID after the image. Returns the SID. The inner
    /// `Option` is `None` if the payload states that there is no SID.
    pub(super) fn sid(&mut self) -> Option<Option<&'a [u8]>> {
        let (sid, rest) = sid::split_token_user(self.rest, self.pointer_size)?;
        self.rest = rest;
        Some(sid)
    }

    /// Reads UTF-16 text up to a NUL or the payload's end.
    pub(super) fn utf16(&mut self) -> Option<Utf16<'a>> {
        (self.rest.len() >= 2).then(|| {
            let (text, rest) = text::split_utf16(self.rest);
            self.rest = rest;
            Utf16(text)
        })
    }

    /// Reads `count` UTF-16 units; the text ends at the first NUL.
    pub(super) fn wchars(&mut self, count: usize) -> Option<Utf16<'a>> {
        let (field, rest) = self.rest.split_at_checked(count.checked_mul(2)?)?;
        self.rest = rest;
        Some(Utf16(text::split_utf16(field).0))
    }

    /// Reads text of 8-bit characters up to a NUL or the payload's end.
    pub(super) fn ansi(&mut self) -> Option<Ansi<'a>> {
        (!self.rest.is_empty()).then(|| {
            let (text, rest) = text::split_ansi(self.rest);
            self.rest = rest;
            Ansi(text)
        })
    }

    /// Returns all unread bytes.
    #[inline]
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }
}
