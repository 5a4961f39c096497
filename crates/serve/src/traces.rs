//! Open traces, and their results that are kept for later requests.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diff::{ReadOptions, Recording};
use explain::story::{self, Story, Thread};
use explain::{Evidence, Explanation, Scope, Verdict};
use explore::{Explorer, Preset, View};
use facts::Info;
use report::{ExplainedTrace, Panel, ShownView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{LazyCell, SEVERAL_SYSTEMS, SymbolOptions, Symbolication, TraceTables};
use tables::{Identities, Options, Table};
use ts_rs::TS;

use crate::Refusal;
use crate::progress::{Progress, Relay, TaskProgress};
use crate::work::Cancellation;

/// Maximum time that a request for facts about a trace waits until their tables are made.
const FACTS_TIMEOUT: Duration = Duration::from_millis(300);

/// Tables that are needed for the facts about a trace and for the first graphs. Their rows have no stacks. So
/// making these tables takes only a fifth of the time of all tables.
const FIRST: [Table; 11] = [
    Table::EventKinds,
    Table::Cpus,
    Table::SystemConfig,
    Table::Damages,
    Table::Processes,
    Table::Threads,
    Table::Images,
    Table::Interrupts,
    Table::Focus,
    Table::Input,
    Table::ProcessFreezes,
];

/// Maximum number of views in a report.
const MOST_VIEWS: usize = 32;

/// Open trace with its cached results.
pub struct ServedTrace {
    name: String,
    tables: TraceTables,
    symbol_options: SymbolOptions,
    /// Progress of the current work on the trace.
    progress: Arc<Progress>,
    /// True if the thread that makes tables ahead of requests has finished. It may have failed.
    tables_made: AtomicBool,
    info: LazyCell<Info>,
    names: LazyCell<Identities>,
    symbols: LazyCell<Symbolication>,
    explorer: LazyCell<Explorer>,
    explained: LazyCell<ExplainedTrace>,
    findings: LazyCell<Findings<Value>>,
}

/// Facts about a trace for the header of the page.
#[derive(Serialize, TS)]
pub(super) struct TraceFacts {
    id: usize,
    name: String,
    files: Vec<String>,
    /// True if the trace comes from a model of Windows instead of a machine.
    simulated: bool,
    /// Operating system and its version, for traces with events.
    system: Option<String>,
    machine: Option<String>,
    cpu: Option<String>,
    cpus: Option<u32>,
    start_utc: Option<String>,
    /// Time from the first to the last event. Until the events are read, it is the length of the session.
    duration_ns: Option<i64>,
    /// Start and end of `duration_ns`, in nanoseconds since the trace's start.
    range: Option<[i64; 2]>,
    events: Option<u64>,
    size_bytes: Option<u64>,
    /// Warnings about the quality of the trace.
    warnings: Vec<String>,
    /// True if the events were read. Until then, the facts come from headers only.
    complete: bool,
    /// Name of the only table of packet captures or measured samples, which have no events. `None` for other
    /// traces.
    only: Option<&'static str>,
}

/// Strip of small graphs at the top of the page.
#[derive(Serialize, TS)]
pub(super) struct Overview {
    graphs: Vec<Preset>,
    /// True if all graphs are present. Otherwise, more tables are being made, and the page should request
    /// again.
    complete: bool,
}

/// Explanation of a trace for the page.
#[derive(Serialize, TS)]
#[ts(concrete(E = Explanation))]
pub(super) struct Findings<E> {
    /// [`Explanation`] as JSON, with a view for each evidence.
    #[serde(flatten)]
    explanation: E,
    /// Conclusion. `None` if the findings contain problems or warnings about the machine.
    conclusion: Option<String>,
    /// Runs in which context switches are missing.
    doubtful: Doubtful,
}

/// Runs that the findings leave out.
#[derive(Serialize, TS)]
struct Doubtful {
    /// Number of the runs.
    runs: u64,
    /// Total length of the runs, in nanoseconds.
    cpu_ns: i64,
}

/// Thread and time of a request about a wait.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub(super) struct WaitRequest {
    /// Row of the thread in the table `threads`.
    #[serde(default)]
    thread_row: Option<u32>,
    /// Id of the thread. It is used if the row is unknown.
    #[serde(default)]
    thread_id: Option<u32>,
    /// Time in nanoseconds since the trace's start.
    at_ns: i64,
}

impl ServedTrace {
    /// Opens a trace under a name.
    pub fn new(name: String, tables: TraceTables, symbol_options: SymbolOptions) -> ServedTrace {
        let progress = Arc::<Progress>::default();
        let relay = Relay::new(Arc::clone(tables.observer()), Arc::clone(&progress));
        ServedTrace {
            name,
            tables: tables.with_observer(Arc::new(relay)),
            symbol_options,
            progress,
            tables_made: AtomicBool::new(false),
            info: LazyCell::new(),
            names: LazyCell::new(),
            symbols: LazyCell::new(),
            explorer: LazyCell::new(),
            explained: LazyCell::new(),
            findings: LazyCell::new(),
        }
    }

    /// Returns the name of the trace for the user.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sums of the trace that a comparison with another trace needs.
    pub(super) fn recording(&self) -> Result<Recording, Refusal> {
        let store = self.tables.store();
        let symbols = self.symbols()?;
        let read_options = ReadOptions {
            functions: Some(&*symbols),
            ..ReadOptions::default()
        };
        Ok((self.tables).watched(|options| Recording::read(store, &read_options, options))?)
    }

    /// Makes the tables of the facts and of the first graphs. Errors are ignored here, because requests that
    /// need the tables report them.
    pub(super) fn make_first_tables(&self) {
        let _ = self.tables.make(&FIRST);
    }

    /// Makes all tables that the page needs. Errors are ignored here, because requests that need the tables
    /// report them.
    pub(super) fn make_tables(&self) {
        let _ = self.tables.make(&report::tables());
        self.tables_made.store(true, Ordering::Relaxed);
    }

    /// Explains the trace before the page requests it.
    pub(super) fn explain_ahead(&self) {
        let _ = self.info();
        let _ = self.findings();
    }

    /// Returns the progress of the current work on the trace, if there is any.
    pub(super) fn reached(&self) -> Option<TaskProgress> {
        let of_views = || {
            let progress = self.explorer.get_if_made()?.progress()?;
            Some(TaskProgress {
                what: progress.phase,
                done: progress.done,
                of: progress.of,
            })
        };
        self.progress.reached().or_else(of_views)
    }

    /// Returns the facts about the trace that `laglab info` prints.
    pub(super) fn info(&self) -> Result<Arc<Info>, Refusal> {
        self.info.get(|| {
            let store = self.tables.store();
            Ok(self.tables.watched(|options| Info::read(store, options))?)
        })
    }

    pub(super) fn facts(&self, id: usize) -> Result<TraceFacts, Refusal> {
        let complete = (self.tables.store()).wait_for(&Info::TABLES, FACTS_TIMEOUT);
        let info = if complete {
            self.info()?
        } else {
            Arc::new(Info::from_headers(self.tables.store().info()))
        };
        let system = &info.system;
        let model = [&system.manufacturer, &system.model];
        let model: Vec<&str> = model.into_iter().flatten().map(String::as_str).collect();
        let machine = system.computer.clone();
        let mut warnings = Vec::new();
        if !info.one_system {
            warnings.push(SEVERAL_SYSTEMS.to_owned());
        }
        if !info.damage.none {
            warnings.extend(info.damage.sentences());
        }
        warnings.extend(self.tables.store().warning().map(str::to_owned));
        let extent = &info.trace;
        let lasted = info
            .sessions
            .iter()
            .filter_map(|session| session.duration_ns);
        // The log of a trace without events contains only a header, so the trace has no first and no last event.
        let only = self.tables.store().info().only_table;
        let is_read = complete && only.is_none();
        let range = if is_read {
            extent.first_event_ns.zip(extent.last_event_ns)
        } else {
            lasted.max().map(|ns| (0, ns))
        };
        Ok(TraceFacts {
            id,
            name: self.name.clone(),
            files: extent.files.clone(),
            simulated: info.is_simulated(),
            system: only.is_none().then(|| system.name()),
            machine: machine.or((!model.is_empty()).then(|| model.join(" "))),
            cpu: system.cpu.clone(),
            cpus: info.cpus.stated.filter(|_| only.is_none()),
            start_utc: extent.start.clone(),
            duration_ns: range.map(|(first, last)| last.saturating_sub(first)),
            range: range.map(|(first, last)| [first, last]),
            events: is_read.then_some(extent.events),
            size_bytes: only.is_none().then_some(extent.size_bytes),
            warnings,
            complete,
            only: only.map(Table::name),
        })
    }

    fn names(&self) -> Result<Arc<Identities>, Refusal> {
        self.names.get(|| Ok(self.tables.identities()?))
    }

    /// Returns the symbols, which find the function names of addresses.
    pub(super) fn symbols(&self) -> Result<Arc<Symbolication>, Refusal> {
        self.symbols.get(|| {
            let images = &self.names()?.images;
            Ok(Symbolication::new(
                &self.symbol_options,
                self.tables.store(),
                images,
            )?)
        })
    }

    /// Returns the explorer, which answers requests of views.
    pub(super) fn explorer(&self) -> Result<Arc<Explorer>, Refusal> {
        self.explorer.get(|| {
            let store = Arc::clone(self.tables.store());
            let functions = self.symbols()?;
            Ok(Explorer::new(
                store,
                Some(functions),
                Explorer::MEMORY_BYTES,
            ))
        })
    }

    /// Returns the strip of small graphs. While tables are being made, the strip only has graphs whose tables
    /// are ready.
    pub(super) fn overview(&self, cancellation: &Cancellation) -> Result<Overview, Refusal> {
        let complete = self.tables_made.load(Ordering::Relaxed);
        let explorer = self.explorer()?;
        let answer = if complete {
            explorer.overview(cancellation.cancelled())?
        } else {
            explorer.overview_so_far()?
        };
        let graphs = answer.graphs;
        Ok(Overview { graphs, complete })
    }

    /// Returns the explanation of the trace.
    fn explained(&self) -> Result<Arc<ExplainedTrace>, Refusal> {
        self.explained.get(|| {
            let (info, symbols) = (self.info()?, self.symbols()?);
            let scope = Scope::default();
            Ok(run_separately(|| {
                ExplainedTrace::known(&self.tables, info, scope, &symbols)
            })?)
        })
    }

    /// Returns the explanation as `laglab explain --json` prints it, plus a view for each evidence, the
    /// conclusion, and the doubtful runs.
    pub(super) fn findings(&self) -> Result<Arc<Findings<Value>>, Refusal> {
        self.findings.get(|| {
            let explained = self.explained()?;
            let explanation = serde_json::to_value(&explained.explanation);
            let mut explanation =
                explanation.map_err(|error| Refusal::failed(error.to_string()))?;
            let names = self.names()?;
            add_views(&mut explanation, &explained.explanation, &names);
            let doubtful = &explained.explanation.survey.doubtful;
            Ok(Findings {
                explanation,
                conclusion: explained.conclusion(),
                doubtful: Doubtful {
                    runs: doubtful.runs,
                    cpu_ns: doubtful.cpu_ns,
                },
            })
        })
    }

    /// Returns the description of a thread at a time. It contains the activity of the thread and the cause of
    /// its wait.
    pub(super) fn wait(
        &self,
        request: WaitRequest,
        cancellation: &Cancellation,
    ) -> Result<Story, Refusal> {
        let explained = self.explained()?;
        let symbols = self.symbols()?;
        let progress = |_| cancellation.is_pending();
        let options = Options {
            progress: &progress,
        };
        let Some(id) = (match request.thread_row {
            Some(row) => explained.explanation.names.thread_id(row),
            None => request.thread_id,
        }) else {
            return Err(Refusal::bad(
                "the request names no thread; send `thread_row` or `thread_id`",
            ));
        };
        let thread = Thread {
            id,
            row: request.thread_row,
        };
        let Explanation { survey, names, .. } = &explained.explanation;
        let store = self.tables.store();
        let story = story::tell(
            store,
            survey,
            names,
            thread,
            request.at_ns,
            Some(&*symbols),
            options,
        )?;
        story.ok_or_else(|| {
            Refusal::not_found(format!(
                "thread {id} has no run at that time or later; the trace may lack its \
                 context switches"
            ))
        })
    }

    /// Returns the report that `laglab report` writes, with the views on screen.
    pub(super) fn report(
        &self,
        title: Option<&str>,
        panels: Vec<Panel>,
        cancellation: &Cancellation,
    ) -> Result<String, Refusal> {
        if panels.len() > MOST_VIEWS {
            return Err(Refusal::bad(format!(
                "a report has at most {MOST_VIEWS} views; close some"
            )));
        }
        let explorer = self.explorer()?;
        let views = panels
            .into_iter()
            .map(|panel| ShownView::ask(&explorer, panel, cancellation.cancelled()));
        let views = views.collect::<Result<Vec<ShownView>, _>>()?;
        let explained = self.explained()?;
        Ok(report::page(
            &explorer,
            &explained,
            title,
            &views,
            cancellation.cancelled(),
        )?)
    }

    #[cfg(feature = "mcp")]
    pub(super) fn for_assistants(&self) -> mcp::Opening {
        mcp::Opening {
            name: self.name.clone(),
            store: Arc::clone(self.tables.store()),
            symbols: self.symbol_options.clone(),
        }
    }

    #[cfg(feature = "sql")]
    pub(super) fn as_named(&self) -> sql::NamedTrace {
        sql::NamedTrace {
            name: self.name.clone(),
            store: Arc::clone(self.tables.store()),
        }
    }
}

/// Adds the field `view` to each evidence of an explanation. The field contains the view that shows the rows
/// of the evidence. It is `null` if no view shows them. `json` is the explanation as JSON.
fn add_views(json: &mut Value, explanation: &Explanation, names: &Identities) {
    let add = |json: &mut Value, evidence: &[Evidence], during: Option<&Range<i64>>| {
        for (json, evidence) in items(json, "evidence").iter_mut().zip(evidence) {
            let around = during.map(|during| evidence.range_with_rows(during.clone()));
            let view = evidence.selection();
            let view = view.and_then(|rows| View::of_selection(rows, around, names));
            json["view"] = serde_json::to_value(view).unwrap_or_default();
        }
    };
    let add_to_all = |json: &mut [Value], verdicts: &[Verdict], during: Option<&Range<i64>>| {
        for (json, verdict) in json.iter_mut().zip(verdicts) {
            add(json, &verdict.evidence, during);
        }
    };
    let findings = items(json, "findings").iter_mut();
    for (json, finding) in findings.zip(&explanation.findings) {
        let during = finding.during.as_ref();
        add(json, &finding.evidence, during);
        add_to_all(items(json, "weighed"), &finding.weighed, during);
    }
    add_to_all(items(json, "theories"), &explanation.theories, None);
}

/// Returns the items of a list in a JSON object. Returns no items if the object has no such list.
fn items<'v>(value: &'v mut Value, name: &str) -> &'v mut [Value] {
    let list = value.get_mut(name).and_then(Value::as_array_mut);
    list.map_or(&mut [], Vec::as_mut_slice)
}

/// Runs long work on new threads. On the shared thread pool, this work would delay requests of views.
fn run_separately<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
