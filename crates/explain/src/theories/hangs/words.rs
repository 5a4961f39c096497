//! Sentences, remedies and doubts about hangs.

use super::chain::Disks;
use super::pick::Edge;
use super::thread_samples::ThreadSamples;
use super::{Facts, Group};
use crate::chain::TICK_NS;
use crate::chain::cpu_wait::Reason;
use crate::chain::parts::{Kind, Part, What, Who, activity, driver, thread_name, who};
use crate::chain::starved_threads::StarvedThreads;
use crate::drivers::{SYSTEM, is_of_disks, is_of_windows};
use crate::ranges::period_ns;
use crate::survey::{MESSAGES, Response};
use crate::thresholds::{BLAME_PERCENT, NOTICED_NS, SLOW_DISK_NS, is_share};
use crate::{Case, Name, Wait, counted, duration, labels, listed, moment, percent};

/// Advice to record requests to disks.
const RECORD_DISKS: &str = "Record requests to disks as well (xperf -on DISK_IO+DISK_IO_INIT, WPR keywords DiskIO and \
    DiskIOInit): they show which disk was slow, and whose requests filled its queue";
/// Number of requests of a process from which on the process is the cause of a full queue, not the disk.
const QUEUE_FILLED: u64 = 8;
/// Maximum number of parts that a sentence names.
const NAMED: usize = 4;

/// Waits of a group, with the data for their sentences.
pub(super) struct HangText<'t, 'c> {
    pub(super) case: &'t Case<'t>,
    pub(super) group: &'t Group<'c>,
    pub(super) facts: &'t Facts<'c>,
    /// Threads of the chain that were ready without a CPU. It is `None` if they were ready for only a small part of the
    /// wait.
    pub(super) starved: Option<&'t StarvedThreads>,
    /// Longest wait for a CPU of such a thread, with its cause.
    pub(super) starved_wait: Option<(&'t Wait, Reason)>,
}

impl HangText<'_, '_> {
    /// Returns the sentence that says who waited, for how long and when.
    pub(super) fn sentence(&self) -> String {
        let worst = self.group.worst();
        let (wait, range) = (worst.candidate.wait, worst.candidate.range());
        let who = self.case.thread(
            (wait.thread_row, wait.thread_id),
            (wait.process_row, wait.process_id),
        );
        let verb = if worst.candidate.is_window {
            "did not respond"
        } else {
            "made no progress"
        };
        let is_open = worst
            .candidate
            .response
            .is_some_and(|response| response.is_open);
        let when = match worst.candidate.edge {
            Edge::Both if is_open => {
                format!("from {}, and still at the trace's end", moment(range.start))
            }
            Edge::Both => format!("{} to {}", moment(range.start), moment(range.end)),
            Edge::End(_) => {
                format!(
                    "from before the recording began until {}",
                    moment(range.end)
                )
            }
            Edge::Start => format!("from {}, and still at the trace's end", moment(range.start)),
        };
        let may_be_longer = |response: Response| response.is_open || response.began_before;
        let at_least = match worst.candidate.edge {
            Edge::Both if !worst.candidate.response.is_some_and(may_be_longer) => "",
            _ => "at least ",
        };
        let mut sentence = format!(
            "{} {verb} for {at_least}{} ({when}{}): it {}.",
            wording::capitalized(&who),
            duration(worst.awake_ns()),
            self.suspended(),
            self.waited_for()
        );
        if let Some(whole) = worst.candidate.whole {
            sentence += &format!(
                " In total, its window did not respond for {}.",
                duration(whole.ns - self.case.survey.suspend_gaps.asleep_ns(&whole.range()))
            );
        }
        let times = self.group.chains.len();
        if times > 1 {
            let many = match worst.candidate.kind {
                Kind::Response => "such responses",
                _ => "such waits",
            };
            sentence += &format!(
                " {} of {} have this cause, {} in total{}.",
                counted(times as u64, "such wait", many),
                counted(self.group.threads() as u64, "thread", "threads"),
                duration(self.group.delay_ns(self.case)),
                period_ns(&self.group.ranges()).map_or(String::new(), |ns| format!(
                    ", about every {}",
                    duration(ns)
                ))
            );
        }
        sentence
    }

    /// Returns words for the part of the wait in which the machine was suspended. Returns an empty text if there is none.
    fn suspended(&self) -> String {
        let range = self.group.worst().candidate.range();
        let gaps = &self.case.survey.suspend_gaps;
        match gaps.asleep_ns(&range) {
            0 => String::new(),
            ns => format!(", without {} for which {}", duration(ns), gaps.clause()),
        }
    }

    fn waited_for(&self) -> String {
        let worst = self.group.worst();
        let wait = worst.candidate.wait;
        let reason = wait.previous_wait_reason.map(labels::wait_reason);
        let reason = reason.unwrap_or_default();
        let by = worst.ended_by().map(|by| {
            let process = (self.case).process(wait.readying_process_row, wait.readying_process_id);
            format!("thread {} of {process}", by.id)
        });
        let blamed = worst.blamed().map(|part| (part.what, part.who.thread_id));
        let is_own = |id: u32| id == wait.thread_id;
        match (worst.candidate.kind, by, blamed) {
            (Kind::Response, ..) => self.responded(),
            (_, None, Some((What::Disk(disk), id))) if is_own(id) => {
                format!("waited for disk {disk}")
            }
            (_, _, Some((What::Page, id))) if is_own(id) => {
                "waited for a page from disk".to_owned()
            }
            (_, None, Some((What::Network(remote), id))) if is_own(id) => {
                format!("waited for data from {} ({reason})", self.remote(remote))
            }
            (_, None, Some((What::Driver(row), id))) if is_own(id) => {
                format!("waited for {} ({reason})", self.driver(row))
            }
            (Kind::Call, Some(by), _) => {
                format!("waited for the answer of {by} to a call ({reason})")
            }
            (Kind::Call, None, _) => format!("waited for the answer to a call ({reason})"),
            (Kind::SentMessage, Some(by), _) => {
                format!("waited until {by} had handled a message that it had sent ({reason})")
            }
            (Kind::SentMessage, None, _) => {
                format!("waited for the answer to a message that it had sent ({reason})")
            }
            (Kind::Lock, Some(by), _) => {
                format!("waited, probably for a lock ({reason}) that {by} released")
            }
            (Kind::Sleep, ..) => format!("slept ({reason})"),
            (Kind::Memory, ..) => format!("waited for memory or a page ({reason})"),
            (Kind::RateControl, ..) => format!("was stopped by CPU rate control ({reason})"),
            (Kind::Suspended, ..) if self.facts.lacks_freezes => format!(
                "was suspended by a program, or frozen ({reason}; the trace has no events of freezes)"
            ),
            (Kind::Suspended, ..) => format!("was suspended by a program ({reason})"),
            (Kind::Unknown, Some(by), _) => format!("waited until {by} readied it"),
            (Kind::Unknown, None, _) => "waited for something that is not recorded".to_owned(),
            (Kind::Lock, None, _) if worst.candidate.edge == Edge::Start => {
                format!("waits, probably for a lock ({reason})")
            }
            (Kind::Object, None, _) if worst.candidate.edge == Edge::Start => {
                format!("waits for an object that another thread or a timer signals ({reason})")
            }
            (_, Some(by), _) => format!("waited for {by} ({reason})"),
            (_, None, _) => format!("waited for a device, a timer or the network ({reason})"),
        }
    }

    /// Returns what a thread did mainly during a response. If it did several things, returns the share of each.
    fn responded(&self) -> String {
        let worst = self.group.worst();
        let all_ns = worst.awake_ns().max(1);
        match &worst.main_parts()[..] {
            [] => "did something that is not recorded".to_owned(),
            [part] => self.did_in_response(part),
            parts => {
                let parts = parts.iter().map(|part| {
                    format!(
                        "{} ({})",
                        self.did_in_response(part),
                        percent(part.ns, all_ns)
                    )
                });
                listed(parts.collect::<Vec<_>>())
            }
        }
    }

    fn did_in_response(&self, part: &Part) -> String {
        let worst = self.group.worst();
        if !worst.is_own(part) {
            return format!("waited for {}", thread_name(self.case, &part.who));
        }
        match part.what {
            What::Ran => "computed".to_owned(),
            What::Interrupted(cpu) => format!("was interrupted by DPCs and ISRs on CPU {cpu}"),
            What::Ready => "was ready without a CPU".to_owned(),
            What::Disk(disk) => format!("waited for disk {disk} several times"),
            What::Page => "waited for pages from disk".to_owned(),
            What::Network(remote) => format!("waited for data from {}", self.remote(remote)),
            What::Driver(row) => format!("waited for {}", self.driver(row)),
            What::Waited(reason) | What::WaitedFor(reason, _) => {
                let name = labels::wait_reason(reason);
                match Kind::from_reason(reason) {
                    Some(Kind::Sleep) => format!("slept several times ({name})"),
                    Some(Kind::RateControl) => format!("was stopped by CPU rate control ({name})"),
                    Some(Kind::Suspended) => format!("was suspended ({name})"),
                    Some(Kind::Memory) => format!("waited for memory or pages ({name})"),
                    _ => format!("waited several times ({name})"),
                }
            }
            What::MachineSuspended | What::Unknown => {
                "did something that is not recorded".to_owned()
            }
        }
    }

    pub(super) fn why(&self) -> Vec<String> {
        let worst = self.group.worst();
        let all_ns = worst.awake_ns().max(1);
        let mut why = Vec::new();
        let Some(blamed) = worst.blamed() else {
            return why;
        };
        if worst.candidate.edge == Edge::Start {
            let why = "The wait had not ended when the trace ended, so the trace does not show its \
                       cause.";
            return vec![why.to_owned()];
        }
        if let Some(starved) = self.starved {
            why.push(self.inversion(starved));
        }
        let mut first = if is_share(blamed.ns, all_ns, 99) {
            format!("Nearly all of this time, {}.", self.activity(blamed))
        } else {
            format!(
                "For {} of the time, {}.",
                percent(blamed.ns, all_ns),
                self.activity(blamed)
            )
        };
        first += &self.between();
        if let What::Disk(disk) = blamed.what {
            first += &self.queue(blamed.who.thread_id, disk);
        }
        if let What::Network(remote) = blamed.what {
            first += &self.answer(blamed, remote);
        }
        why.push(first);
        let parts = worst.parts.iter().filter(|part| {
            part.what != What::MachineSuspended && *part != blamed && is_share(part.ns, all_ns, 1)
        });
        let others: Vec<String> = parts
            .take(NAMED)
            .map(|part| format!("{} for {}", self.activity(part), percent(part.ns, all_ns)))
            .collect();
        if !others.is_empty() {
            why.push(format!("Other parts of the wait: {}.", others.join("; ")));
        }
        let fellows = self.group.fellows(self.case);
        let victims = self.victims();
        if !victims.is_empty() {
            why.push(victims);
        } else if fellows > 0 {
            let others = counted(fellows as u64, "other thread", "other threads");
            why.push(format!(
                "The thread that ended this wait also kept {others} waiting at the same time."
            ));
        }
        why
    }

    /// Returns a sentence with the others that waited for the same cause. Returns an empty text if there are none.
    fn victims(&self) -> String {
        let victims = &self.group.victims;
        if victims.is_empty() {
            return String::new();
        }
        let own = self.group.worst();
        let mut programs: Vec<String> = (victims.iter().take(NAMED))
            .map(|victim| {
                let worst = victim.worst();
                let thread = worst.candidate.thread;
                let (process, own) = (
                    self.case.process(thread.process_row, thread.process_id),
                    own.candidate.thread,
                );
                let who = if (thread.process_row, thread.process_id)
                    == (own.process_row, own.process_id)
                {
                    format!("thread {} of {process}", thread.thread_id)
                } else {
                    process
                };
                format!("{who} for {}", duration(victim.delay_ns(self.case)))
            })
            .collect();
        if victims.len() > NAMED {
            let more = (victims.len() - NAMED) as u64;
            programs.push(counted(more, "more program", "more programs"));
        }
        format!(
            "At this time, the same cause also delayed {}.",
            listed(programs)
        )
    }

    /// Returns a sentence with the threads between the waiting thread and the blamed one, in the order in which they
    /// waited for each other. Returns an empty text if there are none.
    fn between(&self) -> String {
        let worst = self.group.worst();
        let Some(blamed) = worst.blamed().filter(|part| !worst.is_own(part)) else {
            return String::new();
        };
        let ends = [worst.candidate.wait.thread_id, blamed.who.thread_id];
        // A thread is part of the chain if it waited until the next one readied it.
        let mut between: Vec<Who> = Vec::new();
        let legs = worst.legs.iter();
        for leg in legs.take_while(|leg| leg.run.thread_id != blamed.who.thread_id) {
            let who = who(&leg.run);
            if !ends.contains(&who.thread_id) && !between.contains(&who) {
                between.push(who);
            }
        }
        match between.len() {
            0 => String::new(),
            1..=NAMED => {
                let between = between.iter().map(|who| thread_name(self.case, who));
                let between: Vec<String> = between.collect();
                format!(" Between them, {} waited.", listed(between))
            }
            _ => String::new(),
        }
    }

    /// Returns a sentence about a thread of the chain that was ready and got no CPU. The waiting thread
    /// waited for this thread.
    fn inversion(&self, starved: &StarvedThreads) -> String {
        let worst = self.group.worst();
        let own = worst.candidate.wait.priority;
        let holder = worst.starved();
        let who = holder.map_or(String::new(), |part| thread_name(self.case, &part.who));
        let run = holder.and_then(|part| {
            let mut legs = worst.legs.iter();
            legs.find(|leg| leg.run.thread_id == part.who.thread_id)
        });
        let theirs = run.and_then(|leg| leg.run.priority);
        let is_priority = (self.starved_wait.as_ref()).is_none_or(|(_, reason)| reason.is_priority);
        let priorities = match own.zip(theirs) {
            Some((own, theirs)) if theirs < own && is_priority => {
                format!(
                    " Its priority was {theirs}, and the priority of the waiting thread was {own}: \
                     priority inversion."
                )
            }
            _ => String::new(),
        };
        let who = wording::capitalized(&who);
        if let Some((wait, reason)) = &self.starved_wait {
            let ready = duration(wait.ready_ns);
            let because = &reason.because;
            let of_driver: String = (reason.advice.of_driver.iter())
                .map(|sentence| format!(" {sentence:#}"))
                .collect();
            return format!(
                "{who} was ready for {ready} and got no CPU: {because}.{priorities}{of_driver}"
            );
        }
        let ran = starved.who_ran(self.case).map_or(String::new(), |process| {
            format!(", while {process} used most CPU time")
        });
        format!("{who} was ready and got no CPU{ran}.{priorities}")
    }

    /// Returns a clause that says what a thread of the chain did.
    fn activity(&self, part: &Part) -> String {
        activity(self.case, &self.facts.wakers, part)
    }

    fn remote(&self, remote: u32) -> String {
        self.facts.wakers.remote_name(remote)
    }

    fn driver(&self, image_row: u32) -> String {
        driver(self.case, image_row)
    }

    /// Returns sentences about the answer of another machine.
    fn answer(&self, part: &Part, remote: u32) -> String {
        let worst = self.group.worst();
        let end = worst
            .legs
            .iter()
            .find(|leg| leg.run.thread_id == part.who.thread_id);
        let range = worst.candidate.range();
        let end = end.map_or(range.end, |leg| leg.run.since_ns());
        let wakers = &self.facts.wakers;
        let (since_sent, resent) =
            wakers.last_sent(part.who.process_row, remote, &(range.start..end));
        let since_sent = since_sent.map_or(String::new(), |since_sent| {
            format!(
                " The answer came {} after the process had last sent data there.",
                duration(end - since_sent)
            )
        });
        match resent {
            0 => since_sent,
            resent => format!(
                "{since_sent} In this time, {}: packets were lost.",
                counted(
                    resent as u64,
                    "packet was sent again",
                    "packets were sent again"
                )
            ),
        }
    }

    /// Returns a sentence about the queue of a disk.
    fn queue(&self, thread_id: u32, disk: u32) -> String {
        let range = self.group.worst().candidate.range();
        let (count, total_ns, queue_ns) = self.facts.details.queued(thread_id, disk, &range);
        if count == 0 {
            return String::new();
        }
        let requests = counted(count, "request", "requests");
        if !is_share(queue_ns, total_ns.max(1), 50) {
            let was = match total_ns.checked_div(count as i64) {
                Some(SLOW_DISK_NS..) => "the disk itself was slow",
                _ => "each of them was fast, but there were many",
            };
            return format!(
                " Its {requests} took {}, and the disk worked for {} of this time: {was}.",
                duration(total_ns),
                percent(total_ns - queue_ns, total_ns)
            );
        }
        let fillers = self.facts.details.fillers(thread_id, disk, &range);
        let who = fillers.iter().map(|filler| {
            format!(
                "{} of {}, which took {} of the disk's time",
                counted(filler.requests, "request", "requests"),
                self.case.process(filler.process_row, None),
                duration(filler.served_ns)
            )
        });
        let who = if fillers.is_empty() {
            String::new()
        } else {
            format!(" behind {}", listed(who.collect::<Vec<_>>()))
        };
        format!(
            " Its {requests} took {}, {} of it in the disk's queue{who}.",
            duration(total_ns),
            percent(queue_ns, total_ns)
        )
    }

    /// Returns the remedy for waits of a process for a disk.
    fn check_disk(&self, who: &Who, disk: u32) -> String {
        let range = self.group.worst().candidate.range();
        let details = &self.facts.details;
        let (count, total_ns, queue_ns) = details.queued(who.thread_id, disk, &range);
        let is_queue = total_ns > 0 && is_share(queue_ns, total_ns, 50);
        let mut fillers = details.fillers(who.thread_id, disk, &range);
        fillers.retain(|filler| is_queue && filler.requests >= QUEUE_FILLED);
        let own = self.case.process(who.process_row, who.process_id);
        if let Some(filler) = fillers.first() {
            let process = self.case.names.process(filler.process_row, None);
            if filler.process_row == who.process_row {
                return format!(
                    "Let {own} make fewer requests to disk {disk} at the same time: its other requests filled the queue"
                );
            }
            if process.id == Some(SYSTEM) {
                return format!(
                    "Find the files that System (4) read and wrote on disk {disk} (`laglab diskio`): it writes files for \
                     programs, after they have closed them"
                );
            }
            let names = fillers.iter();
            let names = names.map(|filler| self.case.process(filler.process_row, None));
            return format!(
                "Let {} read and write less on disk {disk} at that time, or run when no user waits: the requests \
                 filled the queue of the disk",
                listed(names.collect::<Vec<_>>())
            );
        }
        match total_ns.checked_div(count as i64) {
            Some(..NOTICED_NS) => format!(
                "Let {own} make fewer requests to disk {disk} while a user waits (`laglab diskio` lists the files), or \
                 move these files to a faster disk"
            ),
            _ => format!(
                "Check disk {disk}, its cable and its controller: single requests took long. Look at the health data \
                 of the disk (SMART), and at the disk's errors and resets in the event log System"
            ),
        }
    }

    /// Returns a text for the delay. It names the delayed process and states how the delay was computed.
    pub(super) fn cost(&self) -> String {
        let thread = self.group.worst().candidate.thread;
        let process = self.case.process(thread.process_row, thread.process_id);
        let is_response = self.group.worst().candidate.kind == Kind::Response;
        match (self.group.chains.len(), is_response) {
            (1, false) if self.group.worst().candidate.whole.is_none() => {
                format!("of {process}, whose thread waited")
            }
            (1, _) => format!("of {process}, whose window did not respond"),
            (times, false) => {
                format!("of {process}: {times} waits, overlapping waits counted once")
            }
            (times, true) => format!("of {process}, whose window did not respond {times} times"),
        }
    }

    /// Returns remedies. `computed` has the samples of threads that ran.
    pub(super) fn remedies(&self, computed: &[(Part, ThreadSamples)]) -> Vec<String> {
        let worst = self.group.worst();
        let Some(blamed) = worst.blamed() else {
            return Vec::new();
        };
        if worst.candidate.edge == Edge::Start {
            let again = "Record again, and stop only after the program responds: then the trace shows \
                what ended the wait";
            return vec![again.to_owned()];
        }
        let all_ns = worst.awake_ns().max(1);
        if !is_share(blamed.ns, all_ns, BLAME_PERCENT) {
            return vec![
                "Several threads contributed to the delay: shorten this chain of waits, or do the \
                 work in a thread that no user waits for"
                    .to_owned(),
            ];
        }
        if let Some((_, reason)) = self.starved_wait.as_ref()
            && blamed.what == What::Ready
        {
            return (reason.advice.remedies.iter())
                .map(|remedy| format!("{remedy:#}"))
                .collect();
        }
        let mut remedies: Vec<String> = Vec::new();
        let parts = match worst.candidate.kind {
            Kind::Response => worst.main_parts(),
            _ => vec![blamed],
        };
        for part in parts {
            let mut computed = computed.iter().filter(|(owner, _)| owner == part);
            let computed = computed.next().map(|(_, samples)| samples);
            let remedy = self.remedy(part, computed);
            remedies.extend(remedy.filter(|remedy| !remedies.contains(remedy)));
        }
        remedies
    }

    /// Returns the remedy for a part of the wait.
    fn remedy(&self, part: &Part, computed: Option<&ThreadSamples>) -> Option<String> {
        let worst = self.group.worst();
        let process = self.case.process(part.who.process_row, part.who.process_id);
        let is_own = worst.is_own(part);
        Some(match part.what {
            What::Disk(disk) => self.check_disk(&part.who, disk),
            What::Page => "Find the files that were read (`laglab hardfault`): reads of the page \
                file mean that memory is short"
                .to_owned(),
            What::Network(remote) => format!(
                "Find out why the answer of {} was late: the machine, or the network to it, may be \
                 slow. A window must not wait for the network",
                self.remote(remote)
            ),
            What::Driver(row) => match self.case.module_label(Some(row)) {
                Some(module) if is_of_disks(module) => RECORD_DISKS.to_owned(),
                Some(module) if is_of_windows(module) => format!(
                    "Look at the device behind {} and at its driver: {} itself is a part of Windows",
                    Name(module),
                    Name(module)
                ),
                Some(module) => format!("Update {} or check its device", Name(module)),
                None => "Update the driver or check its device".to_owned(),
            },
            What::Ready => format!(
                "Raise the priority of {process}, or run less work at higher priority: other \
                 threads waited for its thread, which got no CPU"
            ),
            What::Interrupted(cpu) => {
                format!("Find the drivers of the DPCs and ISRs on CPU {cpu} (`laglab dpcisr`)")
            }
            What::Ran if computed.is_some_and(ThreadSamples::is_interrupted) => {
                "Record DPCs and ISRs as well (xperf -on DPC+INTERRUPT): they show which driver kept the CPU".to_owned()
            }
            What::Ran if is_own => format!(
                "Change or update {process}: let another thread compute this, so that the thread of the window \
                 can handle messages"
            ),
            What::Ran => match computed {
                Some(computed) => format!(
                    "Change or update {process}: let it compute less{}, or let no window wait for this work",
                    computed
                        .function()
                        .map_or(String::new(), |function| format!(" in {}", Name(function)))
                ),
                None => format!(
                    "Record CPU samples (PROFILE) to see what {process} computed, and reduce this work"
                ),
            },
            What::Waited(reason) if Kind::from_reason(reason) == Some(Kind::Sleep) && !is_own => format!(
                "Change or update {process}: its thread slept while another thread waited for it"
            ),
            What::Waited(reason) if Kind::from_reason(reason) == Some(Kind::RateControl) => {
                format!("Raise the CPU limit of {process}")
            }
            What::Waited(_) if is_own && worst.is_unknown_device() => RECORD_DISKS.to_owned(),
            What::Waited(_) if is_own => format!(
                "Change or update {process}: the thread of a window must not wait this long"
            ),
            What::Waited(MESSAGES) if worst.candidate.kind == Kind::SentMessage => format!(
                "Change or update {process}: it waited for messages, probably in a menu or a dialog, while another window \
                 waited for its answer. The sender need not wait (SendNotifyMessage, PostMessage)"
            ),
            What::Waited(_) | What::WaitedFor(..) => {
                format!("Find out what {process} waited for: the chain of threads ends there")
            }
            What::MachineSuspended | What::Unknown => return None,
        })
    }

    pub(super) fn doubts(&self) -> Vec<String> {
        let worst = self.group.worst();
        let mut doubts = Vec::new();
        let is_loop = |part: &Part| matches!(part.what, What::Ran | What::Waited(_));
        if worst.candidate.may_loop() && worst.blamed().is_some_and(is_loop) {
            doubts.push(
                "A thread that looks for messages without waiting for them (PeekMessage) responds, but the trace \
                 does not show it"
                    .to_owned(),
            );
        }
        if worst
            .candidate
            .response
            .is_some_and(|response| response.ends_thread)
        {
            doubts.push(
                "Then the thread ended, so its window may have been closed before".to_owned(),
            );
        }
        if worst.disks != Disks::Recorded && worst.candidate.kind == Kind::Device {
            doubts.push(
                "Requests to disks are not recorded, so it is not certain whether the thread waited for a disk"
                    .to_owned(),
            );
        }
        if worst.candidate.kind == Kind::Lock {
            doubts.push(
                "The trace does not name locks. The wait reason is the same if threads hand over \
                 work without a lock"
                    .to_owned(),
            );
        }
        if worst.candidate.is_asked_open && worst.candidate.is_usual {
            doubts.push(
                "The thread usually waits for this reason, so it may simply have had nothing to do"
                    .to_owned(),
            );
        }
        if let Edge::End(ticks) = worst.candidate.edge {
            doubts.push(format!(
                "The wait began before the recording: its reason is not recorded, and only the time \
                 since the recording began counts. The kernel counted {} before the thread ran \
                 (about {})",
                counted(u64::from(ticks), "clock tick", "clock ticks"),
                duration(i64::from(ticks).saturating_mul(TICK_NS))
            ));
        }
        if worst.candidate.windows_responded {
            doubts.push(
                "The windows of the program responded all the time, so a user may not have noticed the wait"
                    .to_owned(),
            );
        } else if !worst.candidate.is_window {
            doubts.push(
                "The thread is not known to handle messages of a window, so a user may not have \
                 noticed its wait"
                    .to_owned(),
            );
        }
        if !self.facts.noticed.knows_focus() {
            doubts.push("The trace does not record which program had the focus".to_owned());
        }
        if self.case.survey.clocks_apart_ns() > 0 {
            doubts.push("The CPUs' clocks disagree, so the chain may be wrong".to_owned());
        }
        doubts
    }
}
