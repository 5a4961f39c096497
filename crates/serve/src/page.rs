//! Files of the page, embedded in the program.

use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rust_embed::Embed;

use crate::Refusal;

/// Files of the folder `ui/dist`. Release builds embed them. Development builds read them at run time.
#[derive(Embed)]
#[folder = "../../ui/dist"]
struct Files;

/// Page that is shown if the program was built without `ui/dist`.
const PLACEHOLDER: &str = include_str!("placeholder.html");

const INDEX: &str = "index.html";

/// Returns the main HTML file of the page, or the placeholder.
pub(super) async fn index() -> Response {
    match Files::get(INDEX) {
        Some(page) => ([(header::CONTENT_TYPE, kind(INDEX))], page.data).into_response(),
        None => ([(header::CONTENT_TYPE, kind(INDEX))], PLACEHOLDER).into_response(),
    }
}

/// Returns a file of the page. The path of the request is the secret, followed by the name of the file.
pub(super) async fn file(request: Request) -> Response {
    let path = request.uri().path();
    let name = path.splitn(3, '/').nth(2).unwrap_or_default();
    // The name is only looked up in the list of files. It never becomes part of a path on disk.
    let file = Files::iter().find(|file| file == name);
    match file.and_then(|file| Files::get(&file)) {
        Some(file) => ([(header::CONTENT_TYPE, kind(name))], file.data).into_response(),
        None => Refusal::not_found("no such file").into_response(),
    }
}

/// Returns the media type for a file name.
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
