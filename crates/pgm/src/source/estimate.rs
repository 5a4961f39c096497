//! Estimate of the number of receivers by a poll (RFC 3208 appendix D).

use std::{net::Ipv4Addr, time::Duration};

use crate::wire::{Poll, Polr, Sqn};

/// State of the current poll: at first the question to send, and later the number of answers.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    question: Option<Poll>,
    asked: Option<SizeRequest>,
}

#[derive(Debug)]
struct SizeRequest {
    sqn: Sqn,
    rarity: u32,
    answers: u64,
}

impl Estimate {
    pub(super) fn begin(&mut self, back_off: Duration, rarity: u32, random: u32) {
        let rarity = rarity.min(31);
        let last = self.asked.as_ref().map_or(Sqn(0), |asked| asked.sqn);
        self.question = Some(Poll {
            sqn: last.plus(1),
            round: 0,
            sub_type: 0,
            path: Ipv4Addr::UNSPECIFIED.into(),
            back_off: u32::try_from(back_off.as_micros()).unwrap_or(u32::MAX),
            random,
            mask: (1 << rarity) - 1,
        });
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.question.is_some()
    }

    /// Returns the question to send, if there is one, and starts to count the answers. The caller fills in
    /// the path.
    pub(super) fn question(&mut self) -> Option<Poll> {
        let question = self.question.take()?;
        self.asked = Some(SizeRequest {
            sqn: question.sqn,
            rarity: question.mask.count_ones(),
            answers: 0,
        });
        Some(question)
    }

    pub(super) fn answer(&mut self, answer: Polr) {
        if let Some(asked) = &mut self.asked
            && (answer.sqn, answer.round) == (asked.sqn, 0)
        {
            asked.answers += 1;
        }
    }

    /// Returns the estimated number of receivers. Each answer represents 2^`rarity` receivers.
    pub(super) fn receivers(&self) -> Option<u64> {
        let request = self.asked.as_ref()?;
        Some(request.answers << request.rarity)
    }
}
