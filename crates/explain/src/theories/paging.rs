//! Theory: threads waited for pages from disk.

use rustc_hash::FxHashMap;
use selection::{Expression, Order, Selection};
use tables::{HardFaultsView, StoreError, Table};

use crate::thresholds::HARD_FAULTS_NS;
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Subject, Theory, Unit, duration, grouped,
    size,
};

/// Theory about hard page faults, which make threads wait for a disk.
pub(crate) struct Paging;

static ABOUT: About = About {
    id: "hard-faults",
    name: "paging",
    question: "Did threads wait for pages to be read from disk?",
    tables: &[Table::HardFaults],
    sources: &[],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

#[derive(Clone, Copy, Default)]
struct Faults {
    count: u64,
    bytes: u64,
    waited_ns: Option<i64>,
    longest_ns: Option<i64>,
}

impl Theory for Paging {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let mut threads: FxHashMap<(Option<u32>, u32), Faults> = FxHashMap::default();
        let table = case.table(Table::HardFaults)?;
        let columns = [
            "time_ns",
            "thread_id",
            "process_row",
            "duration_ns",
            "size_bytes",
        ];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = HardFaultsView::new(&batch)?;
            for row in 0..view.len() {
                let key = (view.process_row.get(row), view.thread_id[row]);
                let faults = threads.entry(key).or_default();
                faults.count += 1;
                faults.bytes += u64::from(view.size_bytes[row]);
                if let Some(ns) = view.duration_ns.get(row) {
                    faults.waited_ns = Some(faults.waited_ns.unwrap_or(0).saturating_add(ns));
                    faults.longest_ns = faults.longest_ns.max(Some(ns));
                }
            }
        }
        if threads.is_empty() {
            let what = "there are no hard faults: either none happened, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut threads: Vec<((Option<u32>, u32), Faults)> = threads.into_iter().collect();
        threads.sort_by_key(|((row, id), faults)| (std::cmp::Reverse(faults.waited_ns), *id, *row));
        let selection = Selection::of(Table::HardFaults)
            .group_by(&["process_row", "thread_id"])
            .order(&[
                Order::descending("waited_ns"),
                Order::ascending("thread_id"),
                Order::ascending("process_row").unknown_first(),
            ])
            .limit(SHOWN);
        let (process, sum) = (Expression::Process("process_row"), Expression::Sum);
        let longest = Expression::Max("duration_ns");
        let mut evidence = Evidence::of("Hard faults by thread", selection)
            .column("process", "process", Unit::None, process)
            .stored("thread_id", "thread", Unit::None)
            .column("faults", "faults", Unit::Count, Expression::Count)
            .column("size_bytes", "read", Unit::Bytes, sum("size_bytes"))
            .column("waited_ns", "waited", Unit::Duration, sum("duration_ns"))
            .column("longest_ns", "longest", Unit::Duration, longest);
        for ((row, id), faults) in threads.iter().take(SHOWN) {
            evidence = evidence.row([
                case.process_label(*row).map(Into::into),
                Some((*id).into()),
                Some(faults.count.into()),
                Some(faults.bytes.into()),
                faults.waited_ns.map(Into::into),
                faults.longest_ns.map(Into::into),
            ]);
        }
        let ((row, id), most) = threads[0];
        let waited_ns = most.waited_ns.unwrap_or(0);
        let told = format!(
            "thread {id} of {} waited {} for {} hard faults ({} read), {} at most",
            case.process(row, None),
            duration(waited_ns),
            grouped(most.count),
            size(most.bytes),
            duration(most.longest_ns.unwrap_or(0))
        );
        if waited_ns < HARD_FAULTS_NS {
            let because = format!("no thread waited long for hard faults; the longest: {told}");
            return Ok(Outcome::Against(because, vec![evidence]));
        }
        let finding = Finding::new(
            &ABOUT,
            Severity::Warning,
            format!("Threads waited for pages from disk: {told}."),
        )
        .subjects([Subject::Thread {
            id,
            row: None,
            process_row: row,
        }])
        .subjects(case.process_subject(row, None))
        .delay(
            waited_ns,
            format!("of thread {id}, which waited for the pages"),
        )
        .with(evidence)
        .remedy(
            "Find the files that they came from (`laglab hardfault`): the first start of a program \
             reads its own files; reads of the page file mean that memory is short",
        );
        Ok(Outcome::For(vec![finding]))
    }
}
