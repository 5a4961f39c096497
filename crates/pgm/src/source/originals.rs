//! Splitting of messages into packets.

use super::{SendError, Source};
use crate::wire::{Fragment, Sqn};

/// Size in bytes of the headers of a data packet, without its options.
const DATA_HEADER: usize = 24;
/// Size in bytes of the option that contains the total length of all options.
const OPTIONS_LENGTH: usize = 4;
const FRAGMENT: usize = 16;
const SYN: usize = 4;
const FIN: usize = 4;
const PARITY_GROUP: usize = 8;
const CURRENT_GROUP_SIZE: usize = 8;
const PARITY_TRAILER: usize = 2;

impl Source {
    /// Accepts a message, which may be empty, and returns the sequence number of its first packet.
    /// [`Source::poll_transmit`] then returns its packets. After an error, no part of the message
    /// is sent.
    ///
    /// # Errors
    /// Returns an error if too many packets are waiting, the message is too long for the window, or
    /// the session was closed.
    pub fn send(&mut self, message: &[u8]) -> Result<Sqn, SendError> {
        if self.end.is_some() {
            return Err(SendError::Closed);
        }
        let first = self.window.next();
        let is_syn = !self.window.has_started();
        let room = self.room(is_syn, false, false);
        if message.len() <= room {
            self.check_backlog(1)?;
            self.window.push(message, None);
            return Ok(first);
        }
        let room = self.room(is_syn, true, false);
        let window = &self.config.window;
        let (packets, max) = (message.len().div_ceil(room), window.packets as usize);
        if packets > max {
            return Err(SendError::TooManyPackets { packets, max });
        }
        let max = window.bytes.unwrap_or(usize::MAX).min(u32::MAX as usize);
        let length = match u32::try_from(message.len()) {
            Ok(length) if message.len() <= max => length,
            _ => {
                let bytes = message.len();
                return Err(SendError::TooManyBytes { bytes, max });
            }
        };
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

    /// Returns the maximum length in bytes of a message that fits into one packet. The first packet of the
    /// session has less room, because it carries one more option.
    pub fn longest_unfragmented(&self) -> usize {
        self.room(false, false, false)
    }

    /// Marks the last waiting packet as the end of the session, if the mark fits into the packet. If the mark
    /// does not fit, only the SPM after the packet announces the end.
    pub(super) fn mark_last(&mut self) {
        let fits = self.window.last_unsent().is_some_and(|last| {
            last.payload.len() <= self.room(last.is_first, last.fragment.is_some(), true)
        });
        if fits {
            self.window.finish();
        }
    }

    /// Returns the maximum number of payload bytes of a packet.
    fn room(&self, is_syn: bool, is_fragment: bool, is_fin: bool) -> usize {
        let mut options = 0;
        if is_syn {
            options += SYN;
        }
        if is_fragment {
            options += FRAGMENT;
        }
        if is_fin {
            options += FIN;
        }
        if self.congestion.is_some() {
            options += if self.config.address.is_ipv4() {
                16
            } else {
                28
            };
        }
        // A parity packet of full data packets must also fit, with the options that any parity index may
        // need.
        let trailer = if self.code.is_some() {
            options += PARITY_GROUP;
            if self.parity.shortens_groups() {
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

    /// Checks that waiting packets fill at most half of the window, so that sent packets stay in
    /// the window for repairs. A longer message is accepted only if no packet is waiting.
    fn check_backlog(&self, packets: usize) -> Result<(), SendError> {
        let waiting = self.window.unsent();
        if waiting == 0 || waiting + packets <= self.config.window.packets as usize / 2 {
            return Ok(());
        }
        let until = self.may_send_original().then(|| {
            self.rate
                .map_or(crate::Time::default(), |rate| rate.ready())
        });
        Err(SendError::WouldBlock { until })
    }
}
