//! Sessions, which prepare and run statements.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::catalog::MemTable;
use datafusion::common::TableReference;
use datafusion::common::format::ExplainFormat;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{
    AggregateUDF, CreateMemoryTable, DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF,
};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use tables::{Options, ScratchFolder, Table};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinHandle;

use crate::arithmetic::{CheckArithmetic, CheckedSum};
use crate::cancellation::{CancelFlag, with_cancellable_joins};
use crate::expansion;
use crate::functions::bounded::{self, BoundedFunction};
use crate::functions::of_tables::EvaluatedFunction;
use crate::functions::{self, Symbols};
use crate::large_stack::{STACK_BYTES, on_large_stack};
use crate::lookups::Lookups;
use crate::projections;
use crate::provider::Provider;
use crate::scan::CHUNKS_READ;
use crate::spills;
use crate::statement::{MAX_COLUMNS, MAX_COMPLEXITY, MAX_JOINED, MAX_TABLES, Statement};
use crate::time_range::TimeRange;
use crate::traces::{NamedTrace, Traces};
use crate::views::{VIEWS, View};
use crate::{Place, SqlError, parse};

/// Interval at which a running query checks for cancellation.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Memory limit of queries for sorting, grouping and joining, in bytes. Above the limit, a query
    /// continues on disk, or fails if this is impossible. The limit does not include the chunks that are being
    /// read, and the rows that are returned.
    pub memory_bytes: usize,
    /// Time range of tables of events. It applies to the column `time_ns` or `end_ns`, or to `start_ns` for
    /// measured samples. Tables of lifetimes and facts (processes, images, the trace itself) are not
    /// restricted.
    pub range: Option<RangeInclusive<i64>>,
    /// Names of functions at addresses, if symbols are available.
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

/// A session: traces that can be queried together.
pub struct Session {
    traces: Arc<Traces>,
    lookups: Arc<Lookups>,
    context: SessionContext,
    memory_bytes: usize,
    threads: NonZeroUsize,
    /// Runtime in which statements are planned.
    planner: Threads,
    /// Views that statements of this session created, by name.
    created: Mutex<BTreeMap<String, Size>>,
    queries: QueryCount,
    /// Temporary files of queries.
    _scratch: ScratchFolder,
}

/// Size of a statement or of the view that the statement creates. The size includes the views that the
/// statement uses.
struct Size {
    complexity: usize,
    /// Number of tables that the statement reads.
    tables: usize,
}

/// Number of running queries of a session. A cancelled query counts until its threads have ended, because a step of
/// the engine cannot be interrupted. Clones count the same queries.
#[derive(Clone, Debug, Default)]
pub struct QueryCount(Arc<AtomicUsize>);

impl QueryCount {
    /// Returns the number of running queries.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a counter of the threads of a new query. The query counts as running while it has threads.
    fn query(&self) -> QueryThreads {
        QueryThreads {
            count: self.clone(),
            threads: AtomicUsize::new(0),
        }
    }
}

/// Threads of one query.
struct QueryThreads {
    count: QueryCount,
    threads: AtomicUsize,
}

impl QueryThreads {
    fn begin(&self) {
        if self.threads.fetch_add(1, Ordering::AcqRel) == 0 {
            self.count.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end(&self) {
        if self.threads.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.count.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Runtime with the threads that run one query, or that plan all queries. After a cancellation, the threads may
/// continue for a long time before they stop.
struct Threads(Option<Runtime>);

impl Threads {
    /// Starts threads. `running` counts them.
    fn start(count: NonZeroUsize, running: QueryThreads) -> Result<Threads, SqlError> {
        let running = Arc::new(running);
        let ending = Arc::clone(&running);
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(count.get())
            .thread_name("sql")
            .thread_stack_size(STACK_BYTES)
            .on_thread_start(move || running.begin())
            .on_thread_stop(move || ending.end())
            .enable_time()
            .build();
        Ok(Threads(Some(runtime.map_err(SqlError::Setup)?)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("only `drop` takes it")
    }
}

impl Drop for Threads {
    /// Stops the threads without waiting for them.
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
    /// Creates a session with these traces.
    ///
    /// # Errors
    /// Returns an error if two traces have the same name, or if the query engine cannot be started.
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
        let planner = Threads(Some(planner.map_err(SqlError::Setup)?));
        let mut config = SessionConfig::new().with_target_partitions(threads.get());
        let parser = &mut config.options_mut().sql_parser;
        parser.collect_spans = true;
        // In descending order too, null values must not precede the largest values.
        parser.default_null_ordering = "nulls_last".to_owned();
        // Both optimizations use the number in LIMIT without a check, to reserve memory or in a calculation. A
        // large number would end the process.
        let optimizer = &mut config.options_mut().optimizer;
        optimizer.enable_topk_aggregation = false;
        optimizer.enable_window_limits = false;
        let pool = FairSpillPool::new(settings.memory_bytes);
        let pool = TrackConsumersPool::new(pool, const { NonZeroUsize::new(3).unwrap() });
        let scratch = ScratchFolder::new().map_err(SqlError::Setup)?;
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .with_disk_manager_builder(spills::within(&scratch))
            .build_arc()?;
        let context = with_safe_functions(SessionContext::new_with_config_rt(config, environment))?;
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
            created: Mutex::default(),
            queries: QueryCount::default(),
            _scratch: scratch,
        })
    }

    /// Builds the tables that a statement needs, in one pass, and plans the statement. If the statement
    /// creates or drops a view or table of the session, it is executed immediately.
    ///
    /// # Errors
    /// Returns an error if the statement is invalid or not allowed, or if a table cannot be built.
    pub fn prepare(
        &self,
        statement: &Statement,
        options: Options<'_>,
    ) -> Result<Query<'_>, SqlError> {
        let (needs, size) = on_large_stack(|| {
            let size = self.size(statement)?;
            let mut needs = Needs::default();
            self.collect(statement, &mut needs)?;
            Ok::<_, SqlError>((needs, size))
        })??;
        let tables: Vec<Table> = needs.tables.iter().copied().collect();
        self.traces.make(&tables, options)?;
        for table in &needs.lookups {
            self.lookups.load(*table)?;
        }
        let plan = on_large_stack(|| {
            self.planner
                .runtime()
                .block_on(self.plan(statement, &needs.views))
        })??;
        let plan = match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
                self.with_rows(create, &|| (options.progress)(0))?
            }
            other => other,
        };
        let (created, dropped) = match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateView(create)) => (Some(create.name.clone()), None),
            LogicalPlan::Ddl(DdlStatement::DropView(drop)) => (None, Some(drop.name.clone())),
            _ => (None, None),
        };
        let query = self.query(plan)?;
        if let Some(name) = created {
            self.created().insert(name.table().to_owned(), size);
        }
        if let Some(name) = dropped {
            self.created().remove(name.table());
        }
        Ok(query)
    }

    /// Returns the tables that a statement names, directly or through the views of this program. Tables in which its
    /// functions look up names are left out.
    ///
    /// # Errors
    /// Returns an error if the statement names an unknown table.
    pub fn tables_of(&self, statement: &Statement) -> Result<Vec<Table>, SqlError> {
        let mut needs = Needs::default();
        on_large_stack(|| self.collect(statement, &mut needs))??;
        Ok(needs.tables.difference(&needs.lookups).copied().collect())
    }

    /// Returns the count of the session's running queries.
    pub fn queries(&self) -> QueryCount {
        self.queries.clone()
    }

    fn created(&self) -> MutexGuard<'_, BTreeMap<String, Size>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the size of a statement.
    ///
    /// # Errors
    /// Returns an error if the statement is too large: the engine could not plan it in limited time and
    /// memory.
    fn size(&self, statement: &Statement) -> Result<Size, SqlError> {
        let created = self.created();
        let (tables, views) = statement.tables(&|name| created.get(name).map(|view| view.tables));
        let of_views = views.iter().filter_map(|view| created.get(view));
        let of_views: usize = of_views.map(|view| view.complexity).sum();
        let complexity = statement.complexity + of_views;
        if complexity > MAX_COMPLEXITY {
            return Err(SqlError::TooComplex { complexity });
        }
        let width = statement.width();
        if tables > MAX_TABLES {
            return Err(SqlError::TooManyTables);
        }
        if width.joined > MAX_JOINED {
            return Err(SqlError::TooManyJoins);
        }
        if width.columns > MAX_COLUMNS {
            return Err(SqlError::TooManyColumns);
        }
        Ok(Size { complexity, tables })
    }

    /// Plans a statement, after registering the views that it uses.
    async fn plan(
        &self,
        statement: &Statement,
        views: &[&'static View],
    ) -> Result<LogicalPlan, SqlError> {
        for view in views {
            self.register(view).await?;
        }
        let state = self.context.state();
        let plan = state.statement_to_plan(statement.ast().clone()).await;
        let plan = plan.map_err(SqlError::of_planning)?;
        allow(&plan)?;
        if let LogicalPlan::Explain(explain) = &plan
            && explain.explain_format == ExplainFormat::Tree
            && !explain.plan.display_indent().to_string().is_ascii()
        {
            return Err(SqlError::Tree);
        }
        if expansion::is_too_large(&plan) {
            return Err(SqlError::TooNested);
        }
        Ok(projections::kept(plan)?)
    }

    /// Plans the execution of a statement. If the statement creates or drops a table or view, executes the
    /// statement.
    fn query(&self, plan: LogicalPlan) -> Result<Query<'_>, SqlError> {
        let cancelled = CancelFlag::default();
        let execute = async || -> Result<_, SqlError> {
            let frame = self.context.execute_logical_plan(plan).await?;
            let (state, plan) = frame.into_parts();
            let plan = optimized(&state, &plan)?;
            check_constants(&plan)?;
            let planner = state.query_planner();
            let plan = planner.create_physical_plan(&plan, &state).await;
            // The optimizer has computed the constants of the plan, so an error message can contain values of the
            // tables.
            let plan = plan.map_err(SqlError::of_run)?;
            Ok(with_cancellable_joins(plan, &cancelled)?)
        };
        let planned = on_large_stack(|| self.planner.runtime().block_on(execute()))?;
        Ok(Query {
            session: self,
            plan: Some(planned.map_err(|error| error.with_limit(self.memory_bytes))?),
            cancelled,
        })
    }

    /// Runs the query of a `CREATE TABLE` statement, and replaces the query by its rows. DataFusion itself
    /// would neither limit the memory of the rows nor stop when the query is cancelled.
    fn with_rows(
        &self,
        mut create: CreateMemoryTable,
        go_on: &dyn Fn() -> bool,
    ) -> Result<LogicalPlan, SqlError> {
        // If the table exists, DataFusion keeps it and does not run the query.
        let exists = self.context.table_exist(create.name.clone())?;
        if exists && !create.or_replace {
            return Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)));
        }
        let query = self.query(Arc::unwrap_or_clone(create.input))?;
        let mut bytes = self.planner.runtime().block_on(self.created_bytes())?;
        let mut rows = Vec::new();
        for batch in query.batches(go_on)? {
            let batch = batch?;
            bytes += batch.get_array_memory_size();
            if bytes > self.memory_bytes {
                return Err(SqlError::Tables {
                    limit_mib: self.memory_bytes >> 20,
                });
            }
            rows.push(batch);
        }
        let table = MemTable::try_new(query.schema(), vec![rows])?;
        let rows = LogicalPlanBuilder::scan("rows", provider_as_source(Arc::new(table)), None)?;
        create.input = Arc::new(rows.build()?);
        Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)))
    }

    /// Returns the size in bytes of the tables that statements created.
    async fn created_bytes(&self) -> Result<usize, SqlError> {
        let schema = self.context.state().schema_for_ref("any")?;
        let mut bytes = 0;
        for name in schema.table_names() {
            let table = schema.table(&name).await?;
            let created = table
                .as_ref()
                .and_then(|table| table.downcast_ref::<MemTable>());
            for partition in created.iter().flat_map(|created| &created.batches) {
                let batches = partition.read().await;
                let sizes = batches.iter().map(RecordBatch::get_array_memory_size);
                bytes += sizes.sum::<usize>();
            }
        }
        Ok(bytes)
    }

    /// Returns the total size of the traces' files, in bytes. It is the maximum that [`Options::progress`]
    /// reports.
    pub fn size_bytes(&self) -> u64 {
        self.traces.size_bytes()
    }

    /// Returns the names of all functions: scalar, aggregate and window functions.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns names and types of the columns of a table or view.
    ///
    /// # Errors
    /// Returns an error if there is no table or view with this name.
    pub fn columns(&self, name: &str) -> Result<SchemaRef, SqlError> {
        self.planner.runtime().block_on(async {
            if let Some(view) = View::find(name) {
                self.register(view).await?;
            }
            match self.context.table_provider(name).await {
                Ok(table) => Ok(table.schema()),
                Err(_) => Err(unknown_table(name, None)),
            }
        })
    }

    /// Collects in `needs` all tables, names and views that a statement uses directly or through views.
    fn collect(&self, statement: &Statement, needs: &mut Needs) -> Result<(), SqlError> {
        let called = statement.called_functions();
        for about in functions::about() {
            if let Some(table) = about.looks_up
                && called.contains(about.name)
            {
                needs.tables.insert(table);
                needs.lookups.insert(table);
            }
        }
        let state = self.context.state();
        for reference in state.resolve_table_references(statement.ast())? {
            let name = reference.table();
            if let Ok(table) = name.parse() {
                needs.tables.insert(table);
            } else if let Some(view) = View::find(name) {
                if !needs.views.iter().any(|known| known.name == view.name) {
                    for part in parse(view.sql)? {
                        self.collect(&part, needs)?;
                    }
                    // A view is added after the views that it uses.
                    needs.views.push(view);
                }
            } else if !self.context.table_exist(TableReference::bare(name))?
                && !statement.creates_or_drops()
            {
                return Err(unknown_table(name, statement.place_of_table(name)));
            }
        }
        Ok(())
    }

    /// Registers a view, and the views that it uses, with DataFusion.
    async fn register(&self, view: &'static View) -> Result<(), SqlError> {
        if self.context.table_exist(view.name)? {
            return Ok(());
        }
        let state = self.context.state();
        for part in parse(view.sql)? {
            for reference in state.resolve_table_references(part.ast())? {
                if let Some(other) = View::find(reference.table()) {
                    Box::pin(self.register(other)).await?;
                }
            }
            let plan = self
                .context
                .state()
                .statement_to_plan(part.ast().clone())
                .await?;
            let frame = self.context.execute_logical_plan(plan).await?;
            let registered = self.context.register_table(view.name, frame.into_view());
            // Another thread may have registered the view since the check above.
            if let Err(error) = registered
                && !self.context.table_exist(view.name)?
            {
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Replaces functions and operators of DataFusion whose results are wrong on overflow or too large for the memory.
fn with_safe_functions(mut context: SessionContext) -> Result<SessionContext, SqlError> {
    let state = context.state();
    for name in bounded::NAMES {
        if let Some(function) = state.scalar_functions().get(*name) {
            context.register_udf(ScalarUDF::from(BoundedFunction::new(Arc::clone(function))));
        }
    }
    if let Some(sum) = state.aggregate_functions().get("sum") {
        context.register_udaf(AggregateUDF::from(CheckedSum::new(Arc::clone(sum))));
    }
    for (name, function) in state.table_functions() {
        context.register_udtf(name, Arc::new(EvaluatedFunction::new(Arc::clone(function))));
    }
    context.register_function_rewrite(Arc::new(CheckArithmetic::new()))?;
    Ok(context)
}

/// Tables, names and views that a statement needs.
#[derive(Default)]
struct Needs {
    tables: BTreeSet<Table>,
    lookups: BTreeSet<Table>,
    views: Vec<&'static View>,
}

fn unknown_table(name: &str, place: Option<Place>) -> SqlError {
    let tables = Table::ALL.iter().map(|table| table.name());
    let known = tables.chain(VIEWS.iter().map(|view| view.name));
    SqlError::unknown_table(name, place, known)
}

/// Optimizes a plan. The optimizer computes constants, such as `process(12)`, so its error messages can contain values
/// of the tables.
fn optimized(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan, SqlError> {
    state.optimize(plan).map_err(|error| {
        // The analyzer checks names and types before the optimizer runs, and computes no constants. So if the analyzer
        // finds the error, the message contains only words of the statement.
        let analyzer = state.analyzer();
        let analyzed = analyzer.execute_and_check(plan.clone(), state.config_options(), |_, _| {});
        match analyzed {
            Err(error) => SqlError::of_planning(error),
            Ok(_) => SqlError::of_run(error),
        }
    })
}

/// Maximum size of a constant, in bytes. DataFusion copies a selected constant into each of the 8,192 rows
/// of a batch.
const MAX_CONSTANT_BYTES: usize = 32 << 10;

/// Fails if a plan contains a constant that is too large.
fn check_constants(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut largest = 0;
    // Subqueries are checked too. The closures never fail.
    let _ = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::Literal(value, _) = part {
                    largest = largest.max(value.size());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    if largest > MAX_CONSTANT_BYTES {
        return Err(SqlError::Constant { bytes: largest });
    }
    Ok(())
}

/// Fails if a plan changes anything except views and tables of the session.
fn allow(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    // In an `EXPLAIN ANALYZE`, the nodes include the nodes of the explained statement. The closure never
    // fails.
    let _ = plan.apply(|node| {
        refused = forbidden_change(node);
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

/// Returns the name of the operation if a node changes anything except views and tables of the session.
fn forbidden_change(node: &LogicalPlan) -> Option<String> {
    match node {
        LogicalPlan::Ddl(ddl) => {
            let (what, name) = match ddl {
                DdlStatement::CreateView(create) => ("CREATE VIEW", &create.name),
                DdlStatement::CreateMemoryTable(create) => ("CREATE TABLE", &create.name),
                DdlStatement::DropView(drop) => ("DROP VIEW", &drop.name),
                DdlStatement::DropTable(drop) => ("DROP TABLE", &drop.name),
                other => return Some(keywords(other.name())),
            };
            let name = name.table();
            let is_ours = name.parse::<Table>().is_ok() || View::find(name).is_some();
            is_ours.then(|| format!("{what} of `{name}`"))
        }
        LogicalPlan::Dml(dml) => Some(keywords(dml.op.name())),
        LogicalPlan::Copy(_) => Some("COPY".to_owned()),
        LogicalPlan::Statement(statement) => Some(keywords(statement.name())),
        _ => None,
    }
}

/// Converts the engine's name of an operation to words of SQL: `CreateIndex` becomes `CREATE INDEX`.
fn keywords(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        let starts_word = letter.is_ascii_uppercase() && !words.is_empty();
        if starts_word && !words.ends_with(' ') {
            words.push(' ');
        }
        words.push(letter.to_ascii_uppercase());
    }
    words
}

/// A prepared statement.
pub struct Query<'s> {
    session: &'s Session,
    /// Execution plan; `None` only while the query is dropped.
    plan: Option<Arc<dyn ExecutionPlan>>,
    cancelled: CancelFlag,
}

impl Drop for Query<'_> {
    /// Drops the plan on a large stack, because dropping nested plans is recursive.
    fn drop(&mut self) {
        let plan = self.plan.take();
        // If the thread cannot be started, the plan is dropped on the current thread.
        let _ = on_large_stack(move || drop(plan));
    }
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}

impl Query<'_> {
    fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        self.plan.as_ref().expect("present until dropped")
    }

    /// Returns the columns of the result.
    pub fn schema(&self) -> SchemaRef {
        self.plan().schema()
    }

    /// Runs the query and returns its rows as soon as they are found. The caller can cancel the query in two
    /// ways: by dropping the iterator, or by returning false from `go_on`. `go_on` is called every 50 ms.
    ///
    /// # Errors
    /// Returns an error if the query cannot be started.
    pub fn batches<'q>(&'q self, go_on: &'q dyn Fn() -> bool) -> Result<Batches<'q>, SqlError> {
        let running = self.session.queries.query();
        let threads = Threads::start(self.session.threads, running)?;
        let context = self.session.context.task_ctx();
        let mut stream = {
            let plan = Arc::clone(self.plan());
            let runtime = threads.runtime();
            on_large_stack(move || {
                let _inside = runtime.enter();
                execute_stream(plan, context)
            })?
            .map_err(SqlError::of_run)?
        };
        // A step of the query can take long and occupy all threads of the runtime, including the thread of its timers.
        // The caller therefore waits outside of the runtime.
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
            running: Some(RunningQuery {
                batches: take,
                task,
                threads,
                cancelled: self.cancelled.clone(),
            }),
            go_on,
        })
    }

    /// Returns the number of chunks that the query has read.
    pub fn chunks_read(&self) -> usize {
        let mut chunks = 0;
        // The closure never fails.
        let _ = self.plan().apply(|node| {
            let metrics = node.metrics();
            let read = metrics.and_then(|metrics| metrics.sum_by_name(CHUNKS_READ));
            chunks += read.map_or(0, |read| read.as_usize());
            Ok(TreeNodeRecursion::Continue)
        });
        chunks
    }
}

/// Iterator over the rows of a query's result.
pub struct Batches<'q> {
    session: &'q Session,
    running: Option<RunningQuery>,
    go_on: &'q dyn Fn() -> bool,
}

/// A running query. Dropping it cancels the query.
struct RunningQuery {
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    task: JoinHandle<()>,
    threads: Threads,
    cancelled: CancelFlag,
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        self.cancelled.set();
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
            match running.batches.recv_timeout(CHECK_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Ok(batch)) if batch.num_rows() == 0 => {}
                Ok(Ok(batch)) => return Some(Ok(batch)),
                Ok(Err(error)) => {
                    let error = SqlError::of_run(error);
                    break Some(Err(error.with_limit(self.session.memory_bytes)));
                }
                // The channel is also closed if the query panicked. The result is then incomplete.
                Err(RecvTimeoutError::Disconnected) => {
                    match running.threads.runtime().block_on(&mut running.task) {
                        Err(error) if error.is_panic() => break Some(Err(SqlError::Engine)),
                        _ => break None,
                    }
                }
            }
        };
        self.running = None;
        end
    }
}
