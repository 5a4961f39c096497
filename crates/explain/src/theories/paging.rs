//! Theory: threads waited for pages from disk.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use selection::{Condition, Expression, Order, Selection};
use tables::{HardFaultsView, StoreError, Table};

use crate::chain::user_attention::UserAttention;
use crate::ranges::{overlap, union};
use crate::survey::Response;
use crate::thresholds::{CAUSE_PERCENT, DISRUPTIVE_NS, HARD_FAULTS_NS, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit, counted,
    duration, moment, percent, size,
};

/// Theory about hard page faults, which make threads wait for a disk.
pub(crate) struct Paging;

static ABOUT: About = About {
    id: "hard-faults",
    name: "paging",
    question: "Did threads wait for pages to be read from disk?",
    tables: &[Table::HardFaults, Table::Focus],
    sources: &[
        Source {
            title: "Microsoft: Introduction to the page file (hard faults, page file, memory pressure)",
            url: Some(
                "https://learn.microsoft.com/troubleshoot/windows-client/performance/introduction-to-the-page-file",
            ),
        },
        LINUX_SOURCE,
    ],
};

const LINUX_SOURCE: Source = Source {
    title: "Linux manual: getrusage(2), ru_majflt",
    url: Some("https://man7.org/linux/man-pages/man2/getrusage.2.html"),
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Maximum number of findings.
const FINDINGS: usize = 3;
/// Files to which Windows moves pages if memory is short, in lower case.
const PAGE_FILES: [&str; 2] = ["pagefile.sys", "swapfile.sys"];

/// Row of a process in `processes`, if it is known.
type ProcessRow = Option<u32>;

#[derive(Clone, Copy, Default)]
struct Faults {
    count: u64,
    /// Number of bytes read; `None` on Linux, where it is unknown.
    bytes: Option<u64>,
    waited_ns: Option<i64>,
    longest_ns: Option<i64>,
}

impl Faults {
    fn add(&mut self, bytes: Option<u32>, duration_ns: Option<i64>) {
        self.count += 1;
        if let Some(bytes) = bytes {
            self.bytes = Some(self.bytes.unwrap_or(0) + u64::from(bytes));
        }
        if let Some(ns) = duration_ns {
            self.waited_ns = Some(self.waited_ns.unwrap_or(0).saturating_add(ns));
            self.longest_ns = self.longest_ns.max(Some(ns));
        }
    }
}

/// Hard faults of a process.
#[derive(Default)]
struct ProcessFaults {
    all: Faults,
    by_thread: FxHashMap<u32, Faults>,
    by_file: FxHashMap<Option<String>, Faults>,
    waits: Vec<Range<i64>>,
    /// Waits of threads that handle window messages.
    window_waits: Vec<Range<i64>>,
}

impl ProcessFaults {
    /// Returns the time that threads waited for pages of the page file, in nanoseconds.
    fn page_file_ns(&self) -> i64 {
        let is_page_file = |path: &str| {
            let path = path.to_lowercase();
            PAGE_FILES.iter().any(|name| path.ends_with(name))
        };
        let files = self.by_file.iter();
        files
            .filter(|(path, _)| path.as_deref().is_some_and(is_page_file))
            .map(|(_, faults)| faults.waited_ns.unwrap_or(0))
            .sum()
    }
}

impl Theory for Paging {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut processes = read(case)?;
        if processes.is_empty() {
            let what = "there are no hard faults: either none happened, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        processes.sort_by_key(|(row, faults)| (Reverse(faults.all.waited_ns), *row));
        let evidence = by_process(case, &processes);
        let is_long = |(_, faults): &&(ProcessRow, ProcessFaults)| {
            faults.all.waited_ns >= Some(HARD_FAULTS_NS)
        };
        let long: Vec<_> = processes.iter().filter(is_long).take(FINDINGS).collect();
        if long.is_empty() {
            let (row, most) = &processes[0];
            let because = format!(
                "no process waited long for pages; the longest waits: {}",
                description(case, *row, most)
            );
            return Ok(Outcome::Against(because, vec![evidence]));
        }
        let noticed = case.noticed()?;
        let findings = long.into_iter().map(|(row, faults)| {
            let finding = finding(case, noticed, *row, faults);
            finding.with(evidence.clone())
        });
        Ok(Outcome::For(findings.collect()))
    }
}

/// Reads the hard faults of all processes.
fn read(case: &Case<'_>) -> Result<Vec<(ProcessRow, ProcessFaults)>, StoreError> {
    let mut processes: FxHashMap<ProcessRow, ProcessFaults> = FxHashMap::default();
    let threads = case.survey.threads.iter();
    let windows: FxHashSet<u32> = threads
        .filter(|thread| UserAttention::has_window(thread))
        .map(|thread| thread.thread_id)
        .collect();
    let table = case.table(Table::HardFaults)?;
    let columns = [
        "time_ns",
        "start_ns",
        "thread_id",
        "process_row",
        "duration_ns",
        "size_bytes",
        "path",
    ];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = HardFaultsView::new(&batch)?;
        for row in 0..view.len() {
            let faults = processes.entry(view.process_row.get(row)).or_default();
            let (bytes, ns) = (view.size_bytes.get(row), view.duration_ns.get(row));
            faults.all.add(bytes, ns);
            let of_thread = faults.by_thread.entry(view.thread_id[row]).or_default();
            of_thread.add(bytes, ns);
            let path = view.path.get(row).map(str::to_owned);
            faults.by_file.entry(path).or_default().add(bytes, ns);
            let wait = view.start_ns.get(row).map(|start| start..view.time_ns[row]);
            if windows.contains(&view.thread_id[row]) {
                faults.window_waits.extend(wait.clone());
            }
            faults.waits.extend(wait);
        }
    }
    Ok(processes.into_iter().collect())
}

/// Describes the hard faults of a process.
fn description(case: &Case<'_>, row: ProcessRow, faults: &ProcessFaults) -> String {
    format!(
        "{} of {} waited {} for {}{}, {} at most",
        counted(faults.by_thread.len() as u64, "thread", "threads"),
        case.process(row, None),
        duration(faults.all.waited_ns.unwrap_or(0)),
        counted(faults.all.count, "hard fault", "hard faults"),
        (faults.all.bytes).map_or_else(String::new, |bytes| format!(" ({} read)", size(bytes))),
        duration(faults.all.longest_ns.unwrap_or(0))
    )
}

/// Describes the hard faults of a process. A user waited if the process had the focus while its window waited
/// for a disruptive time.
fn finding(
    case: &Case<'_>,
    noticed: &UserAttention,
    row: ProcessRow,
    faults: &ProcessFaults,
) -> Finding {
    let waited_ns = faults.all.waited_ns.unwrap_or(0);
    let waits = union(faults.waits.clone());
    let gaps = &case.survey.suspend_gaps;
    let lengths = waits
        .iter()
        .map(|wait| wait.end - wait.start - gaps.asleep_ns(wait));
    let delay_ns: i64 = lengths.sum();
    let window_waits = union(faults.window_waits.clone());
    let noticed_ns: i64 = (window_waits.iter())
        .map(|wait| noticed.noticed_ns(row, wait))
        .sum();
    let late = late_response(case, row, &window_waits);
    let is_late = late.is_some_and(|response| response.ns >= DISRUPTIVE_NS);
    let severity = match noticed_ns {
        DISRUPTIVE_NS.. if noticed.knows_focus() || is_late => Severity::Problem,
        _ => Severity::Warning,
    };
    let process = case.process(row, None);
    let mut threads: Vec<(u32, Faults)> = faults
        .by_thread
        .iter()
        .map(|(id, sums)| (*id, *sums))
        .collect();
    threads.sort_by_key(|(id, faults)| (Reverse(faults.waited_ns), *id));
    let mut sentence = format!(
        "Threads waited for pages from disk: {}.",
        description(case, row, faults)
    );
    if let Some(response) = late {
        sentence += &format!(
            " Its window did not respond for {} ({} to {}).",
            duration(response.ns),
            moment(response.start_ns),
            moment(response.end_ns)
        );
    }
    let mut finding = Finding::new(&ABOUT, severity, sentence);
    if case.is_linux() {
        finding.sources = vec![LINUX_SOURCE];
    }
    let page_file_ns = faults.page_file_ns();
    let remedy = match is_share(page_file_ns, waited_ns.max(1), CAUSE_PERCENT) {
        true => {
            finding = finding.because(format!(
                "{} of this time was for pages in the page file: memory was short, so Windows had \
                 moved them there.",
                percent(page_file_ns, waited_ns)
            ));
            "Use less memory, or add some: find the programs with most private memory (Task Manager, \
             Commit size). A faster disk for the page file makes the waits shorter"
        }
        false if case.is_linux() => {
            "Find the files that the pages came from: record filemap:mm_filemap_fault, and see perf-trace(1). The \
             first start of a program reads its own files; swapped pages mean that memory is short. mlockall(2), \
             MAP_POPULATE and madvise(2) read pages before they are needed"
        }
        false => {
            "Find the files that the pages came from (`laglab hardfault`): the first start of a program \
             reads its own files; reads of the page file mean that memory is short"
        }
    };
    let subjects = threads.iter().take(SHOWN).map(|(id, _)| Subject::Thread {
        id: *id,
        row: None,
        process_row: row,
    });
    let mut finding = finding
        .subjects(subjects)
        .subjects(case.process_subject(row, None))
        .delay(
            delay_ns,
            format!("of {process}, whose threads waited for pages, overlaps counted once"),
        )
        .remedy(remedy);
    if let Some((first, last)) = waits.first().zip(waits.last()) {
        let during = first.start..last.end;
        finding = finding
            .attention(noticed.attention(row, &during))
            .during(during);
    }
    finding
        .with(by_thread(row, &threads))
        .with(by_file(row, faults))
}

/// Returns the longest response of a window of the process that consists mainly of these waits.
fn late_response(case: &Case<'_>, row: ProcessRow, waits: &[Range<i64>]) -> Option<Response> {
    let threads = case.survey.threads.iter();
    let responses = threads
        .filter(|thread| row.is_some() && thread.process_row == row)
        .flat_map(|thread| &thread.responses);
    let is_of_pages = |response: &&Response| {
        let range = response.range();
        let parts = waits.iter().filter_map(|wait| overlap(wait, &range));
        let ns: i64 = parts.map(|part| part.end - part.start).sum();
        // Before its first wait for messages, a thread may have started its program.
        !response.began_before && is_share(ns, response.ns, CAUSE_PERCENT)
    };
    let late = responses.filter(is_of_pages);
    late.max_by_key(|response| response.ns).copied()
}

/// Adds the columns with sums of hard faults, which all evidence of this theory has.
fn with_sums(evidence: Evidence) -> Evidence {
    let sum = Expression::Sum;
    evidence
        .column("faults", "faults", Unit::Count, Expression::Count)
        .column("size_bytes", "read", Unit::Bytes, sum("size_bytes"))
        .column("waited_ns", "waited", Unit::Duration, sum("duration_ns"))
        .column(
            "longest_ns",
            "longest",
            Unit::Duration,
            Expression::Max("duration_ns"),
        )
}

/// Returns the cells of the columns that [`with_sums`] adds.
fn sums(faults: &Faults) -> [Option<crate::Value>; 4] {
    [
        Some(faults.count.into()),
        faults.bytes.map(Into::into),
        faults.waited_ns.map(Into::into),
        faults.longest_ns.map(Into::into),
    ]
}

fn by_process(case: &Case<'_>, processes: &[(ProcessRow, ProcessFaults)]) -> Evidence {
    let selection = Selection::new(Table::HardFaults)
        .group_by(&["process_row"])
        .order(&[
            Order::descending("waited_ns"),
            Order::ascending("process_row").unknown_first(),
        ])
        .limit(SHOWN);
    let evidence = Evidence::from_selection("Hard faults by process", selection)
        .column(
            "process",
            "process",
            Unit::None,
            Expression::Process("process_row"),
        )
        .column(
            "threads",
            "threads",
            Unit::Count,
            Expression::CountDistinct("thread_id"),
        );
    let processes = processes.iter().take(SHOWN);
    processes.fold(with_sums(evidence), |evidence, (row, faults)| {
        let process = case.process_label(*row).map(Into::into);
        let threads = Some((faults.by_thread.len() as u64).into());
        evidence.row([process, threads].into_iter().chain(sums(&faults.all)))
    })
}

fn by_thread(row: ProcessRow, threads: &[(u32, Faults)]) -> Evidence {
    let selection = Selection::new(Table::HardFaults)
        .filter(Condition::is_or_unknown("process_row", row))
        .group_by(&["thread_id"])
        .order(&[
            Order::descending("waited_ns"),
            Order::ascending("thread_id"),
        ])
        .limit(SHOWN);
    let evidence = Evidence::from_selection("Its hard faults by thread", selection).stored(
        "thread_id",
        "thread",
        Unit::None,
    );
    let threads = threads.iter().take(SHOWN);
    threads.fold(with_sums(evidence), |evidence, (id, faults)| {
        evidence.row([Some((*id).into())].into_iter().chain(sums(faults)))
    })
}

fn by_file(row: ProcessRow, faults: &ProcessFaults) -> Evidence {
    let mut files: Vec<(&Option<String>, &Faults)> = faults.by_file.iter().collect();
    files.sort_by_key(|(path, faults)| (Reverse(faults.waited_ns), *path));
    let selection = Selection::new(Table::HardFaults)
        .filter(Condition::is_or_unknown("process_row", row))
        .group_by(&["path"])
        .order(&[
            Order::descending("waited_ns"),
            Order::ascending("path").unknown_first(),
        ])
        .limit(SHOWN);
    let evidence = Evidence::from_selection("Its hard faults by file", selection).stored(
        "path",
        "file",
        Unit::None,
    );
    let files = files.into_iter().take(SHOWN);
    files.fold(with_sums(evidence), |evidence, (path, faults)| {
        let path = path.as_deref().map(Into::into);
        evidence.row([path].into_iter().chain(sums(faults)))
    })
}
