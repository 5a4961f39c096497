//! Theory: a program did not respond, because its thread waited for something other than a CPU. The
//! chain of threads that led to the end of such a wait is followed back to its cause.

mod chain;
mod finding;
mod latency;
mod pick;
mod rate_control;
mod sent_messages;
mod stacks;
mod thread_samples;
mod words;

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashSet;
use selection::{Condition, Expression, Order, Selection};
use tables::{ImageTracker, StoreError, Table};

use crate::chain::disk_waits::DiskWaits;
use crate::chain::freezes::{self, Freeze};
use crate::chain::interruptions::Interruptions;
use crate::chain::parts::{Kind, What, Who};
use crate::chain::path::{Leg, Runs};
use crate::chain::user_attention::{UserAttention, is_asked};
use crate::chain::wakers::Wakers;
use crate::finding::Attention;
use crate::ranges::{overlap, union};
use crate::survey::{RATE_CONTROL, Response};
use crate::thresholds::{CAUSE_PERCENT, DISRUPTIVE_NS, NOTICED_NS, SLOW_RESPONSE_NS, is_share};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Subject, Theory,
    ThreadWaits, Unit, Value, Wait, labels,
};
use chain::Chain;
pub use latency::{PathPart, PathTime, divided};
use pick::Candidate;
use rate_control::{is_about, rate_controlled};
use sent_messages::SentMessages;

/// Theory about waits for something other than a CPU.
pub(crate) struct Hangs;

static ABOUT: About = About {
    id: "hangs",
    name: "hangs",
    question: "Did a program hang while it waited for something other than a CPU?",
    tables: &[
        Table::CpuRuns,
        Table::ReadyThreads,
        Table::Focus,
        Table::DiskIo,
        Table::HardFaults,
        Table::Interrupts,
        Table::Network,
        Table::ProcessFreezes,
        Table::Stacks,
        Table::Samples,
        Table::Input,
    ],
    sources: &[
        Source {
            title: "Microsoft: wait reasons (KWAIT_REASON)",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/ne-wdm-_kwait_reason",
            ),
        },
        Source {
            title: "Jakob Nielsen: Response Times: The 3 Important Limits (0.1 s, 1 s)",
            url: Some("https://www.nngroup.com/articles/response-times-3-important-limits/"),
        },
    ],
};

/// Maximum number of waits that are followed back.
const FOLLOWED: usize = 256;
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of waits in a table of evidence.
const SHOWN: usize = 20;

impl Theory for Hangs {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Returns true, because only waits of threads and times in scope are examined.
    fn is_scoped(&self) -> bool {
        true
    }

    fn main_delays(&self) -> Option<&'static str> {
        Some("hangs")
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.cpus.is_empty() || !survey.has_ready_events {
            let what = "the trace does not record what readied threads";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let noticed = case.noticed()?;
        let images = ImageTracker::new(&case.names.images);
        let sent = SentMessages::read(case, &images)?;
        let mut candidates = noticed.candidates(case, &sent);
        let freezes = freezes::read(case)?;
        // Waits of frozen processes are left out, because another theory reports the freezes.
        candidates.retain(|candidate| !is_frozen(&freezes, candidate));
        pick::without_readied(case, &mut candidates)?;
        candidates.sort_by_key(|candidate| {
            (
                Reverse(candidate.wait.waits_ns),
                candidate.wait.start_ns,
                candidate.wait.cpu,
            )
        });
        candidates.truncate(FOLLOWED);
        let ranges = candidates.iter().map(Candidate::range).collect();
        let details = DiskWaits::read(case, ranges)?;
        let mut runs = Runs::new(case)?;
        let followed = candidates.into_iter().map(|candidate| {
            let legs = Chain::follow(case, &mut runs, &candidate, &sent)?;
            Ok((candidate, legs))
        });
        let followed: Vec<(Candidate<'_>, Vec<Leg>)> =
            followed.collect::<Result<_, StoreError>>()?;
        let wakers = Wakers::read(case, followed.iter().flat_map(|(_, legs)| legs))?;
        let inside = Interruptions::read(case, followed.iter().flat_map(|(_, legs)| legs))?;
        let chains = followed.into_iter().map(|(candidate, legs)| {
            Chain::new(case, candidate, legs, (&details, &wakers, &inside))
        });
        let (hangs, others): (Vec<Chain<'_>>, Vec<Chain<'_>>) =
            chains.partition(|chain| chain.is_hang(case));
        let may_be_of_disks = others.iter().any(Chain::may_be_of_disks);
        let is_of_all = case.scope.has_all_threads();
        let groups = without_parts(case, Group::by_cause(hangs));
        let mut groups = with_victims(case, groups, noticed);
        let rate_controlled = rate_controlled(case, noticed);
        groups.retain(|group| !group.is_rate_controlled_like(&rate_controlled));
        let limited = groups.iter().filter_map(|group| group.worst().blamed());
        let limited = limited.filter(|part| part.what == What::Waited(RATE_CONTROL));
        let limited: Vec<Option<u32>> = limited.map(|part| part.who.process_row).collect();
        let facts = Facts {
            details,
            wakers,
            images,
            noticed,
            lacks_freezes: case.table(Table::ProcessFreezes)?.rows() == 0,
        };
        let mut findings = Vec::new();
        for group in groups {
            findings.extend(group.finding(case, &facts)?);
        }
        for mut finding in rate_controlled {
            // A hang that ends at CPU rate control says so itself.
            if limited.iter().any(|row| is_about(&finding, *row)) {
                finding.severity = Severity::Information;
            }
            findings.push(finding);
        }
        findings.sort_by_key(|finding: &Finding| Reverse((finding.severity, finding.delay_ns())));
        findings.truncate(FINDINGS);
        if findings.is_empty()
            && let Some(why) = case.survey.lacks_processes().filter(|_| is_of_all)
        {
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() && may_be_of_disks {
            let why = "requests to disks are not recorded, and a window waited often for devices";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty()
            && let Some(why) = sent.may_be_unseen
        {
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() && may_be_late_unseen(case) {
            let why = "events are missing from the middle of a window's response, so that it may have been long";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if findings.is_empty() {
            let whose = if facts.noticed.knows_focus() {
                "of a program with the focus"
            } else {
                "of a user's program"
            };
            let because = format!(
                "no thread {whose} waited long for a lock, an answer, a disk or another thread"
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        Ok(Outcome::For(findings))
    }
}

/// Returns true if a window in scope may have been late unseen.
fn may_be_late_unseen(case: &Case<'_>) -> bool {
    let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
    let mut threads = case.survey.threads.iter();
    threads.any(|thread| {
        is_asked(&case.scope, &scope_rows, thread) && thread.unseen_response_ns >= DISRUPTIVE_NS
    })
}

/// Removes the waits of helpers: another group waited mainly for this thread, at the same time. The finding about that group
/// says what the helper did. No group is removed if the user asked about threads or processes.
fn without_parts<'c>(case: &Case<'_>, groups: Vec<Group<'c>>) -> Vec<Group<'c>> {
    if !case.scope.has_all_threads() {
        return groups;
    }
    // Of two groups that waited for each other, the first stays.
    let is_part_of = |one: usize, whole: usize| {
        let (of, other) = (&groups[one], &groups[whole]);
        of.is_part_of(other) && !(one < whole && other.is_part_of(of))
    };
    let is_part: Vec<bool> = (0..groups.len())
        .map(|one| (0..groups.len()).any(|whole| one != whole && is_part_of(one, whole)))
        .collect();
    let groups = groups.into_iter().zip(is_part);
    groups
        .filter(|(_, is_part)| !is_part)
        .map(|(group, _)| group)
        .collect()
}

/// Joins groups that waited for the same cause at the same time. The group that matters most to the user has the others as
/// its victims.
fn with_victims<'c>(
    case: &Case<'_>,
    mut groups: Vec<Group<'c>>,
    noticed: &UserAttention,
) -> Vec<Group<'c>> {
    groups.sort_by_cached_key(|group| {
        let delay_ns = group.delay_ns(case);
        let candidate = &group.worst().candidate;
        let attention = noticed.attention(candidate.thread.process_row, &candidate.range());
        let severity = group.severity(delay_ns, noticed);
        Reverse((severity, attention, candidate.is_window, delay_ns))
    });
    let mut first: Vec<Group<'c>> = Vec::new();
    for group in groups {
        match first.iter_mut().find(|whole| group.is_victim_like(whole)) {
            Some(whole) => whole.victims.push(group),
            None => first.push(group),
        }
    }
    first
}

/// Facts with which findings are described.
struct Facts<'c> {
    details: DiskWaits,
    wakers: Wakers,
    images: ImageTracker,
    noticed: &'c UserAttention,
    /// True if the trace has no events of freezes.
    lacks_freezes: bool,
}

/// Waits of a process with the same kind and the same cause.
struct Group<'c> {
    /// Chains of the waits, the longest first.
    chains: Vec<Chain<'c>>,
    /// Waits of other programs, or of threads without windows, for the same cause at the same time.
    victims: Vec<Group<'c>>,
}

impl<'c> Group<'c> {
    /// Groups the waits. In `chains`, the longest wait comes first.
    fn by_cause(chains: Vec<Chain<'c>>) -> Vec<Group<'c>> {
        let mut groups: Vec<Group<'c>> = Vec::new();
        for chain in chains {
            let key = |chain: &Chain<'_>| {
                (
                    chain.candidate.thread.process_row,
                    chain.candidate.thread.process_id,
                    chain.candidate.is_window,
                    chain.candidate.kind,
                    std::mem::discriminant(&chain.candidate.edge),
                    chain.cause(),
                )
            };
            match groups
                .iter_mut()
                .find(|group| key(group.worst()) == key(&chain))
            {
                Some(group) => group.chains.push(chain),
                None => groups.push(Group {
                    chains: vec![chain],
                    victims: Vec::new(),
                }),
            }
        }
        groups
    }

    fn worst(&self) -> &Chain<'c> {
        &self.chains[0]
    }

    /// Returns true if the other group waited mainly for the thread of this group, and the waits of this group are within
    /// its waits.
    fn is_part_of(&self, whole: &Group<'_>) -> bool {
        let own = self.worst().candidate.thread;
        let worst = whole.worst();
        let is_for_own = worst.blamed().is_some_and(|part| {
            (part.who.thread_id, part.who.thread_row) == (own.thread_id, own.thread_row)
                && !worst.is_own(part)
        });
        let ranges = whole.ranges();
        is_for_own
            && self.threads() == 1
            && self.ranges().iter().all(|range| {
                let mut around = ranges.iter();
                around.any(|whole| whole.start <= range.start && range.end <= whole.end)
            })
    }

    /// Returns true if the other group waited for the same cause at the same time, and is of another program or has the
    /// windows of this program.
    fn is_victim_like(&self, whole: &Group<'_>) -> bool {
        let key = |group: &Group<'_>| {
            let candidate = &group.worst().candidate;
            (
                candidate.thread.process_row,
                candidate.thread.process_id,
                candidate.is_window,
            )
        };
        let (own, other) = (self.worst(), whole.worst());
        let is_known = |(what, _): &_| !matches!(what, What::Unknown | What::Page);
        let (range, around) = (own.candidate.range(), other.candidate.range());
        let shorter_ns = (range.end - range.start).min(around.end - around.start);
        key(self) != key(whole)
            && own
                .cause()
                .filter(is_known)
                .is_some_and(|cause| Some(cause) == other.cause())
            && overlap(&range, &around)
                .is_some_and(|both| is_share(both.end - both.start, shorter_ns, CAUSE_PERCENT))
    }

    /// Returns the time ranges of the waits and of the responses that contain them, disjoint and in order.
    fn ranges(&self) -> Vec<Range<i64>> {
        let ranges = self.chains.iter().map(|chain| {
            let whole = chain.candidate.whole.map(|response| response.range());
            whole.unwrap_or(chain.candidate.range())
        });
        union(ranges.collect())
    }

    /// Returns the time during which at least one of the threads waited, without suspend gaps, in
    /// nanoseconds.
    fn delay_ns(&self, case: &Case<'_>) -> i64 {
        let ranges = self.ranges();
        let gaps = &case.survey.suspend_gaps;
        let awake = ranges
            .iter()
            .map(|range| range.end - range.start - gaps.asleep_ns(range));
        awake.sum()
    }

    fn severity(&self, delay_ns: i64, noticed: &UserAttention) -> Severity {
        let candidate = &self.worst().candidate;
        let attention = noticed.attention(candidate.thread.process_row, &candidate.range());
        // Each response is noticed on its own, so a number of short ones is no hang.
        let is_short =
            candidate.kind == Kind::Response && self.worst().awake_ns() < SLOW_RESPONSE_NS;
        // If the focus is not recorded, a thread without a window may work in the background, where no user
        // waits for it.
        let is_noticed = noticed.knows_focus() || candidate.is_window;
        match delay_ns {
            // A thread that usually waits for this reason may simply have had nothing to do.
            _ if candidate.is_usual
                && (candidate.is_asked_open
                    || matches!(candidate.kind, Kind::Call | Kind::Unknown)) =>
            {
                Severity::Information
            }
            _ if candidate.windows_responded || self.worst().is_unknown_device() => {
                Severity::Information
            }
            // The user looked at another window.
            DISRUPTIVE_NS.. if attention == Some(Attention::Window) => Severity::Warning,
            _ if attention == Some(Attention::Window) => Severity::Information,
            _ if is_short => Severity::Information,
            DISRUPTIVE_NS.. if is_noticed => Severity::Problem,
            NOTICED_NS.. => Severity::Warning,
            _ => Severity::Information,
        }
    }

    /// Returns the number of other threads that waited at the same time and for the same reason. The thread
    /// that ended the longest wait of this group also ended the waits of these other threads.
    fn fellows(&self, case: &Case<'_>) -> usize {
        let worst = self.worst();
        let Some(by) = worst.ended_by() else {
            return 0;
        };
        let range = worst.candidate.range();
        let is_fellow = |thread: &&ThreadWaits| {
            (thread.thread_id, thread.thread_row)
                != (
                    worst.candidate.thread.thread_id,
                    worst.candidate.thread.thread_row,
                )
                && thread.blocks.iter().any(|wait| {
                    let waits_ns = wait.waits_ns.unwrap_or(0);
                    wait.previous_wait_reason == worst.candidate.wait.previous_wait_reason
                        && wait.readying_thread_id == Some(by.id)
                        && wait.readied_by_dpc == Some(false)
                        && wait.start_ns.saturating_sub(waits_ns) < range.end
                        && range.start < wait.start_ns
                })
        };
        case.survey.threads.iter().filter(is_fellow).count()
    }

    fn subjects(&self, case: &Case<'_>) -> Vec<Subject> {
        let thread = |who: &Who| Subject::Thread {
            id: who.thread_id,
            row: who.thread_row,
            process_row: who.process_row,
        };
        let worst = self.worst();
        let waiter = worst.candidate.thread;
        let own = Who {
            process_row: waiter.process_row,
            process_id: waiter.process_id,
            thread_id: waiter.thread_id,
            thread_row: waiter.thread_row,
        };
        let mut subjects = vec![thread(&own)];
        subjects.extend(case.process_subject(own.process_row, own.process_id));
        if let Some(part) = worst.blamed() {
            subjects.push(thread(&part.who));
            subjects.extend(case.process_subject(part.who.process_row, part.who.process_id));
            match part.what {
                What::Disk(number) => subjects.push(Subject::Disk { number }),
                What::Interrupted(number) => subjects.push(Subject::Cpu { number }),
                _ => {}
            }
        }
        let victims = self.victims.iter().flat_map(|victim| &victim.chains);
        let waiting = self.chains.iter().chain(victims);
        let others = waiting.map(|chain| chain.candidate.thread);
        subjects.extend(others.map(|thread| Subject::Thread {
            id: thread.thread_id,
            row: thread.thread_row,
            process_row: thread.process_row,
        }));
        subjects
    }

    /// Returns true if CPU rate control stopped the threads of this group, and one of the findings is about all stops of
    /// their process.
    fn is_rate_controlled_like(&self, findings: &[Finding]) -> bool {
        let row = self.worst().candidate.thread.process_row;
        let mut findings = findings.iter();
        self.worst().candidate.kind == Kind::RateControl
            && findings.any(|finding| is_about(finding, row))
    }

    fn threads(&self) -> usize {
        let threads = self.chains.iter().map(|chain| chain.candidate.thread);
        let threads: FxHashSet<(u32, Option<u32>)> = threads
            .map(|thread| (thread.thread_id, thread.thread_row))
            .collect();
        threads.len()
    }

    /// Returns evidence for waits that last until the trace ends: the last run of each thread before its
    /// wait.
    fn open_waits(&self) -> Evidence {
        let mut waits: Vec<_> = self
            .chains
            .iter()
            .map(|chain| chain.candidate.wait)
            .collect();
        waits.sort_by_key(|wait| (wait.previous_out_ns, wait.thread_id, wait.cpu));
        waits.truncate(SHOWN);
        let threads: Vec<u32> = waits.iter().map(|wait| wait.thread_id).collect();
        let since: Vec<i64> = waits
            .iter()
            .filter_map(|wait| wait.previous_out_ns)
            .collect();
        let selection = Selection::new(Table::CpuRuns)
            .filter(Condition::is_one_of("thread_id", &threads))
            .filter(Condition::is_one_of("end_ns", &since))
            .order(&[
                Order::ascending("end_ns"),
                Order::ascending("thread_id"),
                Order::ascending("cpu"),
            ]);
        let title = "Last runs before waits that last until the trace ends";
        let evidence = Evidence::from_selection(title, selection)
            .stored("thread_id", "thread", Unit::None)
            .stored("cpu", "CPU", Unit::None)
            .stored("end_ns", "waits from", Unit::Moment)
            .column(
                "waits_for",
                "waits for",
                Unit::None,
                Expression::Formula("wait_reason(wait_reason_out)".to_owned()),
            );
        waits.iter().fold(evidence, |evidence, wait| {
            evidence.row([
                Some(wait.thread_id.into()),
                Some(wait.cpu.into()),
                wait.previous_out_ns.map(Value::from),
                wait.previous_wait_reason
                    .map(|code| labels::wait_reason(code).into()),
            ])
        })
    }

    /// Returns the waits and responses of this group and of its victims.
    fn candidates(&self) -> impl Iterator<Item = &Candidate<'c>> {
        let victims = self.victims.iter().flat_map(|victim| &victim.chains);
        self.chains
            .iter()
            .chain(victims)
            .map(|chain| &chain.candidate)
    }

    /// Returns evidence with the responses, the longest first; `None` if there are only waits.
    fn responses(&self, case: &Case<'_>) -> Option<Evidence> {
        let mut responses: Vec<(&ThreadWaits, Response)> = (self.candidates())
            .filter_map(|thread| Some((thread.thread, thread.response?)))
            .collect();
        responses.sort_by_key(|(thread, one)| (Reverse(one.ns), one.start_ns, thread.thread_id));
        responses.truncate(SHOWN);
        let these: Vec<String> = responses
            .iter()
            .map(|(thread, one)| {
                // The runs of an open response may end later than the time during which all CPUs are recorded.
                let before = if one.is_open { i64::MAX } else { one.end_ns };
                format!(
                    "({}, {}, {}, {before})",
                    thread.thread_id, one.start_ns, one.end_ns
                )
            })
            .collect();
        let query = format!(
            "SELECT process(process_row) AS process, thread_id, from_ns, to_ns, to_ns - from_ns AS lasted_ns, \
             count(*) AS runs FROM cpu_runs JOIN (VALUES {}) AS these (thread, from_ns, to_ns, before_ns) ON \
             thread_id = thread AND start_ns >= from_ns AND start_ns < before_ns GROUP BY process_row, thread_id, \
             from_ns, to_ns ORDER BY lasted_ns DESC, from_ns, thread_id",
            these.join(", ")
        );
        let columns = [
            Column::new("process", "process", Unit::None),
            Column::new("thread_id", "thread", Unit::None),
            Column::new("from_ns", "from", Unit::Moment),
            Column::new("to_ns", "to", Unit::Moment),
            Column::new("lasted_ns", "no wait for messages for", Unit::Duration),
            Column::new("runs", "runs", Unit::None),
        ];
        let title = "Times between waits for messages";
        let evidence = Evidence::new(title, query, &columns);
        let evidence = responses.iter().fold(evidence, |evidence, (thread, one)| {
            evidence.row([
                case.process_label(thread.process_row).map(Value::from),
                Some(thread.thread_id.into()),
                Some(one.start_ns.into()),
                Some(one.end_ns.into()),
                Some(one.ns.into()),
                Some(one.runs.into()),
            ])
        });
        (!responses.is_empty()).then_some(evidence)
    }

    /// Returns evidence with the waits, the longest first; `None` if there are only responses.
    fn table(&self, case: &Case<'_>) -> Option<Evidence> {
        let waits = self
            .candidates()
            .filter(|candidate| candidate.response.is_none());
        let mut waits: Vec<Wait> = waits.map(|candidate| candidate.wait).collect();
        if waits.is_empty() {
            return None;
        }
        waits.sort_by_key(|wait| (Reverse(wait.waits_ns), wait.start_ns, wait.cpu));
        waits.truncate(SHOWN);
        let these: Vec<String> = waits
            .iter()
            .map(|wait| format!("({}, {}, {})", wait.thread_id, wait.cpu, wait.start_ns))
            .collect();
        let query = format!(
            "SELECT process(process_row) AS process, thread_id, previous_out_ns, start_ns, waits_ns, \
             ready_ns, wait_reason(previous_wait_reason) AS waited_for, CASE WHEN readied_by_dpc \
             THEN 'a DPC' ELSE process(readying_process_row) END AS readied_by, readying_thread_id \
             FROM cpu_runs JOIN (VALUES {}) AS these (thread, on_cpu, from_ns) ON thread_id = thread \
             AND cpu = on_cpu AND start_ns = from_ns WHERE waits_ns > 0 ORDER BY waits_ns DESC, \
             start_ns, cpu",
            these.join(", ")
        );
        let columns = [
            Column::new("process", "process", Unit::None),
            Column::new("thread_id", "thread", Unit::None),
            Column::new("previous_out_ns", "waited from", Unit::Moment),
            Column::new("start_ns", "ran at", Unit::Moment),
            Column::new("waits_ns", "waited", Unit::Duration),
            Column::new("ready_ns", "then ready", Unit::Duration),
            Column::new("waited_for", "waited for", Unit::None),
            Column::new("readied_by", "readied by", Unit::None),
            Column::new("readying_thread_id", "its thread", Unit::None),
        ];
        let threads: Vec<u32> = waits.iter().map(|wait| wait.thread_id).collect();
        let about = Selection::new(Table::CpuRuns)
            .column("thread_id", Expression::Column("thread_id"))
            .column("waits_ns", Expression::Column("waits_ns"))
            .filter(Condition::is_one_of("thread_id", &threads));
        let title = "Waits for something other than a CPU";
        let evidence = Evidence::new(title, query, &columns).about(about);
        let evidence = waits.iter().fold(evidence, |evidence, wait| {
            let by = match wait.readied_by_dpc {
                Some(true) => Some("a DPC".to_owned()),
                _ => case.process_label(wait.readying_process_row),
            };
            let reason = wait.previous_wait_reason;
            evidence.row([
                case.process_label(wait.process_row).map(Value::from),
                Some(wait.thread_id.into()),
                wait.previous_out_ns.map(Value::from),
                Some(wait.start_ns.into()),
                wait.waits_ns.map(Value::from),
                Some(wait.ready_ns.into()),
                reason.map(|code| labels::wait_reason(code).into()),
                by.map(Value::from),
                wait.readying_thread_id.map(Value::from),
            ])
        });
        Some(evidence)
    }
}

/// Returns true if the thread was suspended because Windows froze its process.
fn is_frozen(freezes: &[Freeze], candidate: &Candidate<'_>) -> bool {
    let of_process = |freeze: &&Freeze| match freeze.process_row {
        Some(row) => candidate.thread.process_row == Some(row),
        None => candidate.thread.process_id == Some(freeze.process_id),
    };
    let range = candidate.range();
    let frozen = freezes.iter().filter(of_process);
    let frozen_ns: i64 = (frozen.filter_map(|freeze| overlap(&freeze.range, &range)))
        .map(|both| both.end - both.start)
        .sum();
    match candidate.kind {
        Kind::Suspended => frozen_ns > 0,
        Kind::Response => is_share(frozen_ns, range.end - range.start, CAUSE_PERCENT),
        _ => false,
    }
}
