//! The page itself, which is part of the program.

use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rust_embed::Embed;

use super::Refusal;

/// The files of `ui/dist`. Builds for development read them when they are asked for, others hold
/// them.
#[derive(Embed)]
#[folder = "../../ui/dist"]
struct Files;

/// Shown by a program that was built without the page.
const PLACEHOLDER: &str = include_str!("placeholder.html");

const INDEX: &str = "index.html";

/// The page.
pub(super) async fn index() -> Response {
    match Files::get(INDEX) {
        Some(page) => ([(header::CONTENT_TYPE, kind(INDEX))], page.data).into_response(),
        None => ([(header::CONTENT_TYPE, kind(INDEX))], PLACEHOLDER).into_response(),
    }
}

/// A file of the page, by the path below the secret.
pub(super) async fn file(request: Request) -> Response {
    let path = request.uri().path();
    let name = path.splitn(3, '/').nth(2).unwrap_or_default();
    // Names are those of a list, and never parts of a path on the disk.
    let held = Files::iter().find(|held| held == name);
    match held.and_then(|held| Files::get(&held)) {
        Some(file) => ([(header::CONTENT_TYPE, kind(name))], file.data).into_response(),
        None => Refusal::not_found("there is nothing of that name here").into_response(),
    }
}

/// What a file is, by its name's ending.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("json" | "map") => "application/json",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
