//! Routes of all requests, and the answers to requests under `api/`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use report::Panel;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::access::Access;
use crate::progress::TaskProgress;
use crate::traces::{ServedTrace, TraceFacts};
use crate::work::{self, Cancellation};
use crate::{Refusal, ServerState, body, page};

type Answer = Result<Response, Refusal>;

/// Returns all routes of the server. Their paths start with the secret.
pub(super) fn router(access: &Access, shared: Arc<ServerState>) -> Router {
    let at = |path: &str| access.path(path);
    let of_trace = |what: &str| access.path(&format!("api/traces/{{id}}/{what}"));
    let (whole, without_slash) = (at(""), at("").trim_end_matches('/').to_owned());
    let router = Router::new()
        .route(&whole, get(page::index))
        .route(
            &without_slash,
            get(async move || Redirect::permanent(&whole)),
        )
        .route(&at("{*file}"), get(page::file))
        .route(&at("api/session"), get(session))
        .route(&at("api/progress"), get(progress))
        .route(&at("api/presets"), get(own_presets).post(keep_presets))
        .route(&at("api/kept/{name}"), get(kept).post(keep))
        .route(&at("api/report"), post(report))
        .route(&at("api/comparison"), get(comparison))
        .route(&at("api/comparison/report"), get(comparison_report))
        .route(&of_trace("info"), get_cached(ServedTrace::info))
        .route(
            &of_trace("tables"),
            get_computed(|trace, _| Ok(trace.explorer()?.tables()?)),
        )
        .route(
            &of_trace("presets"),
            get_computed(|trace, _| Ok(trace.explorer()?.presets())),
        )
        .route(&of_trace("overview"), get_computed(ServedTrace::overview))
        .route(&of_trace("findings"), get_cached(ServedTrace::findings))
        .route(&of_trace("wait"), post_query(ServedTrace::wait));
    // Adds a route for each request of a view. The explorer of the trace has a method with the name of the request.
    macro_rules! explored {
        ($($what:ident)+) => {
            router$(.route(
                &of_trace(stringify!($what)),
                post_query(|trace, request, cancellation| {
                    Ok(trace.explorer()?.$what(&request, cancellation.cancelled())?)
                }),
            ))+
        };
    }
    let router = explored! { timeline pivot rows flame butterfly heat histogram lanes };
    #[cfg(feature = "sql")]
    let router = router
        .route(&at("api/sql"), post(sql))
        .route(&at("api/sql/catalogue"), get(sql_catalogue));
    #[cfg(not(feature = "sql"))]
    let router = router
        .route(&at("api/sql"), post(without_sql))
        .route(&at("api/sql/catalogue"), get(without_sql));
    #[cfg(feature = "mcp")]
    let router = router.route_service(&at("mcp"), mcp::http_service(shared.assistants.clone()));
    router
        .method_not_allowed_fallback(other_method)
        .with_state(shared)
}

/// Returns the route of a GET request whose answer is made on first use and then cached.
fn get_cached<A: Serialize + Send + Sync + 'static>(
    answer: fn(&ServedTrace) -> Result<Arc<A>, Refusal>,
) -> MethodRouter<Arc<ServerState>> {
    get(
        async move |State(shared): State<Arc<ServerState>>, Path(id): Path<String>| {
            let trace = shared.trace(&id)?;
            work::json(move |_| answer(&trace)).await
        },
    )
}

/// Returns the route of a GET request whose answer is computed for each request.
fn get_computed<A: Serialize + 'static>(
    answer: fn(&ServedTrace, &Cancellation) -> Result<A, Refusal>,
) -> MethodRouter<Arc<ServerState>> {
    get(
        async move |State(shared): State<Arc<ServerState>>, Path(id): Path<String>| {
            let trace = shared.trace(&id)?;
            work::json(move |cancellation| answer(&trace, cancellation)).await
        },
    )
}

/// Returns the route of a POST request with a question as JSON in its body.
fn post_query<Q: DeserializeOwned + Send + 'static, A: Serialize + 'static>(
    answer: fn(&ServedTrace, Q, &Cancellation) -> Result<A, Refusal>,
) -> MethodRouter<Arc<ServerState>> {
    post(
        async move |State(shared): State<Arc<ServerState>>,
                    Path(id): Path<String>,
                    request: Request| {
            let trace = shared.trace(&id)?;
            let question: Q = body::read(request).await?;
            work::json(move |cancellation| answer(&trace, question, cancellation)).await
        },
    )
}

async fn other_method() -> Refusal {
    Refusal::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        "wrong method; use POST instead of GET, or GET instead of POST",
    )
}

/// Open traces and features of this server.
#[derive(Serialize, TS)]
pub(super) struct Session {
    version: &'static str,
    /// True if the server can run SQL queries.
    sql: bool,
    /// True if the page compares the first trace with the second one.
    comparison: bool,
    /// View with which the page starts: the content of the file of `--view`; `None` if the user named none.
    #[ts(type = "unknown")]
    view: Option<serde_json::Value>,
    traces: Vec<TraceFacts>,
}

async fn session(State(shared): State<Arc<ServerState>>) -> Answer {
    work::json(move |_| {
        let traces = shared.traces.iter().enumerate();
        let traces: Result<Vec<TraceFacts>, Refusal> =
            traces.map(|(id, trace)| trace.facts(id)).collect();
        Ok(Session {
            version: env!("CARGO_PKG_VERSION"),
            sql: cfg!(feature = "sql"),
            comparison: shared.compared.is_some(),
            view: shared.view.clone(),
            traces: traces?,
        })
    })
    .await
}

/// Progress of long work. `phase` is `null` if no work is in progress.
#[derive(Serialize, TS)]
pub(super) struct Progress {
    phase: Option<&'static str>,
    done: u64,
    of: u64,
}

async fn progress(State(shared): State<Arc<ServerState>>) -> Answer {
    // This request reports the progress of long work. It is therefore answered at once, not queued behind this work.
    let reached: Vec<TaskProgress> = shared.traces.iter().filter_map(|t| t.reached()).collect();
    let progress = Progress {
        phase: reached.first().map(|reached| reached.what),
        done: reached.iter().map(|reached| reached.done).sum(),
        of: reached.iter().map(|reached| reached.of).sum(),
    };
    let json = serde_json::to_vec(&progress).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

async fn own_presets(State(shared): State<Arc<ServerState>>) -> Answer {
    work::json(move |_| shared.presets.read()).await
}

async fn keep_presets(State(shared): State<Arc<ServerState>>, request: Request) -> Answer {
    let presets = body::read(request).await?;
    work::json(move |_| shared.presets.replace(presets)).await
}

async fn kept(State(shared): State<Arc<ServerState>>, Path(name): Path<String>) -> Answer {
    work::json(move |_| shared.kept.read(&name)).await
}

async fn keep(
    State(shared): State<Arc<ServerState>>,
    Path(name): Path<String>,
    request: Request,
) -> Answer {
    let document: serde_json::Value = body::read(request).await?;
    work::json(move |_| shared.kept.replace(&name, &document)).await
}

/// Request for an HTML report.
#[derive(Debug, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub(super) struct ReportRequest {
    trace: usize,
    /// Views on screen, which the report includes.
    #[serde(default)]
    #[ts(optional = nullable)]
    panels: Vec<Panel>,
    title: Option<String>,
}

async fn report(State(shared): State<Arc<ServerState>>, request: Request) -> Answer {
    let request: ReportRequest = body::read(request).await?;
    let trace = shared.trace(&request.trace.to_string())?;
    let page = work::run(move |cancellation| {
        trace.report(request.title.as_deref(), request.panels, cancellation)
    });
    Ok(html(page.await?))
}

async fn comparison(State(shared): State<Arc<ServerState>>) -> Answer {
    work::json(move |_| shared.compared()?.comparison()).await
}

async fn comparison_report(State(shared): State<Arc<ServerState>>) -> Answer {
    Ok(html(work::run(move |_| shared.compared()?.page()).await?))
}

/// Returns the response with an HTML page.
fn html(page: String) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

#[cfg(feature = "sql")]
async fn sql(State(shared): State<Arc<ServerState>>, request: Request) -> Answer {
    let question = body::read(request).await?;
    work::json(move |cancellation| shared.sql.answer(&question, cancellation)).await
}

#[cfg(feature = "sql")]
async fn sql_catalogue(State(shared): State<Arc<ServerState>>) -> Answer {
    work::json(move |_| shared.sql.catalogue()).await
}

#[cfg(not(feature = "sql"))]
async fn without_sql() -> Refusal {
    Refusal::new(
        axum::http::StatusCode::NOT_IMPLEMENTED,
        "this laglab was built without SQL; rebuild it with the feature `sql`",
    )
}
