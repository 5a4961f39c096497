//! Chain of runs and waits that led to the end of a wait, divided into parts.

use rustc_hash::FxHashSet;
use tables::StoreError;

use super::pick::Candidate;
use super::sent_messages::SentMessages;
use crate::chain::parts::{Kind, Part, Process, Sources, What, Who, parts};
use crate::chain::path::{self, Leg, Runs, Thread};
use crate::chain::user_attention::UserAttention;
use crate::drivers::is_of_disks;
use crate::ranges::overlap;
use crate::survey::MESSAGES;
use crate::thresholds::{BLAME_PERCENT, HARD_FAULTS_NS, is_share};
use crate::{Case, Wait};

/// Maximum number of steps that are followed back from a wait.
const LEGS: usize = 200;
/// Maximum number of steps that are followed back from the end of a response. A response may consist of many short
/// waits.
const RESPONSE_LEGS: usize = 1_000;

/// Chain that led to the end of a wait.
pub(super) struct Chain<'c> {
    pub(super) candidate: Candidate<'c>,
    /// Steps of the chain, the latest first.
    pub(super) legs: Vec<Leg>,
    /// Parts of the wait, the longest first. The sum of their lengths is the length of the wait.
    pub(super) parts: Vec<Part>,
    pub(super) disks: Disks,
}

/// Knowledge about disks in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disks {
    /// Requests to disks are recorded.
    Recorded,
    /// Requests to disks are not recorded, but a DPC of a driver of disks ended the wait.
    EndedWait,
    /// Requests to disks are not recorded.
    Unknown,
}

impl<'c> Chain<'c> {
    /// Follows a wait back. Returns the steps of the chain, the latest first.
    pub(super) fn follow(
        case: &Case<'_>,
        runs: &mut Runs<'_>,
        candidate: &Candidate<'_>,
        sent: &SentMessages,
    ) -> Result<Vec<Leg>, StoreError> {
        let thread = Thread {
            id: candidate.wait.thread_id,
            row: candidate.wait.thread_row,
        };
        let legs = match candidate.kind {
            Kind::Response => RESPONSE_LEGS,
            _ => LEGS,
        };
        let mut legs = path::path(runs, thread, &candidate.range(), legs)?;
        if candidate.kind == Kind::SentMessage {
            end_at_messages(case, candidate, sent, &mut legs);
        }
        Ok(legs)
    }

    /// Divides a chain into parts.
    pub(super) fn new(
        case: &Case<'_>,
        candidate: Candidate<'c>,
        legs: Vec<Leg>,
        sources: Sources<'_>,
    ) -> Chain<'c> {
        let range = candidate.range();
        let own = Who {
            process_row: candidate.wait.process_row,
            process_id: candidate.wait.process_id,
            thread_id: candidate.wait.thread_id,
            thread_row: candidate.wait.thread_row,
        };
        let parts = parts(&legs, sources, own, &range, &case.survey.suspend_gaps);
        let mut chain = Chain {
            candidate,
            legs,
            parts,
            disks: Disks::Recorded,
        };
        if sources.0.lacks_requests {
            let is_of_disk = |part: &Part| match part.what {
                What::Driver(row) => case.module_label(Some(row)).is_some_and(is_of_disks),
                _ => false,
            };
            chain.disks = if chain.blamed().is_some_and(is_of_disk) {
                Disks::EndedWait
            } else {
                Disks::Unknown
            };
        }
        chain
    }

    /// Returns the length of the wait without suspend gaps, in nanoseconds.
    pub(super) fn awake_ns(&self) -> i64 {
        let awake = self
            .parts
            .iter()
            .filter(|part| part.what != What::MachineSuspended);
        awake.map(|part| part.ns).sum()
    }

    /// Returns the longest part, except parts in which the machine was suspended: suspension is no fault of a program. Of
    /// a response with more steps than are followed, the longest known part counts.
    pub(super) fn blamed(&self) -> Option<&Part> {
        let is_of_long_response =
            |part: &&Part| part.what == What::Unknown && self.legs.len() >= RESPONSE_LEGS;
        (self.parts.iter())
            .filter(|part| part.what != What::MachineSuspended)
            .find(|part| !is_of_long_response(part))
    }

    /// Returns the parts of the wait that are large enough to name, the blamed one first.
    pub(super) fn main_parts(&self) -> Vec<&Part> {
        let all_ns = self.awake_ns().max(1);
        let is_main = |part: &&Part| {
            !matches!(part.what, What::MachineSuspended | What::Unknown)
                && is_share(part.ns, all_ns, BLAME_PERCENT)
        };
        let blamed = self.blamed();
        let others = self.parts.iter().filter(|part| Some(*part) != blamed);
        let others = others.filter(is_main);
        blamed.into_iter().chain(others).collect()
    }

    /// Returns what the blamed thread did, and its process. A slow disk or a page is the same cause for all processes.
    pub(super) fn cause(&self) -> Option<(What, Option<Process>)> {
        self.blamed().map(|part| {
            let process = (part.who.process_row, part.who.process_id);
            let is_disk = matches!(part.what, What::Disk(_) | What::Page);
            (part.what, Some(process).filter(|_| !is_disk))
        })
    }

    /// Returns true if the wait is a hang.
    pub(super) fn is_hang(&self, case: &Case<'_>) -> bool {
        if self.is_given_by_window(case) {
            return false;
        }
        let first = self.blamed();
        let is_disk = first.is_some_and(|part| matches!(part.what, What::Disk(_) | What::Page))
            || self.disks == Disks::EndedWait;
        match self.candidate.kind {
            _ if self.candidate.is_asked_open => true,
            // A wait for a disk is always a hang. A wait for another device is a hang if two conditions hold:
            // the thread does not usually wait for this reason; and the thread has a window, or another
            // thread ended the wait.
            Kind::Device if self.is_unknown_device() => true,
            Kind::Device => {
                is_disk
                    || !self.candidate.is_usual && (self.candidate.is_window || self.is_handed())
            }
            Kind::Lock | Kind::Object if self.candidate.is_usual => is_disk || self.is_ring(),
            Kind::Lock | Kind::Object => self.is_handed() || self.candidate.is_window,
            // A single wait for a CPU is the finding of another theory.
            Kind::Response => first.is_some_and(|part| match part.what {
                What::Ready => !self.is_own(part),
                // Another theory reports threads that waited long for pages.
                What::Page if self.is_own(part) => part.ns < HARD_FAULTS_NS,
                What::Ran => !(self.is_own(part) && self.candidate.may_loop()),
                What::Waited(_) => !self.candidate.may_loop(),
                _ => true,
            }),
            _ => true,
        }
    }

    /// Returns true if the wait was probably for a disk or another device, and requests to disks are not recorded. Such
    /// a wait may be a hang.
    pub(super) fn is_unknown_device(&self) -> bool {
        self.candidate.kind == Kind::Device
            && self.disks == Disks::Unknown
            && !self.candidate.is_usual
            && !self.candidate.is_window
            && !self.is_handed()
    }

    /// Returns true if a response consists mainly of waits for devices that may be disks, because requests to disks are not
    /// recorded.
    pub(super) fn may_be_of_disks(&self) -> bool {
        let first = self.blamed().filter(|part| self.is_own(part));
        let is_device = first.is_some_and(|part| match part.what {
            What::Waited(reason) => Kind::from_reason(reason) == Some(Kind::Device),
            _ => false,
        });
        self.candidate.kind == Kind::Response && self.disks == Disks::Unknown && is_device
    }

    /// Returns true if a thread without a window waited until a window of its program gave it work.
    fn is_given_by_window(&self, case: &Case<'_>) -> bool {
        let candidate = &self.candidate;
        let Some(by) = self
            .ended_by()
            .filter(|_| !candidate.is_window && !candidate.is_asked_open)
        else {
            return false;
        };
        case.scope.has_all_threads()
            && case.survey.threads.iter().any(|thread| {
                (thread.thread_id, thread.thread_row) == (by.id, by.row)
                    && thread.process_row == candidate.thread.process_row
                    && UserAttention::has_window(thread)
            })
    }

    /// Returns true if a part is a part of the waiting thread.
    pub(super) fn is_own(&self, part: &Part) -> bool {
        part.who.thread_id == self.candidate.wait.thread_id
    }

    /// Returns true if a thread ended the wait.
    fn is_handed(&self) -> bool {
        self.candidate.wait.readied_by_dpc == Some(false)
    }

    /// Returns true if the threads of the chain pass a token in a ring. At the beginning of the wait, this thread
    /// passed the token to another thread. Two or more other threads had the token before the end of the wait, each of
    /// them once. A server and its client, the stages of a pipeline, or workers and the thread that gives them work form
    /// no ring.
    fn is_ring(&self) -> bool {
        let reason = self.candidate.wait.previous_wait_reason;
        let me = self.candidate.wait.thread_id;
        let mut passed = self
            .legs
            .iter()
            .filter(|leg| leg.run.thread_id != me && leg.run.previous_wait_reason == reason);
        let others: FxHashSet<u32> = passed.clone().map(|leg| leg.run.thread_id).collect();
        let is_once = passed.clone().count() == others.len();
        let first = passed.next_back().and_then(|leg| leg.run.readied_by());
        others.len() >= 2 && is_once && first.is_some_and(|by| by.id == me)
    }

    /// Returns the thread that ended the wait, if a thread ended it.
    pub(super) fn ended_by(&self) -> Option<Thread> {
        let wait = self.candidate.wait;
        let id = wait.readying_thread_id.filter(|id| *id != 0)?;
        (self.is_handed() && id != wait.thread_id).then_some(Thread {
            id,
            row: wait.readying_thread_row,
        })
    }

    /// Returns the other thread of the chain that was ready without a CPU for the longest time.
    pub(super) fn starved(&self) -> Option<&Part> {
        let mut parts = self.parts.iter();
        parts.find(|part| part.what == What::Ready && !self.is_own(part))
    }

    /// Returns the longest noticeable wait for a CPU of the thread from [`Chain::starved_threads`] during this wait.
    pub(super) fn starved_wait<'s>(&self, case: &'s Case<'_>) -> Option<&'s Wait> {
        let who = self.starved()?.who;
        let range = self.candidate.range();
        let waits = case.survey.noticed_waits.iter();
        let waits = waits
            .flat_map(|noticed| &noticed.longest)
            .filter(|wait| (wait.thread_id, wait.thread_row) == (who.thread_id, who.thread_row));
        let within =
            |wait: &Wait| overlap(&wait.range(), &range).map_or(0, |both| both.end - both.start);
        let longest = waits.max_by_key(|wait| within(wait))?;
        (within(longest) > 0).then_some(longest)
    }

    /// Returns the time for which other threads of the chain were ready without a CPU, in nanoseconds.
    pub(super) fn starved_ns(&self) -> i64 {
        let ready = self.parts.iter().filter(|part| {
            part.what == What::Ready && part.who.thread_id != self.candidate.wait.thread_id
        });
        ready.map(|part| part.ns).sum()
    }
}

/// Ends the path at the thread that waited for messages while it handled the sent message, for example in a menu. The thread
/// that gave it a message is not the cause.
fn end_at_messages(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    sent: &SentMessages,
    legs: &mut Vec<Leg>,
) {
    let is_of_receiver = |leg: &Leg| {
        let has_sent = sent.has(leg.run.stack_id);
        leg.run.thread_id != candidate.wait.thread_id
            && leg.run.previous_wait_reason == Some(MESSAGES)
            && !has_sent
    };
    if let Some(at) = legs.iter().position(is_of_receiver) {
        legs.truncate(at + 1);
        legs[at].begin_at(case, candidate.range().start);
    }
}
