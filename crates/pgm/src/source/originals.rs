//! Messages become packets.

use super::{SendError, Source};
use crate::wire::{Fragment, Sqn};

/// Bytes of a data packet before its options.
const DATA_HEADER: usize = 24;
/// The option that says how long all are.
const OPTIONS_LENGTH: usize = 4;
const FRAGMENT: usize = 16;
const SYN: usize = 4;
const PARITY_GROUP: usize = 8;
const CURRENT_GROUP_SIZE: usize = 8;
const PARITY_TRAILER: usize = 2;

impl Source {
    /// Takes a message, which may be empty, and gives the number of its first packet. It is sent by
    /// the following calls of [`Source::poll_transmit`], all of it or, after an error, nothing.
    ///
    /// # Errors
    /// When too much is waiting, it is too long for the window, or the session was closed.
    pub fn send(&mut self, message: &[u8]) -> Result<Sqn, SendError> {
        if self.end.is_some() {
            return Err(SendError::Closed);
        }
        let first = self.window.next();
        let is_syn = !self.window.has_begun();
        let room = self.room(is_syn, false);
        if message.len() <= room {
            self.check_backlog(1)?;
            self.window.push(message, None);
            return Ok(first);
        }
        let room = self.room(is_syn, true);
        let too_long = |packets| SendError::TooLong {
            packets,
            most: self.config.window.packets as usize,
        };
        let Ok(length) = u32::try_from(message.len()) else {
            return Err(too_long(message.len().div_ceil(room)));
        };
        let packets = message.len().div_ceil(room);
        if packets > self.config.window.packets as usize
            || self
                .config
                .window
                .bytes
                .is_some_and(|most| message.len() > most)
        {
            return Err(too_long(packets));
        }
        self.check_backlog(packets)?;
        for (part, at) in message.chunks(room).zip((0..).step_by(room)) {
            let fragment = Fragment {
                first,
                offset: at,
                length,
            };
            self.window.push(part, Some(fragment));
        }
        Ok(first)
    }

    /// The longest message that goes as one packet.
    pub fn longest_unfragmented(&self) -> usize {
        self.room(false, false)
    }

    /// How many bytes of payload a packet can have.
    fn room(&self, is_syn: bool, is_fragment: bool) -> usize {
        let mut options = 0;
        if is_syn {
            options += SYN;
        }
        if is_fragment {
            options += FRAGMENT;
        }
        if self.congestion.is_some() {
            options += if self.config.address.is_ipv4() {
                16
            } else {
                28
            };
        }
        // Parity of a full packet, with any index, must fit, too.
        let trailer = if self.code.is_some() {
            options += PARITY_GROUP;
            if self.parity.cuts_short() {
                options += CURRENT_GROUP_SIZE;
            }
            PARITY_TRAILER
        } else {
            0
        };
        if options > 0 {
            options += OPTIONS_LENGTH;
        }
        self.config.max_packet - DATA_HEADER - options - trailer
    }

    /// What waits must leave room in the window for what was sent, so that it can be repaired; a
    /// message longer than that may only go when nothing waits.
    fn check_backlog(&self, packets: usize) -> Result<(), SendError> {
        let waiting = self.window.unsent();
        if waiting == 0 || waiting + packets <= self.config.window.packets as usize / 2 {
            return Ok(());
        }
        let until = self.may_send_original().then(|| {
            self.rate
                .map_or(crate::Time::default(), |rate| rate.ready())
        });
        Err(SendError::NotYet { until })
    }
}
