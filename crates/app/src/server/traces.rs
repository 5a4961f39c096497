//! A trace that is looked at, and what was found out about it so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use explain::Asked;
use explain::story::{self, Story, Thread};
use explore::{Explorer, Preset};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tables::{Identities, Options, Table};

use super::lazily::Lazily;
use super::work::Wanted;
use super::{Refusal, evidence_views};
use crate::cli::{Explained, SEVERAL_SYSTEMS, TraceTables};
use crate::html_report::{self, Panel, ShownView};
use crate::info::Info;
use crate::symbolication::{SymbolOptions, Symbolication};
use crate::watch::{Progress, Reached, Watch};

/// Bytes of a trace that are read while the page waits: a tenth of a second.
const QUICKLY_READ: u64 = 256 << 20;

/// What the first graphs are drawn of. Making them takes a fifth of the time that all tables take,
/// since no stacks are joined with their rows.
const FIRST: [Table; 7] = [
    Table::Processes,
    Table::Threads,
    Table::Images,
    Table::Interrupts,
    Table::Focus,
    Table::Input,
    Table::ProcessFreezes,
];

/// Views that are shown in a report.
const MOST_VIEWS: usize = 32;

/// A trace that is looked at.
pub(crate) struct ServedTrace {
    name: String,
    tables: TraceTables,
    symbol_options: SymbolOptions,
    /// How far the work is that others wait for.
    progress: Arc<Progress>,
    /// Those tables are made, or cannot be made, that are made before anybody asks.
    tables_made: AtomicBool,
    info: Lazily<Info>,
    names: Lazily<Identities>,
    symbols: Lazily<Symbolication>,
    explorer: Lazily<Explorer>,
    explained: Lazily<Explained>,
    findings: Lazily<Value>,
}

/// What is said of a trace before anything of it is looked at.
#[derive(Serialize)]
pub(super) struct TraceFacts {
    id: usize,
    name: String,
    files: Vec<String>,
    /// A model of Windows made it; no machine was recorded.
    simulated: bool,
    /// Of a trace, which has events.
    windows: Option<String>,
    machine: Option<String>,
    cpu: Option<String>,
    cpus: Option<u32>,
    start_utc: Option<String>,
    /// From the first to the last event; while those are not read, as long as the session lasted.
    duration_ns: Option<i64>,
    /// From when to when that was.
    range: Option<[i64; 2]>,
    events: Option<u64>,
    size_bytes: Option<u64>,
    /// What to know before trusting what is shown.
    warnings: Vec<String>,
    /// Events were read. Until then only what headers say is known.
    complete: bool,
    /// The one table that its files fill, if they hold no events.
    only: Option<&'static str>,
}

/// The strip of small graphs.
#[derive(Serialize)]
pub(super) struct Overview {
    graphs: Vec<Preset>,
    /// Whether these are all. If not, more of the trace is being read: ask again.
    complete: bool,
}

/// A moment of a thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Moment {
    /// Row of the thread in `threads`.
    #[serde(default)]
    thread_row: Option<u32>,
    /// Its id, where its row is not known.
    #[serde(default)]
    thread_id: Option<u32>,
    /// When, in nanoseconds since the trace's start.
    at_ns: i64,
}

impl ServedTrace {
    /// A trace under that name.
    pub(crate) fn new(
        name: String,
        tables: TraceTables,
        symbol_options: SymbolOptions,
    ) -> ServedTrace {
        let progress = Arc::<Progress>::default();
        ServedTrace {
            name,
            tables: tables.with_progress(Arc::clone(&progress)),
            symbol_options,
            progress,
            tables_made: AtomicBool::new(false),
            info: Lazily::new(),
            names: Lazily::new(),
            symbols: Lazily::new(),
            explorer: Lazily::new(),
            explained: Lazily::new(),
            findings: Lazily::new(),
        }
    }

    /// Makes the tables that are sure to be asked for, first what is quickly made; what goes wrong is
    /// told to those who ask.
    pub(super) fn make_tables(&self) {
        let _ = self.tables.make_in_turn(&[&FIRST, &html_report::tables()]);
        self.tables_made.store(true, Ordering::Relaxed);
    }

    /// Finds out why it lagged, before somebody asks.
    pub(super) fn find(&self) {
        let _ = self.info();
        let _ = self.findings();
    }

    /// How far the work is that others wait for, if there is any.
    pub(super) fn reached(&self) -> Option<Reached> {
        let of_views = || {
            let progress = self.explorer.known()?.progress()?;
            Some(Reached {
                what: progress.phase,
                done: progress.done,
                of: progress.of,
            })
        };
        self.progress.reached().or_else(of_views)
    }

    /// What `laglab info` says.
    pub(super) fn info(&self) -> Result<Arc<Info>, Refusal> {
        self.info.get(|| {
            let trace = self.tables.store.trace();
            let watch = Watch::new("reading", trace.size_bytes());
            let watch = watch.told_to(Arc::clone(&self.progress));
            apart(|| Info::read(trace, &watch)).map_err(|_| Refusal::unwanted())
        })
    }

    pub(super) fn facts(&self, id: usize) -> Result<TraceFacts, Refusal> {
        let trace = self.tables.store.trace();
        let is_quick = trace.size_bytes() <= QUICKLY_READ || trace.header().is_none();
        let read = match is_quick {
            true => Some(self.info()?),
            false => self.info.known(),
        };
        let complete = read.is_some();
        let info = read.unwrap_or_else(|| Arc::new(Info::of_headers(trace)));
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
        warnings.extend(self.tables.store.warning().map(str::to_owned));
        let extent = &info.trace;
        let lasted = info
            .sessions
            .iter()
            .filter_map(|session| session.duration_ns);
        // What stands in the stead of a trace has a log of nothing but a header.
        let only = self.tables.store.holds_only();
        let is_read = complete && only.is_none();
        let range = match is_read {
            true => extent.first_event_ns.zip(extent.last_event_ns),
            false => lasted.max().map(|ns| (0, ns)),
        };
        Ok(TraceFacts {
            id,
            name: self.name.clone(),
            files: extent.files.clone(),
            simulated: info.is_simulated(),
            windows: only.is_none().then(|| system.windows()),
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

    /// Names of functions.
    pub(super) fn symbols(&self) -> Result<Arc<Symbolication>, Refusal> {
        self.symbols.get(|| {
            let images = &self.names()?.images;
            Ok(Symbolication::new(&self.symbol_options, images)?)
        })
    }

    /// Who answers what a view asks.
    pub(super) fn explorer(&self) -> Result<Arc<Explorer>, Refusal> {
        self.explorer.get(|| {
            let store = Arc::clone(&self.tables.store);
            let functions = self.symbols()?;
            Ok(Explorer::new(
                store,
                Some(functions),
                Explorer::MEMORY_BYTES,
            ))
        })
    }

    /// The strip of small graphs; while tables are being made those that can be drawn already.
    pub(super) fn overview(&self, wanted: &Wanted) -> Result<Overview, Refusal> {
        let complete = self.tables_made.load(Ordering::Relaxed);
        let explorer = self.explorer()?;
        let answer = match complete {
            true => explorer.overview(wanted.cancelled())?,
            false => explorer.overview_so_far()?,
        };
        let graphs = answer.graphs;
        Ok(Overview { graphs, complete })
    }

    /// Why it lagged.
    fn explained(&self) -> Result<Arc<Explained>, Refusal> {
        self.explained.get(|| {
            let (info, symbols) = (self.info()?, self.symbols()?);
            let asked = Asked::default();
            Ok(apart(|| {
                Explained::known(&self.tables, info, asked, &symbols)
            })?)
        })
    }

    /// Why it lagged, as `laglab explain --json` says it, with views of the evidence and what it
    /// comes to where nothing grave was found; and what runs are `doubtful`.
    pub(super) fn findings(&self) -> Result<Arc<Value>, Refusal> {
        self.findings.get(|| {
            let explained = self.explained()?;
            let findings = serde_json::to_value(&explained.explanation);
            let mut findings = findings.map_err(|error| Refusal::failed(error.to_string()))?;
            let names = self.names()?;
            let label = |key: &str, row: u32| match key {
                "module" => names.module_label(Some(row)).map(str::to_owned),
                _ => names.process_label(Some(row)),
            };
            let about = evidence_views::About {
                tables: &self.explorer()?.tables()?,
                names: &label,
            };
            evidence_views::add(&mut findings, about);
            findings["conclusion"] = explained.conclusion().into();
            let doubtful = &explained.explanation.survey.doubtful;
            findings["doubtful"] = json!({"runs": doubtful.runs, "cpu_ns": doubtful.cpu_ns});
            Ok(findings)
        })
    }

    /// What a thread did at a moment, and why.
    pub(super) fn wait(&self, moment: Moment, wanted: &Wanted) -> Result<Story, Refusal> {
        let explained = self.explained()?;
        let symbols = self.symbols()?;
        let progress = |_| wanted.still();
        let options = Options {
            progress: &progress,
        };
        let Some(id) = (match moment.thread_row {
            Some(row) => explained.explanation.names.thread_id(row),
            None => moment.thread_id,
        }) else {
            return Err(Refusal::bad(
                "no thread is named: give `thread_row` or `thread_id` of one in `threads`",
            ));
        };
        let thread = Thread {
            id,
            row: moment.thread_row,
        };
        let known = &explained.explanation;
        let store = &self.tables.store;
        let story = story::tell(store, known, thread, moment.at_ns, Some(&*symbols), options)?;
        story.ok_or_else(|| {
            Refusal::not_found(format!(
                "no run of thread {id} is known at that time or later: the trace may lack its \
                 context switches"
            ))
        })
    }

    /// The report of the trace, as `laglab report` writes it, with what is on screen.
    pub(super) fn report(
        &self,
        title: Option<&str>,
        panels: Vec<Panel>,
        wanted: &Wanted,
    ) -> Result<String, Refusal> {
        if panels.len() > MOST_VIEWS {
            return Err(Refusal::bad(format!(
                "a report shows at most {MOST_VIEWS} views; close some"
            )));
        }
        let explorer = self.explorer()?;
        let views = panels
            .into_iter()
            .map(|panel| ShownView::ask(&explorer, panel, wanted.cancelled()));
        let views = views.collect::<Result<Vec<ShownView>, _>>()?;
        let explained = self.explained()?;
        Ok(html_report::page(&self.tables, &explained, title, &views)?)
    }

    #[cfg(feature = "sql")]
    pub(super) fn as_named(&self) -> sql::NamedTrace {
        sql::NamedTrace {
            name: self.name.clone(),
            store: Arc::clone(&self.tables.store),
        }
    }
}

/// Does what takes long on threads of its own: on those that all share, what a view asks would wait
/// until it is done.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
