//! Theory: programs waited long for answers of other programs of Linux.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Order, Selection};
use tables::{CpuRunsView, ProcessesView, ReadyThreadsView, StoreError, Table, linux_states};

use crate::chain::path::{self, Leg, Run, Runs, Thread};
use crate::chain::user_attention::is_asked;
use crate::ranges::union;
use crate::thresholds::{ANSWERS, DISRUPTIVE_NS, LATE_ANSWER, NOTICED_NS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Subject, Theory, Unit, Wait, counted,
    duration, listed, moment, percent,
};

/// Theory about late answers. A program asks another program when it wakes a thread of it and then waits. The other
/// program answers when one of its threads ends this wait.
pub(crate) struct LateAnswers;

static ABOUT: About = About {
    id: "late-answers",
    name: "late answers of other programs",
    question: "Did programs wait long for answers of other programs?",
    tables: &[Table::CpuRuns, Table::ReadyThreads, Table::Processes],
    sources: &[],
};

/// Maximum number of findings.
const FINDINGS: usize = 5;
/// Maximum number of pairs of programs that are examined.
const PAIRS: usize = 64;
/// Maximum number of late answers whose paths are followed for one pair.
const PATHS: usize = 8;
/// Maximum number of runs on all paths of a pair. The number is limited because the SQL queries list every run.
const LEGS: usize = 300;
/// Maximum number of waits and of requests that are kept for one thread.
const KEPT: usize = 1 << 14;
/// Maximum number of waits and requests that are kept for all threads together.
const ALL_KEPT: usize = 1 << 20;
/// Programs exchange packets if softirqs deliver this many times as many answers as threads.
const MOSTLY: usize = 9;
/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Maximum time in nanoseconds for which a thread runs that was woken before the answer was there. It only looks and waits
/// again. Sockets of the same machine wake the asking program also when the other one takes the request.
const LOOK_NS: i64 = 100_000;
/// Maximum time in nanoseconds from an answer to the end of the answering program, if the answer is its end. The program
/// that started it waits for its end, and not for an answer.
const ENDS_NS: i64 = 50_000_000;

impl Theory for LateAnswers {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if case.survey.cpus.is_empty() {
            let why = "the recording has no context switches";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        if !case.survey.has_ready_events {
            return Ok(Outcome::NotRecorded(
                "the recording has no wakes".to_owned(),
            ));
        }
        let pairs = pairs(case)?;
        let exchanges = exchanges(case, &pairs)?;
        let answers = pairs
            .iter()
            .map(|(pair, _)| Answers::new(&exchanges, *pair));
        let answers: Vec<Answers> = answers.collect();
        let local_pairs = answers.iter().filter(|answers| answers.are_packets);
        let local_pairs = local_pairs.map(|answers| [answers.pair.client, answers.pair.server]);
        let mut runs = Runs::new(case)?.with_local_pairs(local_pairs.collect());
        let mut late = Vec::new();
        for (answers, (_, waits)) in answers.into_iter().zip(pairs) {
            late.extend(LateAnswer::find(
                &mut runs,
                answers,
                waits,
                case.survey.span.end,
            )?);
        }
        if late.is_empty() {
            let because = format!(
                "no program that asked another one waited for {} or longer for an answer",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        late.sort_by_key(|late| (Reverse(late.severity()), Reverse(late.delay_ns())));
        late.truncate(FINDINGS);
        Ok(Outcome::For(
            late.iter().map(|late| late.finding(case)).collect(),
        ))
    }
}

/// Two programs: the rows in `processes` of one that asks and of one that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Pair {
    client: u32,
    server: u32,
}

/// Returns the noticeable waits of programs that other programs ended, by pair, the pair with the longest wait first.
fn pairs<'c>(case: &'c Case<'_>) -> Result<Vec<(Pair, Vec<&'c Wait>)>, StoreError> {
    let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
    let ends = ends(case)?;
    let mut pairs: FxHashMap<Pair, Vec<&Wait>> = FxHashMap::default();
    for thread in &case.survey.threads {
        if !is_asked(&case.scope, &scope_rows, thread) {
            continue;
        }
        for wait in &thread.blocks {
            let both = wait.process_row.zip(wait.readying_process_row);
            let Some((client, server)) = both.filter(|(client, server)| client != server) else {
                continue;
            };
            let is_kernel = |row| case.names.is_kernel_thread(row);
            let end = ends.get(server as usize).copied().flatten();
            let is_end = end.is_some_and(|end| end - answered_ns(wait) < ENDS_NS);
            if is_answered(wait) && !is_kernel(client) && !is_kernel(server) && !is_end {
                pairs.entry(Pair { client, server }).or_default().push(wait);
            }
        }
    }
    let longest = |waits: &[&Wait]| waits.iter().filter_map(|wait| wait.waits_ns).max();
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|(pair, waits)| (Reverse(longest(waits)), *pair));
    pairs.truncate(PAIRS);
    Ok(pairs)
}

/// Returns the times at which processes ended, by row.
fn ends(case: &Case<'_>) -> Result<Vec<Option<i64>>, StoreError> {
    let table = case.table(Table::Processes)?;
    let mut ends = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["end_ns"])?;
        let view = ProcessesView::new(&batch)?;
        ends.extend((0..view.len()).map(|row| view.end_ns.get(row)));
    }
    Ok(ends)
}

/// Returns true if a wait is noticeable, a signal could have ended it, and it is known what ended it.
fn is_answered(wait: &Wait) -> bool {
    wait.readied_by_dpc.is_some()
        && wait.previous_wait_reason == Some(linux_states::INTERRUPTIBLE)
        && wait.waits_ns >= Some(NOTICED_NS)
}

/// Returns the time at which the wait ended.
fn answered_ns(wait: &Wait) -> i64 {
    wait.start_ns.saturating_sub(wait.ready_ns)
}

/// Returns the time range of a wait.
fn range(wait: &Wait) -> Range<i64> {
    let end = answered_ns(wait);
    end.saturating_sub(wait.waits_ns.unwrap_or(0))..end
}

/// Requests and waits of one thread of a program that asks, in order.
#[derive(Default)]
struct Exchange {
    /// Row of the program in `processes`.
    client: u32,
    /// Times at which the thread woke threads of other programs, each with the row of the other program.
    requests: Vec<(i64, u32)>,
    /// The thread's waits.
    waits: Vec<ThreadWait>,
}

/// Wait of a thread.
struct ThreadWait {
    range: Range<i64>,
    /// Time at which the thread ran again. It does not see the answer before.
    run_ns: i64,
    /// Row of the program that ended the wait, or in whose context an interrupt or a softirq ended it.
    by: Option<u32>,
    in_interrupt: bool,
}

/// Answer of one program to a thread of another one.
struct Answer {
    /// Waits of the thread: the last one ended with the answer, the ones before it with wakes before the answer.
    waits: Vec<Range<i64>>,
    /// Time at which the thread ran with the answer.
    run_ns: i64,
    in_interrupt: bool,
}

impl Answer {
    fn new(wait: &ThreadWait) -> Answer {
        Answer {
            waits: vec![wait.range.clone()],
            run_ns: wait.run_ns,
            in_interrupt: wait.in_interrupt,
        }
    }

    /// Adds the next wait of the thread, because the wake before it was not the answer.
    fn extend(&mut self, wait: &ThreadWait) {
        self.waits.push(wait.range.clone());
        self.run_ns = wait.run_ns;
        self.in_interrupt = wait.in_interrupt;
    }

    /// Returns the time from the first wait to the run with the answer, in nanoseconds.
    fn took_ns(&self) -> i64 {
        self.run_ns - self.waits[0].start
    }
}

impl Exchange {
    /// Returns the answers of this program.
    fn answers(&self, server: u32) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        // A thread runs between two waits.
        let mut since = i64::MIN;
        let mut is_answered = false;
        for wait in &self.waits {
            let first = (self.requests).partition_point(|(time_ns, _)| *time_ns < since);
            let requests = self.requests[first..].iter();
            let requests = requests.take_while(|(time_ns, _)| *time_ns <= wait.range.start);
            let asked: Vec<u32> = requests.map(|(_, asked)| *asked).collect();
            let is_of_server = wait.by == Some(server);
            let last = answers.last_mut().filter(|_| is_answered);
            is_answered = is_of_server;
            match last {
                Some(last)
                    if is_of_server
                        && asked.is_empty()
                        && wait.range.start - last.run_ns <= LOOK_NS =>
                {
                    last.extend(wait);
                }
                _ if is_of_server && asked.contains(&server) => answers.push(Answer::new(wait)),
                _ => is_answered = false,
            }
            since = wait.range.end;
        }
        answers
    }
}

/// All answers of one program to another one.
struct Answers {
    pair: Pair,
    /// The fastest answer first.
    answers: Vec<Answer>,
    /// True if the programs exchange packets. A softirq delivers packets to the same machine in the context of the thread
    /// that sends them. Other softirqs interrupt any thread, but not a thread of the same program after each request.
    are_packets: bool,
}

impl Answers {
    fn new(exchanges: &FxHashMap<Thread, Exchange>, pair: Pair) -> Answers {
        let of_client = exchanges.values().filter(|it| it.client == pair.client);
        let answers = of_client.flat_map(|it| it.answers(pair.server));
        let (packets, others): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.in_interrupt);
        let are_packets = packets.len() >= ANSWERS && packets.len() > MOSTLY * others.len();
        let mut answers = if are_packets { packets } else { others };
        answers.sort_by_key(|answer| (answer.took_ns(), answer.run_ns));
        Answers {
            pair,
            answers,
            are_packets,
        }
    }

    /// Returns the time in which half of the answers came, in nanoseconds. `None` if there are too few answers.
    fn median_ns(&self) -> Option<i64> {
        let median = self.answers.get(self.answers.len() / 2);
        let median = median.filter(|_| self.answers.len() >= ANSWERS);
        median.map(Answer::took_ns)
    }
}

/// Reads the requests and waits of the threads of the programs that ask.
fn exchanges(
    case: &Case<'_>,
    pairs: &[(Pair, Vec<&Wait>)],
) -> Result<FxHashMap<Thread, Exchange>, StoreError> {
    let clients: FxHashSet<u32> = pairs.iter().map(|(pair, _)| pair.client).collect();
    let servers: FxHashSet<u32> = pairs.iter().map(|(pair, _)| pair.server).collect();
    let mut exchanges: FxHashMap<Thread, Exchange> = FxHashMap::default();
    let mut room = ALL_KEPT;
    if pairs.is_empty() {
        return Ok(exchanges);
    }
    let runs = case.table(Table::CpuRuns)?;
    for batch in case.batches(&runs, i64::MIN..i64::MAX, &RUN_COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let client = view.process_row.get(row);
            let waits_ns = view.waits_ns.get(row).filter(|ns| *ns > 0);
            let Some((client, waits_ns)) = client
                .filter(|client| clients.contains(client))
                .zip(waits_ns)
            else {
                continue;
            };
            let thread = Thread {
                id: view.thread_id[row],
                row: view.thread_row.get(row),
            };
            let exchange = exchanges.entry(thread).or_default();
            exchange.client = client;
            if exchange.waits.len() < KEPT && room > 0 {
                room -= 1;
                let ready_ns = view.ready_ns.get(row).unwrap_or(0);
                let end = view.start_ns[row].saturating_sub(ready_ns);
                exchange.waits.push(ThreadWait {
                    range: end.saturating_sub(waits_ns)..end,
                    run_ns: view.start_ns[row],
                    by: view.readying_process_row.get(row),
                    in_interrupt: view.readied_by_dpc.get(row) == Some(true),
                });
            }
        }
    }
    let ready = case.table(Table::ReadyThreads)?;
    for batch in case.batches(&ready, i64::MIN..i64::MAX, &READY_COLUMNS) {
        let batch = batch?;
        let view = ReadyThreadsView::new(&batch)?;
        for row in 0..view.len() {
            let server = view.process_row.get(row);
            let by = view.readying_thread_id.get(row);
            let Some((id, server)) = by.zip(server.filter(|server| servers.contains(server)))
            else {
                continue;
            };
            let thread = Thread {
                id,
                row: view.readying_thread_row.get(row),
            };
            if let Some(exchange) = exchanges.get_mut(&thread)
                && exchange.requests.len() < KEPT
                && room > 0
            {
                room -= 1;
                exchange.requests.push((view.time_ns[row], server));
            }
        }
    }
    for exchange in exchanges.values_mut() {
        exchange.waits.sort_by_key(|wait| wait.range.end);
    }
    Ok(exchanges)
}

const RUN_COLUMNS: [&str; 8] = [
    "start_ns",
    "thread_id",
    "thread_row",
    "process_row",
    "ready_ns",
    "waits_ns",
    "readied_by_dpc",
    "readying_process_row",
];

const READY_COLUMNS: [&str; 4] = [
    "time_ns",
    "process_row",
    "readying_thread_id",
    "readying_thread_row",
];

/// Late answers of one program to another one.
struct LateAnswer<'c> {
    pair: Pair,
    /// Waits for the late answers, the longest first.
    waits: Vec<&'c Wait>,
    /// Half of all answers took less than this time, in nanoseconds. `None` if there are too few answers, or if the late
    /// answers did not take much longer.
    median_ns: Option<i64>,
    /// Paths of the longest waits: the runs on which the answers depended, of each path the latest first.
    legs: Vec<Leg>,
}

/// Main part of the time of the threads on which the answers depended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delayer {
    /// Threads ran.
    Running,
    /// Threads were ready and got no CPU.
    Ready,
    /// Threads waited.
    Waiting,
}

impl<'c> LateAnswer<'c> {
    /// Returns the late answers among all answers, if there are any. `waits` are the noticeable waits of the program that
    /// asks, and `last_ns` is the time of the last event.
    fn find(
        runs: &mut Runs<'_>,
        answers: Answers,
        mut waits: Vec<&'c Wait>,
        last_ns: i64,
    ) -> Result<Option<LateAnswer<'c>>, StoreError> {
        let median_ns = answers.median_ns();
        let least_ns = median_ns.map(|ns| ns.saturating_mul(LATE_ANSWER).max(NOTICED_NS));
        let longest_ns = waits.iter().filter_map(|wait| wait.waits_ns).max();
        let least_ns = least_ns.filter(|least_ns| longest_ns >= Some(*least_ns));
        let asked: FxHashSet<_> = answers.answers.iter().flat_map(|it| &it.waits).collect();
        waits.retain(|wait| {
            // A program that runs when it is asked needs no wake. But an interrupt may end a wait for something else.
            let needs_request = least_ns.is_none() || answers.are_packets;
            // The end of the program comes after the end of the recording if it was recorded while the program ran.
            let may_end = least_ns.is_none() && last_ns - answered_ns(wait) < ENDS_NS;
            !may_end
                && wait.readied_by_dpc == Some(answers.are_packets)
                && wait.waits_ns >= least_ns
                && (!needs_request || asked.contains(&range(wait)))
        });
        waits.sort_by_key(|wait| (Reverse(wait.waits_ns), wait.start_ns, wait.thread_id));
        let mut legs: Vec<Leg> = Vec::new();
        for wait in waits.iter().take(PATHS) {
            let thread = Thread {
                id: wait.thread_id,
                row: wait.thread_row,
            };
            let room = LEGS - legs.len();
            legs.extend(path::path(runs, thread, &range(wait), room)?);
        }
        Ok(
            (!waits.is_empty() && !legs.is_empty()).then_some(LateAnswer {
                pair: answers.pair,
                waits,
                median_ns: median_ns.filter(|_| least_ns.is_some()),
                legs,
            }),
        )
    }

    fn ranges(&self) -> Vec<Range<i64>> {
        union(self.waits.iter().map(|wait| range(wait)).collect())
    }

    /// Returns the time for which a thread waited for a late answer, in nanoseconds.
    fn delay_ns(&self) -> i64 {
        let ranges = self.ranges();
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the times in nanoseconds for which threads on the paths waited, were ready and ran.
    fn parts(&self) -> [i64; 3] {
        let mut sums = [0; 3];
        for leg in &self.legs {
            for (sum, part) in sums.iter_mut().zip(leg.parts()) {
                *sum += part;
            }
        }
        sums
    }

    /// Returns the part that took most time of the paths.
    fn delayer(&self) -> Delayer {
        let [waited_ns, ready_ns, ran_ns] = self.parts();
        if waited_ns > ready_ns.max(ran_ns) {
            Delayer::Waiting
        } else if ready_ns > ran_ns {
            Delayer::Ready
        } else {
            Delayer::Running
        }
    }

    /// Returns a run of the thread with the longest part of this kind, and the length of the part in nanoseconds.
    fn slowest(&self, delayer: Delayer) -> Option<(&Run, i64)> {
        let by_thread = path::by_thread(&self.legs).into_iter();
        let parts = by_thread.map(|(run, [waited_ns, ready_ns, ran_ns, _])| {
            let part_ns = match delayer {
                Delayer::Waiting => waited_ns,
                Delayer::Ready => ready_ns,
                Delayer::Running => ran_ns,
            };
            (run, part_ns)
        });
        parts.max_by_key(|(run, ns)| (*ns, Reverse(run.thread_id)))
    }

    /// Returns the severity. Without other answers it is unknown whether the program wanted an answer soon. A wait for a
    /// device or a timer may be intended.
    fn severity(&self) -> Severity {
        match self.delay_ns() {
            _ if self.median_ns.is_none() || self.delayer() == Delayer::Waiting => {
                Severity::Information
            }
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        }
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let [client, server] =
            [self.pair.client, self.pair.server].map(|row| case.process(Some(row), None));
        let (ranges, delay_ns) = (self.ranges(), self.delay_ns());
        let answers = match self.waits.len() as u64 {
            1 => format!("an answer of {server}"),
            many => format!("{} of {server}", counted(many, "answer", "answers")),
        };
        let times = match ranges.as_slice() {
            [range] => format!(", {} to {}", moment(range.start), moment(range.end)),
            _ => String::new(),
        };
        let sentence = format!(
            "{client} waited {} for {answers}{times}. {}.",
            duration(delay_ns),
            wording::capitalized(&self.cause(case))
        );
        let during = ranges[0].start..ranges[ranges.len() - 1].end;
        let by_thread = path::by_thread(&self.legs);
        let waiting = self.waits.iter().map(|wait| Subject::Thread {
            id: wait.thread_id,
            row: wait.thread_row,
            process_row: wait.process_row,
        });
        let on_path = by_thread.iter().take(3).map(|(run, _)| Subject::Thread {
            id: run.thread_id,
            row: run.thread_row,
            process_row: run.process_row,
        });
        let slowest = self.slowest(self.delayer());
        let mut finding = Finding::new(&ABOUT, self.severity(), sentence)
            .during(during)
            .moments(ranges)
            .delay(delay_ns, format!("of {client}, overlaps counted once"))
            .subjects(case.process_subject(Some(self.pair.client), None))
            .subjects(case.process_subject(Some(self.pair.server), None))
            .subjects(
                slowest.and_then(|(run, _)| case.process_subject(run.process_row, run.process_id)),
            )
            .subjects(waiting.take(SHOWN))
            .subjects(on_path);
        if let Some(median_ns) = self.median_ns {
            finding = finding.because(format!(
                "Half of all answers of {server} to {client} took less than {}.",
                duration(median_ns)
            ));
        }
        let programs = self.programs(case);
        if programs.len() > 1 {
            finding = finding.because(format!(
                "The answer depended on several programs, the last first: {}.",
                listed(programs)
            ));
        }
        if let Some(remedy) = self.remedy(case) {
            finding = finding.remedy(remedy);
        }
        if self.waits.len() > PATHS {
            finding = finding.doubt(format!(
                "Only the {PATHS} longest waits were followed to their causes"
            ));
        }
        if self.median_ns.is_none() {
            finding = finding.doubt(format!(
                "It is unknown whether {client} wanted an answer soon: the recording has no other answers that were much \
                 faster"
            ));
        }
        finding
            .with(self.late())
            .with(path::totals(
                case,
                "Time of the threads on which the answers depended",
                &self.legs,
            ))
            .with(path::sums("Times of all these threads", &self.legs))
    }

    /// Returns the clause about what the answers depended on.
    fn cause(&self, case: &Case<'_>) -> String {
        let delayer = self.delayer();
        let Some((run, ns)) = self.slowest(delayer) else {
            return "the cause is unknown".to_owned();
        };
        let process = case.process(run.process_row, run.process_id);
        let who = format!("thread {} of {process}", run.thread_id);
        let share = percent(ns, self.parts().iter().sum());
        let part = format!("for {} ({share} of this time)", duration(ns));
        match delayer {
            Delayer::Running => format!("{who} ran {part}"),
            Delayer::Ready => format!("{who} was ready {part}, but got no CPU"),
            Delayer::Waiting => format!(
                "{who} waited {part}; no other thread is known to have ended this wait, so it was perhaps for a timer, a \
                 device or the network"
            ),
        }
    }

    /// Returns the names of the programs on the paths, the last one first.
    fn programs(&self, case: &Case<'_>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for leg in &self.legs {
            let name = case.process(leg.run.process_row, leg.run.process_id);
            if !names.contains(&name) && names.len() < SHOWN {
                names.push(name);
            }
        }
        names
    }

    fn remedy(&self, case: &Case<'_>) -> Option<String> {
        let delayer = self.delayer();
        let (run, _) = self.slowest(delayer)?;
        let (thread, process) = (run.thread_id, case.process(run.process_row, run.process_id));
        Some(match delayer {
            Delayer::Running => format!(
                "Find out what thread {thread} of {process} does (perf record -g -t {thread}, then laglab stack), and let it \
                 do less work before it answers, or answer in another thread"
            ),
            Delayer::Ready => format!(
                "Find out why {process} got no CPU: see the findings about busy CPUs, limits and waits for a CPU"
            ),
            Delayer::Waiting => format!(
                "Find out for what thread {thread} of {process} waits: record call chains with the switches (perf record -a \
                 -g -e sched:sched_switch), then laglab stack --event cswitch"
            ),
        })
    }

    /// Returns evidence with the longest waits for the late answers.
    fn late(&self) -> Evidence {
        let starts: Vec<i64> = self
            .waits
            .iter()
            .take(SHOWN)
            .map(|wait| wait.start_ns)
            .collect();
        let selection = Selection::new(Table::CpuRuns)
            .filter(Condition::is("process_row", self.pair.client))
            .filter(Condition::is("readying_process_row", self.pair.server))
            .filter(Condition::is_one_of("start_ns", &starts))
            .order(&[
                Order::descending("waits_ns"),
                Order::ascending("start_ns"),
                Order::ascending("thread_id"),
            ])
            .limit(SHOWN);
        let evidence = Evidence::from_selection("Longest waits for late answers", selection)
            .stored("thread_id", "thread", Unit::None)
            .stored("previous_out_ns", "asked until", Unit::Moment)
            .stored("waits_ns", "waited", Unit::Duration)
            .stored("readied_ns", "answered at", Unit::Moment)
            .stored("readying_thread_id", "by thread", Unit::None);
        let shown = self.waits.iter().take(SHOWN);
        shown.fold(evidence, |evidence, wait| {
            evidence.row([
                Some(wait.thread_id.into()),
                wait.previous_out_ns.map(Into::into),
                wait.waits_ns.map(Into::into),
                wait.readied_ns.map(Into::into),
                wait.readying_thread_id.map(Into::into),
            ])
        })
    }
}
