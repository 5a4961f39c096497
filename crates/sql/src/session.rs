//! Questions and their answers.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use tables::{Options, Table};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinHandle;

use crate::functions::{self, Symbols};
use crate::lookups::Lookups;
use crate::provider::Provider;
use crate::scan::CHUNKS_READ;
use crate::statement::Statement;
use crate::time_range::TimeRange;
use crate::traces::{NamedTrace, Traces};
use crate::views::{VIEWS, View};
use crate::{SqlError, parse};

/// How often a running query is asked whether it shall go on.
const PULSE: Duration = Duration::from_millis(50);

/// How a session answers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory that queries may have for sorting, grouping and joining before they go on on disk,
    /// or fail where that is not possible. Chunks being read and rows being given are not in it.
    pub memory_bytes: usize,
    /// The times that tables of what happened are restricted to, by their column `time_ns`, `end_ns`
    /// or, of what was measured, `start_ns`. Tables of what lasts (processes, images, the trace itself) are whole.
    pub range: Option<RangeInclusive<i64>>,
    /// Names of addresses.
    pub symbols: Option<Arc<dyn Symbols>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory_bytes: 2 << 30,
            range: None,
            symbols: None,
        }
    }
}

/// Traces to ask questions about.
pub struct Session {
    traces: Arc<Traces>,
    lookups: Arc<Lookups>,
    context: SessionContext,
    memory_bytes: usize,
    threads: NonZeroUsize,
    /// Where statements are planned.
    planner: Runtime,
}

/// The threads of one answer: those of one that was stopped may not look up for long.
struct Threads(Option<Runtime>);

impl Threads {
    fn start(count: NonZeroUsize) -> Result<Threads, SqlError> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(count.get())
            .thread_name("sql")
            .enable_time()
            .build();
        Ok(Threads(Some(runtime.map_err(SqlError::Setup)?)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("taken when dropped only")
    }
}

impl Drop for Threads {
    /// Waits for nobody.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("traces", &self.traces)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session about these traces.
    ///
    /// # Errors
    /// If two have one name, or threads cannot be started.
    pub fn new(traces: Vec<NamedTrace>, settings: Settings) -> Result<Session, SqlError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = traces.iter().find(|trace| !names.insert(&trace.name)) {
            return Err(SqlError::SameName(twice.name.clone()));
        }
        let traces = Arc::new(Traces::new(traces));
        let lookups = Arc::new(Lookups::new(Arc::clone(&traces)));
        let threads =
            std::thread::available_parallelism().unwrap_or(const { NonZeroUsize::new(2).unwrap() });
        let planner = runtime::Builder::new_current_thread().enable_time().build();
        let planner = planner.map_err(SqlError::Setup)?;
        let mut config = SessionConfig::new().with_target_partitions(threads.get());
        let parser = &mut config.options_mut().sql_parser;
        parser.collect_spans = true;
        // What is unknown is never the longest wait.
        parser.default_null_ordering = "nulls_last".to_owned();
        let pool = FairSpillPool::new(settings.memory_bytes);
        let pool = TrackConsumersPool::new(pool, const { NonZeroUsize::new(3).unwrap() });
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .build_arc()?;
        let context = SessionContext::new_with_config_rt(config, environment);
        for function in functions::functions(&traces, &lookups, settings.symbols.as_ref()) {
            context.register_udf(function);
        }
        let range = settings.range.map_or(TimeRange::ALL, |range| TimeRange {
            first: *range.start(),
            last: *range.end(),
        });
        for table in Table::ALL {
            let provider = Provider::new(*table, Arc::clone(&traces), range);
            context.register_table(table.name(), Arc::new(provider))?;
        }
        Ok(Session {
            traces,
            lookups,
            context,
            memory_bytes: settings.memory_bytes,
            threads,
            planner,
        })
    }

    /// Makes the tables that a statement needs, together, and plans how to answer it. A statement
    /// that creates or drops a view or table of the session's own does so now.
    ///
    /// # Errors
    /// If the statement makes no sense or is not allowed, or a table cannot be made.
    pub fn prepare(
        &self,
        statement: &Statement,
        options: Options<'_>,
    ) -> Result<Query<'_>, SqlError> {
        let mut needs = Needs::default();
        self.collect(statement, &mut needs)?;
        let tables: Vec<Table> = needs.tables.iter().copied().collect();
        self.traces.make(&tables, options)?;
        for table in &needs.lookups {
            self.lookups.load(*table)?;
        }
        let planned = self.planner.block_on(async {
            for view in needs.views {
                self.register(view).await?;
            }
            let state = self.context.state();
            let plan = state.statement_to_plan(statement.ast.clone()).await?;
            allow(&plan)?;
            let frame = self.context.execute_logical_plan(plan).await?;
            Ok::<_, SqlError>(yielding(frame.create_physical_plan().await?)?)
        });
        Ok(Query {
            session: self,
            plan: planned.map_err(|error| error.with_limit(self.memory_bytes))?,
        })
    }

    /// Size of the traces' files, which [`Options::progress`] counts up to.
    pub fn size_bytes(&self) -> u64 {
        self.traces.size_bytes()
    }

    /// The names of all functions, aggregates included.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The columns of a table or view: names and types.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn columns(&self, name: &str) -> Result<SchemaRef, SqlError> {
        self.planner.block_on(async {
            if let Some(view) = View::find(name) {
                self.register(view).await?;
            }
            match self.context.table_provider(name).await {
                Ok(table) => Ok(table.schema()),
                Err(_) => Err(unknown_table(name)),
            }
        })
    }

    /// Finds what a statement needs, through all views.
    fn collect(&self, statement: &Statement, needs: &mut Needs) -> Result<(), SqlError> {
        for about in functions::about() {
            if let Some(table) = about.looks_up
                && statement.may_call(about.name)
            {
                needs.tables.insert(table);
                needs.lookups.insert(table);
            }
        }
        let state = self.context.state();
        for reference in state.resolve_table_references(&statement.ast)? {
            let name = reference.table();
            if let Ok(table) = name.parse() {
                needs.tables.insert(table);
            } else if let Some(view) = View::find(name) {
                if !needs.views.iter().any(|known| known.name == view.name) {
                    for part in parse(view.sql)? {
                        self.collect(&part, needs)?;
                    }
                    // After those that it builds on.
                    needs.views.push(view);
                }
            } else if !self.context.table_exist(TableReference::bare(name))?
                && !is_created(statement)
            {
                return Err(unknown_table(name));
            }
        }
        Ok(())
    }

    /// Makes a view known to the engine.
    async fn register(&self, view: &'static View) -> Result<(), SqlError> {
        if self.context.table_exist(view.name)? {
            return Ok(());
        }
        let state = self.context.state();
        for part in parse(view.sql)? {
            for reference in state.resolve_table_references(&part.ast)? {
                if let Some(other) = View::find(reference.table()) {
                    Box::pin(self.register(other)).await?;
                }
            }
            let plan = self.context.state().statement_to_plan(part.ast).await?;
            let frame = self.context.execute_logical_plan(plan).await?;
            self.context.register_table(view.name, frame.into_view())?;
        }
        Ok(())
    }
}

/// What must be there before a statement can be planned.
#[derive(Default)]
struct Needs {
    tables: BTreeSet<Table>,
    lookups: BTreeSet<Table>,
    views: Vec<&'static View>,
}

fn unknown_table(name: &str) -> SqlError {
    let tables = Table::ALL.iter().map(|table| table.name());
    SqlError::unknown_table(name, tables.chain(VIEWS.iter().map(|view| view.name)))
}

/// Whether the statement names a table that need not be there yet.
fn is_created(statement: &Statement) -> bool {
    let text = statement.to_string();
    text.starts_with("CREATE") || text.starts_with("DROP")
}

/// The plan with joins that let go of their thread now and then, as reading does by itself: one that
/// makes billions of rows of few reads nothing for long, and could not be stopped meanwhile. One that
/// finds no rows for long makes none to let go at.
fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let wrapped = plan.transform_up(|node| {
        Ok(match node.name().ends_with("JoinExec") {
            true => {
                Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>)
            }
            false => Transformed::no(node),
        })
    });
    Ok(wrapped?.data)
}

/// Refuses plans that touch anything but the session's own views and tables.
fn allow(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    // Also what is below an EXPLAIN ANALYZE; the closure does not fail.
    let _ = plan.apply(|node| {
        refused = change(node);
        Ok(match refused {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    });
    match refused {
        Some(what) => Err(SqlError::ReadOnly { what }),
        None => Ok(()),
    }
}

/// What a node would change, if that is not the session's own.
fn change(node: &LogicalPlan) -> Option<String> {
    match node {
        LogicalPlan::Ddl(ddl) => {
            let name = match ddl {
                DdlStatement::CreateView(create) => &create.name,
                DdlStatement::CreateMemoryTable(create) => &create.name,
                DdlStatement::DropView(drop) => &drop.name,
                DdlStatement::DropTable(drop) => &drop.name,
                other => return Some(other.name().to_owned()),
            };
            let name = name.table();
            let is_ours = name.parse::<Table>().is_ok() || View::find(name).is_some();
            is_ours.then(|| format!("{} of `{name}`", ddl.name()))
        }
        LogicalPlan::Dml(dml) => Some(dml.op.to_string()),
        LogicalPlan::Copy(_) => Some("COPY".to_owned()),
        LogicalPlan::Statement(statement) => Some(statement.name().to_owned()),
        _ => None,
    }
}

/// A statement that can be answered.
pub struct Query<'s> {
    session: &'s Session,
    plan: Arc<dyn ExecutionPlan>,
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}

impl Query<'_> {
    /// The columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Runs the query, whose rows come as they are found. It stops when the iterator is dropped,
    /// or when `go_on`, asked every few hundredths of a second, says no.
    ///
    /// # Errors
    /// If it cannot begin.
    pub fn batches<'q>(&'q self, go_on: &'q dyn Fn() -> bool) -> Result<Batches<'q>, SqlError> {
        let threads = Threads::start(self.session.threads)?;
        let context = self.session.context.task_ctx();
        let mut stream = {
            let _inside = threads.runtime().enter();
            execute_stream(Arc::clone(&self.plan), context)?
        };
        // One step may take longer than a user waits, and there may be one on each of the threads, one
        // of which keeps their clock: so the caller waits outside of them.
        let (give, take) = mpsc::sync_channel(1);
        let task = threads.runtime().spawn(async move {
            while let Some(batch) = stream.next().await {
                if give.send(batch).is_err() {
                    break;
                }
            }
        });
        Ok(Batches {
            session: self.session,
            running: Some(Running {
                batches: take,
                task,
                threads,
            }),
            go_on,
        })
    }

    /// How many chunks of tables were read for the answer so far.
    pub fn chunks_read(&self) -> usize {
        let mut chunks = 0;
        // The closure does not fail.
        let _ = self.plan.apply(|node| {
            let metrics = node.metrics();
            let read = metrics.and_then(|metrics| metrics.sum_by_name(CHUNKS_READ));
            chunks += read.map_or(0, |read| read.as_usize());
            Ok(TreeNodeRecursion::Continue)
        });
        chunks
    }
}

/// The rows of an answer.
pub struct Batches<'q> {
    session: &'q Session,
    running: Option<Running>,
    go_on: &'q dyn Fn() -> bool,
}

/// A query under way; it is stopped when this is dropped.
struct Running {
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    task: JoinHandle<()>,
    threads: Threads,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Batches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch, SqlError>;

    fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        let running = self.running.as_mut()?;
        let end = loop {
            if !(self.go_on)() {
                break Some(Err(SqlError::Cancelled));
            }
            match running.batches.recv_timeout(PULSE) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Ok(batch)) if batch.num_rows() == 0 => {}
                Ok(Ok(batch)) => return Some(Ok(batch)),
                Ok(Err(error)) => {
                    let error = SqlError::from(error);
                    break Some(Err(error.with_limit(self.session.memory_bytes)));
                }
                // A step that panics ends the rows too, and must not pass for the end of the answer.
                Err(RecvTimeoutError::Disconnected) => {
                    match running.threads.runtime().block_on(&mut running.task) {
                        Err(error) if error.is_panic() => {
                            let what = "the engine stopped in the midst of the answer".to_owned();
                            break Some(Err(DataFusionError::Internal(what).into()));
                        }
                        _ => break None,
                    }
                }
            }
        };
        self.running = None;
        end
    }
}
