//! Were processes frozen?

use std::ops::Range;

use tables::{CpuRunsView, ProcessFreezesView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, duration,
};

/// Processes that Windows did not let run.
pub(crate) struct Freezes;

static ABOUT: About = About {
    id: "frozen",
    question: "Were processes frozen, so that none of their threads could run?",
    tables: &[Table::ProcessFreezes, Table::Focus, Table::CpuRuns],
    sources: &[Source {
        title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com; process freezing)",
        url: "",
    }],
};

/// What a person notices: the time after which a program seems not to answer.
const NOTICED_NS: i64 = 1_000_000_000;
/// Rows shown.
const SHOWN: usize = 10;
/// The reasons to wait that are a suspension: `Suspended` and `WrSuspended`.
const SUSPENDED: [u8; 2] = [5, 12];

/// A time during which Windows let no thread of a process run.
pub(super) struct Freeze {
    pub(super) range: Range<i64>,
    is_thawed: bool,
    pub(super) process_id: u32,
    pub(super) process_row: Option<u32>,
}

impl Theory for Freezes {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let freezes = read(case)?;
        if freezes.is_empty() {
            let what = "there are no events of processes being frozen: none was, or they were not \
                        recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let focus = case.focus()?;
        let mut findings = Vec::new();
        for freeze in &freezes {
            let had_focus = focus
                .iter()
                .filter(|focus| focus.process_id == freeze.process_id)
                .map(|focus| focus.during.start.max(freeze.range.start)..focus.during.end)
                .find(|focus| focus.start < focus.end.min(freeze.range.end));
            findings.push(found(case, freeze, had_focus.map(|focus| focus.start))?);
        }
        Ok(Outcome::For(findings))
    }
}

/// What is to be said of a freeze of a process that had the focus from that moment on, if it had.
fn found(case: &Case<'_>, freeze: &Freeze, focus_ns: Option<i64>) -> Result<Finding, StoreError> {
    let Range { start, end } = freeze.range;
    let process = case.process(freeze.process_row, Some(freeze.process_id));
    let woken = woken(case, freeze)?;
    let wanted_ns = [focus_ns, woken.first().map(|woken| woken.start_ns)];
    let wanted_ns = wanted_ns.into_iter().flatten().min();
    let silences = &case.survey.silences;
    let lost_ns = wanted_ns.map_or(0, |since| end - since - silences.asleep_ns(&(since..end)));
    let severity = match lost_ns {
        NOTICED_NS.. => Severity::Problem,
        _ => Severity::Information,
    };
    let until = match freeze.is_thawed {
        true => format!("thawed at {}", duration(end)),
        false => "not thawed before the trace ended".to_owned(),
    };
    let wanted = match (woken.first(), focus_ns) {
        (_, Some(since)) => format!(" It had the focus from {} on.", duration(since)),
        (Some(woken), None) => format!(
            " Its thread {} was woken at {} and suspended before it did anything.",
            woken.thread_id,
            duration(woken.start_ns)
        ),
        (None, None) => String::new(),
    };
    let slept = match silences.asleep_ns(&(start..end)) {
        0 => String::new(),
        ns => format!(" The machine itself slept for {} of that.", duration(ns)),
    };
    let sentence = format!(
        "{process} was frozen at {} and {until}: for {} none of its threads could run.{wanted}{slept}",
        duration(start),
        duration(end - start),
    );
    let id = freeze.process_id;
    let [explicit, implicit] = SUSPENDED;
    let mut suspended = Evidence::new(
        "Threads that were woken meanwhile, and suspended again",
        format!(
            "SELECT thread_id, readied_ns, start_ns, end_ns FROM cpu_runs WHERE process_id = {id} AND \
             end_ns > {start} AND end_ns <= {end} AND wait_reason_out IN ({explicit}, {implicit}) \
             ORDER BY end_ns, thread_id LIMIT {SHOWN}"
        ),
        &[
            Column::new("thread_id", "thread", Unit::None),
            Column::new("readied_ns", "woken at", Unit::Moment),
            Column::new("start_ns", "ran from", Unit::Moment),
            Column::new("end_ns", "to", Unit::Moment),
        ],
    );
    for woken in woken.iter().take(SHOWN) {
        suspended = suspended.row([
            Some(woken.thread_id.into()),
            woken.readied_ns.map(Into::into),
            Some(woken.start_ns.into()),
            Some(woken.end_ns.into()),
        ]);
    }
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(start..end)
        .with(freeze.evidence(case))
        .with(suspended);
    if !slept.is_empty() {
        finding = finding.with(silences.evidence(&(start..end)));
    }
    Ok(match lost_ns {
        0 => finding.doubt(
            "Windows freezes packaged apps that are out of sight; that is a problem only if somebody \
             waited for one",
        ),
        _ => finding
            .costing(
                lost_ns,
                match slept.is_empty() {
                    true => format!("of whoever waited for {process}: from when it was wanted"),
                    false => format!(
                        "of whoever waited for {process}: from when it was wanted, while the machine \
                         was awake"
                    ),
                },
            )
            .remedy(
                "Find out why the system froze it while it was wanted: the Background Tasks \
                 Infrastructure service decides, by what the shell tells it of windows",
            ),
    })
}

impl Freeze {
    /// When it was.
    pub(super) fn evidence(&self, case: &Case<'_>) -> Evidence {
        let Range { start, end } = self.range;
        let query = format!(
            "SELECT process(process_row) AS process, start_ns, end_ns, end_ns - start_ns AS \
             frozen_ns FROM process_freezes WHERE process_id = {} AND start_ns = {start}",
            self.process_id
        );
        let columns = [
            Column::new("process", "process", Unit::None),
            Column::new("start_ns", "frozen at", Unit::Moment),
            Column::new("end_ns", "thawed at", Unit::Moment),
            Column::new("frozen_ns", "frozen", Unit::Duration),
        ];
        Evidence::new("The freeze", query, &columns).row([
            case.process_label(self.process_row).map(Into::into),
            Some(start.into()),
            Some(end.into()),
            Some((end - start).into()),
        ])
    }
}

/// A run of a thread of a frozen process that ended by its suspension.
struct Woken {
    thread_id: u32,
    readied_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
}

fn woken(case: &Case<'_>, freeze: &Freeze) -> Result<Vec<Woken>, StoreError> {
    const COLUMNS: [&str; 6] = [
        "start_ns",
        "end_ns",
        "thread_id",
        "process_id",
        "readied_ns",
        "wait_reason_out",
    ];
    let Range { start, end } = freeze.range;
    let runs = case.table(Table::CpuRuns)?;
    let mut found = Vec::new();
    for batch in case.batches(&runs, start..end.saturating_add(1), &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let is_suspended = view
                .wait_reason_out
                .get(row)
                .is_some_and(|reason| SUSPENDED.contains(&reason));
            if is_suspended
                && view.process_id.get(row) == Some(freeze.process_id)
                && start < view.end_ns[row]
                && view.end_ns[row] <= end
            {
                found.push(Woken {
                    thread_id: view.thread_id[row],
                    readied_ns: view.readied_ns.get(row),
                    start_ns: view.start_ns[row],
                    end_ns: view.end_ns[row],
                });
            }
        }
    }
    found.sort_by_key(|woken| (woken.end_ns, woken.thread_id));
    Ok(found)
}

/// All freezes, in order of time.
pub(super) fn read(case: &Case<'_>) -> Result<Vec<Freeze>, StoreError> {
    let table = case.table(Table::ProcessFreezes)?;
    let mut freezes = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read_all(chunk)?;
        let view = ProcessFreezesView::new(&batch)?;
        for row in 0..view.len() {
            freezes.push(Freeze {
                range: view.start_ns[row]..view.end_ns[row],
                is_thawed: view.ends_at_event.get(row).unwrap_or(false),
                process_id: view.process_id[row],
                process_row: view.process_row.get(row),
            });
        }
    }
    Ok(freezes)
}
