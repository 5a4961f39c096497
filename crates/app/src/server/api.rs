//! Which request is whose: everything the page may ask, under `api/`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get, post};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::traces::{ServedTrace, TraceFacts};
use super::work::{self, Wanted};
use super::{Desk, Refusal, body, page};
use crate::html_report::Panel;
use crate::watch::Reached;

type Answer = Result<Response, Refusal>;

/// All routes, below the secret.
pub(super) fn router(access: &Access, desk: Arc<Desk>) -> Router {
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
        .route(&at("api/report"), post(report))
        .route(&of_trace("info"), known(ServedTrace::info))
        .route(
            &of_trace("tables"),
            looked_up(|trace, _| Ok(trace.explorer()?.tables()?)),
        )
        .route(
            &of_trace("presets"),
            looked_up(|trace, _| Ok(trace.explorer()?.presets())),
        )
        .route(&of_trace("overview"), looked_up(ServedTrace::overview))
        .route(&of_trace("findings"), known(ServedTrace::findings))
        .route(&of_trace("wait"), asked(ServedTrace::wait));
    // What a view asks is answered by the explorer of its trace.
    macro_rules! explored {
        ($($what:ident)+) => {
            router$(.route(
                &of_trace(stringify!($what)),
                asked(|trace, request, wanted| {
                    Ok(trace.explorer()?.$what(&request, wanted.cancelled())?)
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
    router
        .method_not_allowed_fallback(other_method)
        .with_state(desk)
}

/// What is known of a trace, made when it is first asked for.
fn known<A: Serialize + Send + Sync + 'static>(
    answer: fn(&ServedTrace) -> Result<Arc<A>, Refusal>,
) -> MethodRouter<Arc<Desk>> {
    get(
        async move |State(desk): State<Arc<Desk>>, Path(id): Path<String>| {
            let trace = desk.trace(&id)?;
            work::json(move |_| answer(&trace)).await
        },
    )
}

/// What is looked up in a trace.
fn looked_up<A: Serialize + 'static>(
    answer: fn(&ServedTrace, &Wanted) -> Result<A, Refusal>,
) -> MethodRouter<Arc<Desk>> {
    get(
        async move |State(desk): State<Arc<Desk>>, Path(id): Path<String>| {
            let trace = desk.trace(&id)?;
            work::json(move |wanted| answer(&trace, wanted)).await
        },
    )
}

/// What is asked of a trace.
fn asked<Q: DeserializeOwned + Send + 'static, A: Serialize + 'static>(
    answer: fn(&ServedTrace, Q, &Wanted) -> Result<A, Refusal>,
) -> MethodRouter<Arc<Desk>> {
    post(
        async move |State(desk): State<Arc<Desk>>, Path(id): Path<String>, request: Request| {
            let trace = desk.trace(&id)?;
            let question: Q = body::read(request).await?;
            work::json(move |wanted| answer(&trace, question, wanted)).await
        },
    )
}

async fn other_method() -> Refusal {
    Refusal::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        "this is asked with the other of GET and POST",
    )
}

/// What is open.
#[derive(Serialize)]
struct Session {
    version: &'static str,
    /// Whether SQL is answered.
    sql: bool,
    traces: Vec<TraceFacts>,
}

async fn session(State(desk): State<Arc<Desk>>) -> Answer {
    work::json(move |_| {
        let traces = desk.traces.iter().enumerate();
        let traces: Result<Vec<TraceFacts>, Refusal> =
            traces.map(|(id, trace)| trace.facts(id)).collect();
        Ok(Session {
            version: env!("CARGO_PKG_VERSION"),
            sql: cfg!(feature = "sql"),
            traces: traces?,
        })
    })
    .await
}

/// How far work is that takes long; `phase` is `null` where there is none.
#[derive(Serialize)]
struct Progress {
    phase: Option<&'static str>,
    done: u64,
    of: u64,
}

async fn progress(State(desk): State<Arc<Desk>>) -> Answer {
    // Not behind work that takes long, which it tells of.
    let reached: Vec<Reached> = desk.traces.iter().filter_map(|t| t.reached()).collect();
    let progress = Progress {
        phase: reached.first().map(|reached| reached.what),
        done: reached.iter().map(|reached| reached.done).sum(),
        of: reached.iter().map(|reached| reached.of).sum(),
    };
    let json = serde_json::to_vec(&progress).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

async fn own_presets(State(desk): State<Arc<Desk>>) -> Answer {
    work::json(move |_| desk.presets.read()).await
}

async fn keep_presets(State(desk): State<Arc<Desk>>, request: Request) -> Answer {
    let presets = body::read(request).await?;
    work::json(move |_| desk.presets.replace(presets)).await
}

/// What a report is made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportRequest {
    trace: usize,
    /// What is on screen.
    #[serde(default)]
    panels: Vec<Panel>,
    title: Option<String>,
}

async fn report(State(desk): State<Arc<Desk>>, request: Request) -> Answer {
    let asked: ReportRequest = body::read(request).await?;
    let trace = desk.trace(&asked.trace.to_string())?;
    let page = work::done(move |wanted| trace.report(asked.title.as_deref(), asked.panels, wanted));
    Ok((
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        page.await?,
    )
        .into_response())
}

#[cfg(feature = "sql")]
async fn sql(State(desk): State<Arc<Desk>>, request: Request) -> Answer {
    let question = body::read(request).await?;
    work::json(move |wanted| desk.sql.answer(&question, wanted)).await
}

#[cfg(feature = "sql")]
async fn sql_catalogue(State(desk): State<Arc<Desk>>) -> Answer {
    work::json(move |_| desk.sql.catalogue()).await
}

#[cfg(not(feature = "sql"))]
async fn without_sql() -> Refusal {
    Refusal::new(
        axum::http::StatusCode::NOT_IMPLEMENTED,
        "this laglab was built without SQL; build it with the feature `sql`",
    )
}
