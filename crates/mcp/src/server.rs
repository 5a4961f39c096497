//! The server: requests of the protocol, and the threads that do their work.

use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "sql")]
use std::sync::Mutex;
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use session::SymbolOptions;
use tables::Cache;
use tokio::sync::Semaphore;

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::{Failure, Kind};
use crate::folders::{FolderError, Folders};
use crate::open_traces::{OpenTraces, Opening};
use crate::tools::{self, Session};
use crate::{definitions, prompts, resources};

/// Maximum number of calls that work at the same time. Calls that read no tables are limited separately.
const AT_ONCE: usize = 4;

/// Maximum time for which a call waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interval between checks of the time limit, and between reports of progress.
const PULSE: Duration = Duration::from_millis(100);

/// Time for which clients may keep lists of tools, prompts and resources, in milliseconds. These lists change only
/// if the program is replaced.
const TTL_MS: u64 = 3_600_000;

/// Server of the Model Context Protocol. Clones share the open traces.
#[derive(Clone)]
pub struct Server(Arc<ServerState>);

/// State that all requests share.
pub(crate) struct ServerState {
    pub(crate) folders: Folders,
    pub(crate) opened: OpenTraces,
    places: Arc<Semaphore>,
    quick_places: Arc<Semaphore>,
    /// Counters of running SQL queries, one for each session.
    #[cfg(feature = "sql")]
    queries: Mutex<Vec<sql::QueryCount>>,
}

impl ServerState {
    fn new(folders: Folders, opened: OpenTraces) -> ServerState {
        ServerState {
            folders,
            opened,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            quick_places: Arc::new(Semaphore::new(AT_ONCE)),
            #[cfg(feature = "sql")]
            queries: Mutex::default(),
        }
    }

    /// Adds the counter of running queries of another session.
    #[cfg(feature = "sql")]
    pub(crate) fn count_queries(&self, count: sql::QueryCount) {
        self.queries().push(count);
    }

    /// Waits until there is a place for a query. A cancelled query keeps its place until its threads have ended.
    #[cfg(feature = "sql")]
    pub(crate) fn wait_for_queries(&self, call: &Call) -> Result<(), Failure> {
        let begun = std::time::Instant::now();
        loop {
            let running: usize = self.queries().iter().map(sql::QueryCount::get).sum();
            if running < AT_ONCE {
                return Ok(());
            }
            if call.flag().load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Failure::cancelled());
            }
            if begun.elapsed() > PATIENCE {
                return Err(Failure::busy());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[cfg(feature = "sql")]
    fn queries(&self) -> std::sync::MutexGuard<'_, Vec<sql::QueryCount>> {
        let queries = self.queries.lock();
        queries.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn for_tests(folder: &std::path::Path) -> ServerState {
        let folders = Folders::new(&[folder.to_owned()]).unwrap();
        ServerState::new(
            folders,
            OpenTraces::new(Cache::Off, SymbolOptions::default()),
        )
    }
}

impl Server {
    /// Creates a server for the traces in folders.
    pub fn new(
        folders: &[PathBuf],
        cache: Cache,
        symbols: SymbolOptions,
    ) -> Result<Server, FolderError> {
        let folders = Folders::new(folders)?;
        let opened = OpenTraces::new(cache, symbols);
        Ok(Server(Arc::new(ServerState::new(folders, opened))))
    }

    /// Creates a server for traces that are already open. This server opens no files.
    pub fn of_open(open: impl IntoIterator<Item = Opening>) -> Server {
        let (opened, files) = OpenTraces::of_open(open);
        Server(Arc::new(ServerState::new(Folders::of_open(files), opened)))
    }

    /// Runs work on a blocking thread, and reports the progress of the work. Cancels the work if the client cancels the
    /// request or the time limit is over.
    async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        is_quick: bool,
        work: impl FnOnce(&ServerState, &Arc<Call>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let call = Arc::new(Call::default());
        let _guard = CancelOnDrop(Arc::clone(&call));
        let places = Arc::clone(if is_quick {
            &self.0.quick_places
        } else {
            &self.0.places
        });
        let place = tokio::select! {
            place = tokio::time::timeout(PATIENCE, places.acquire_owned()) => place,
            () = context.ct.cancelled() => return Err(Failure::cancelled()),
        };
        let place = place.map_err(|_| Failure::busy())?;
        let place = place.map_err(|_| Failure::defect())?;
        let (shared, of_work) = (Arc::clone(&self.0), Arc::clone(&call));
        let mut task = tokio::task::spawn_blocking(move || {
            // Cancelled work keeps its place until it ends.
            let _place = place;
            work(&shared, &of_work)
        });
        let token = context.meta.get_progress_token();
        let mut pulse = tokio::time::interval(PULSE);
        let mut reported = 0.0;
        loop {
            tokio::select! {
                done = &mut task => {
                    let result = done.unwrap_or_else(|_| Err(Failure::defect()));
                    return match result {
                        Err(_) if call.is_late() => Err(Failure::new(
                            Kind::TooLarge,
                            "the query took longer than 30 s; narrow its time range or its conditions",
                        )),
                        result => result,
                    };
                }
                () = context.ct.cancelled() => return Err(Failure::cancelled()),
                _ = pulse.tick() => call.check_time(),
            }
            let progress = call.progress();
            if let (Some(token), Some((done, total))) = (&token, progress) {
                let done = done as f64;
                if done > reported {
                    reported = done;
                    let progress = ProgressNotificationParam::new(token.clone(), done);
                    let progress = progress
                        .with_total(total as f64)
                        .with_message("reading the trace");
                    // The client may have disconnected already, so an error is ignored.
                    let _ = context.peer.notify_progress(progress).await;
                }
            }
        }
    }
}

/// Guard that cancels the work when its request ends, for example because the connection is closed.
struct CancelOnDrop(Arc<Call>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Returns the result of a tool. The text and the structured content are the same JSON.
fn result(answer: Result<Answer, Failure>) -> CallToolResult {
    match answer {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = Some(answer.value);
            result
        }
        Err(failure) => {
            let text = serde_json::to_string(&failure).unwrap_or_default();
            let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
            result.structured_content = serde_json::to_value(&failure).ok();
            result
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .build();
        let own = Implementation::new("laglab", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(definitions::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let list = ListToolsResult::with_all_items(definitions::TOOLS.clone());
        Ok(list
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        definitions::TOOLS
            .iter()
            .find(|tool| tool.name == name)
            .cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        if self.get_tool(&name).is_none() {
            let message = "unknown tool; tools/list names the tools";
            return Err(ErrorData::invalid_params(message, None));
        }
        let is_quick = matches!(&*name, "traces" | "schema");
        let answer = self.run(&context, is_quick, move |server, call| {
            let session = Session { server, call };
            tools::run(&session, &name, request.arguments).ok_or_else(Failure::defect)?
        });
        Ok(result(answer.await).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list = ListResourcesResult::with_all_items(resources::list());
        Ok(list
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = ListResourceTemplatesResult::with_all_items(resources::templates());
        Ok(list
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let is_quick = !uri.starts_with("laglab://trace/");
        let content = self.run(&context, is_quick, move |server, call| {
            resources::read(server, call, &uri).transpose()
        });
        let no_resource = || {
            let message =
                "there is no such resource; resources/list and the answers of tools name addresses";
            ErrorData::resource_not_found(message, None)
        };
        match content.await {
            Ok(Some(content)) => {
                let text = ResourceContents::text(content.text, request.uri);
                let text = text.with_mime_type(content.mime_type);
                let result = ReadResourceResult::new(vec![text]);
                // Content of traces is private, so clients must not cache it or share it with other users.
                Ok(result
                    .with_ttl_ms(0)
                    .with_cache_scope(CacheScope::Private)
                    .into())
            }
            Ok(None) => Err(no_resource()),
            Err(failure) if failure.kind == Kind::Unknown => Err(no_resource()),
            Err(failure) => {
                let data = serde_json::to_value(&failure).ok();
                let message = format!("the resource cannot be read: {}", failure.message());
                Err(ErrorData::internal_error(message, data))
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let list = ListPromptsResult::with_all_items(prompts::list());
        Ok(list
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompts::get(&request.name, request.arguments.as_ref());
        prompt.map(Into::into).map_err(|failure| {
            let data = serde_json::to_value(&failure).ok();
            ErrorData::invalid_params(failure.message().to_owned(), data)
        })
    }
}
