//! Did threads wait for memory to be read from disk?

use rustc_hash::FxHashMap;
use tables::{HardFaultsView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, duration, grouped,
    size,
};

/// Hard page faults.
pub(crate) struct Paging;

static ABOUT: About = About {
    id: "hard-faults",
    question: "Did threads wait for pages to be read from disk?",
    tables: &[Table::HardFaults],
    sources: &[],
};

/// What of a second of one thread's time is felt.
const NOTICED_NS: i64 = 500_000_000;
/// Rows shown.
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
            let what = "there are no hard faults: none happened, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let mut threads: Vec<((Option<u32>, u32), Faults)> = threads.into_iter().collect();
        threads.sort_by_key(|((row, id), faults)| (std::cmp::Reverse(faults.waited_ns), *id, *row));
        let mut evidence = Evidence::new(
            "Hard faults by thread",
            format!(
                "SELECT process(process_row) AS process, thread_id, count(*) AS faults, \
                 sum(CAST(size_bytes AS BIGINT)) AS size_bytes, sum(duration_ns) AS waited_ns, \
                 max(duration_ns) AS longest_ns FROM hard_faults GROUP BY process_row, thread_id \
                 ORDER BY waited_ns DESC NULLS LAST, thread_id, process_row NULLS FIRST \
                 LIMIT {SHOWN}"
            ),
            &[
                Column::new("process", "process", Unit::None),
                Column::new("thread_id", "thread", Unit::None),
                Column::new("faults", "faults", Unit::Count),
                Column::new("size_bytes", "read", Unit::Bytes),
                Column::new("waited_ns", "waited", Unit::Duration),
                Column::new("longest_ns", "longest", Unit::Duration),
            ],
        );
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
            "thread {id} of {} waited {} for {} ({} read), {} at most",
            case.process(row, None),
            duration(waited_ns),
            grouped(most.count),
            size(most.bytes),
            duration(most.longest_ns.unwrap_or(0))
        );
        if waited_ns < NOTICED_NS {
            let because = format!("no thread waited long for hard faults; most: {told}");
            return Ok(Outcome::Against(because, vec![evidence]));
        }
        let finding = Finding::new(
            &ABOUT,
            Severity::Warning,
            format!("Threads waited for pages that had to be read from disk: {told}."),
        )
        .costing(waited_ns, format!("of thread {id}, which could do nothing meanwhile"))
        .with(evidence)
        .remedy(
            "See which files they came from (`laglab hardfault`): a program's first start reads its \
             own; pages of the page file mean that memory is short",
        );
        Ok(Outcome::For(vec![finding]))
    }
}
