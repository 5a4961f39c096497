//! Code that a thread executed while its window did not respond, by samples, and the input that waited.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InputView, SamplesView, StoreError, Table};

use crate::chain::parts::{Who, thread_name};
use crate::survey::is_inside_routine;
use crate::{Case, Evidence, Name, Unit, counted, percent};

/// Maximum number of modules in the evidence.
const SHOWN: usize = 12;

/// Samples of a thread in a time range.
pub(super) struct ThreadSamples {
    /// Rows of the modules in `images` with their numbers of samples, the largest first.
    modules: Vec<(Option<u32>, u64)>,
    /// Function with most samples, and their number.
    function: Option<(String, u64)>,
    all: u64,
    /// Number of samples in DPCs and service routines that interrupted the thread. They do not belong to the thread.
    inside: u64,
}

impl ThreadSamples {
    /// Reads the samples of a thread. Returns `None` if there are none.
    pub(super) fn read(
        case: &Case<'_>,
        who: &Who,
        range: &Range<i64>,
    ) -> Result<Option<ThreadSamples>, StoreError> {
        let table = case.table(Table::Samples)?;
        let columns = [
            "time_ns",
            "thread_id",
            "image_row",
            "address",
            "count",
            "in_dpc",
            "in_isr",
        ];
        let mut modules: FxHashMap<Option<u32>, u64> = FxHashMap::default();
        let mut functions: FxHashMap<String, u64> = FxHashMap::default();
        let mut inside = 0;
        for batch in case.batches(&table, range.clone(), &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                if view.thread_id[row] != who.thread_id || !range.contains(&view.time_ns[row]) {
                    continue;
                }
                if is_inside_routine(&view, row) {
                    inside += u64::from(view.count[row]);
                    continue;
                }
                let (image, count) = (view.image_row.get(row), u64::from(view.count[row]));
                *modules.entry(image).or_default() += count;
                if let Some(function) = case.function(image, view.address[row]) {
                    *functions.entry(function).or_default() += count;
                }
            }
        }
        let all = modules.values().sum();
        if all == 0 && inside == 0 {
            return Ok(None);
        }
        let mut modules: Vec<(Option<u32>, u64)> = modules.into_iter().collect();
        modules.sort_by_key(|(image, count)| (Reverse(*count), *image));
        let functions = functions.into_iter();
        let function = functions.max_by_key(|(name, count)| (*count, Reverse(name.clone())));
        Ok(Some(ThreadSamples {
            modules,
            function,
            all,
            inside,
        }))
    }

    /// Returns the name of the module with most samples.
    pub(super) fn module<'c>(&self, case: &'c Case<'_>) -> Option<&'c str> {
        let (image_row, _) = self.modules.first().filter(|_| !self.is_interrupted())?;
        case.module_label(*image_row)
    }

    /// Returns the name of the function with most samples. Returns `None` without symbols.
    pub(super) fn function(&self) -> Option<&str> {
        self.function
            .as_ref()
            .map(|(function, _)| function.as_str())
    }

    /// Returns true if DPCs and service routines interrupted the thread for most of the time in which it seems to run.
    pub(super) fn is_interrupted(&self) -> bool {
        self.inside > self.all
    }

    /// Returns a sentence that says in which module and function the thread ran. `whose` is the thread if the sentence
    /// before this one is about another thread.
    pub(super) fn sentence(&self, case: &Case<'_>, whose: Option<&Who>) -> String {
        if self.is_interrupted() {
            let who = whose.map_or("the thread".to_owned(), |who| thread_name(case, who));
            let share = percent(self.inside as i64, (self.inside + self.all) as i64);
            return format!(
                "{share} of the samples while {who} ran are in DPCs and ISRs that interrupted it."
            );
        }
        let most = self.modules.first().map_or(0, |(_, count)| *count);
        let module = self.module(case);
        let place = module.map_or("outside known modules".to_owned(), |module| {
            format!("in {}", Name(module))
        });
        let share = |count: u64| percent(count as i64, self.all as i64);
        let samples = counted(self.all, "sample", "samples");
        let samples = match whose {
            Some(who) => format!("the {samples} of {}", thread_name(case, who)),
            None => format!("its {samples}"),
        };
        let mut sentence = format!("{} of {samples} in this time are {place}", share(most));
        if let Some((function, count)) = &self.function {
            sentence += &format!(
                "; the function with most samples is {} ({})",
                Name(function),
                share(*count)
            );
        }
        sentence + "."
    }

    pub(super) fn evidence(&self, case: &Case<'_>, who: &Who, range: &Range<i64>) -> Evidence {
        let selection = Selection::new(Table::Samples)
            .within("time_ns", range.clone())
            .filter(Condition::is("thread_id", who.thread_id))
            .filter(Condition::IsTrue("in_dpc").negated())
            .filter(Condition::IsTrue("in_isr").negated())
            .group_by(&["image_row"])
            .order(&[Order::descending("samples"), Order::ascending("image_row")])
            .limit(SHOWN);
        let module = Expression::Module("image_row");
        let evidence =
            Evidence::from_selection("Samples of the thread in this time, by module", selection)
                .column("module", "module", Unit::None, module)
                .column("samples", "samples", Unit::Count, Expression::Sum("count"));
        self.modules
            .iter()
            .take(SHOWN)
            .fold(evidence, |evidence, (image, count)| {
                evidence.row([
                    case.module_label(*image).map(Into::into),
                    Some((*count).into()),
                ])
            })
    }
}

/// Returns a sentence with the number of keys and mouse buttons that were pressed in the range. If `has_focus` is true,
/// the window had the focus, so it got them. Returns `None` if no input is recorded then.
pub(super) fn input(
    case: &Case<'_>,
    range: &Range<i64>,
    has_focus: bool,
) -> Result<Option<String>, StoreError> {
    let table = case.table(Table::Input)?;
    let (mut keys, mut buttons) = (0, 0);
    for batch in case.batches(&table, range.clone(), &["time_ns", "kind"]) {
        let batch = batch?;
        let view = InputView::new(&batch)?;
        for row in (0..view.len()).filter(|row| range.contains(&view.time_ns[*row])) {
            match view.kind.get(row) {
                Some("key_down") => keys += 1,
                Some("mouse_down") => buttons += 1,
                _ => {}
            }
        }
    }
    let keys = (keys > 0).then(|| counted(keys, "key", "keys"));
    let buttons = (buttons > 0).then(|| counted(buttons, "click", "clicks"));
    let both: Vec<String> = keys.into_iter().chain(buttons).collect();
    Ok((!both.is_empty()).then(|| {
        let both = both.join(" and ");
        if has_focus {
            format!("In this time, {both} waited for this window.")
        } else {
            format!("In this time, the trace has {both}; it does not record for which window.")
        }
    }))
}
