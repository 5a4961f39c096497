//! Who is answered: the page that this server gave out, in the browser of whoever started it.
//!
//! Any page of the web can send requests to this machine, and any name can be made to lead to it. So
//! an address holds a secret of this start, a request must name the host that it is for, browsers
//! must not call it another site's, and nothing of it may be framed, sniffed or read elsewhere.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::Refusal;

/// Sent with every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    // A trace is nobody else's business: nothing of it is kept by the browser.
    (header::CACHE_CONTROL, "no-store"),
];

/// Whom to answer.
#[derive(Debug)]
pub(super) struct Access {
    /// The secret of this start: 128 random bits in hexadecimal.
    token: String,
    /// The hosts that a request may be for.
    hosts: [String; 2],
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It is for another host.
    OtherHost,
    /// It comes from another site.
    OtherSite,
    /// It does not know the secret.
    Stranger,
    /// It is neither GET nor POST.
    Method,
    /// It posts something else than JSON.
    NoJson,
}

impl Access {
    /// # Errors
    /// If the system gives no random bits.
    pub(super) fn new(port: u16) -> io::Result<Access> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Access {
            token: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
            hosts: ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}")),
        })
    }

    /// The address of the page.
    pub(super) fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// The path of something below the page's.
    pub(super) fn path(&self, below: &str) -> String {
        format!("/{}/{below}", self.token)
    }

    fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let host = only(headers, &header::HOST).ok_or(Refused::OtherHost)?;
        let is_for_us = |host: &str| self.hosts.iter().any(|ours| ours == host);
        let named_in_uri = uri.authority().map(|authority| authority.as_str());
        if !is_for_us(host) || named_in_uri.is_some_and(|named| named != host) {
            return Err(Refused::OtherHost);
        }
        let is_ours = |origin: &HeaderValue| {
            let origin = origin.to_str().ok();
            origin.and_then(|origin| origin.strip_prefix("http://")) == Some(host)
        };
        // Typed in, opened by a program, or asked for by the page itself.
        let is_same_site = |site: &HeaderValue| site == "same-origin" || site == "none";
        if !headers.get_all(header::ORIGIN).iter().all(is_ours)
            || !headers.get_all("sec-fetch-site").iter().all(is_same_site)
        {
            return Err(Refused::OtherSite);
        }
        let first = uri.path().split('/').nth(1).unwrap_or_default();
        if !is_equal(first.as_bytes(), self.token.as_bytes()) {
            return Err(Refused::Stranger);
        }
        match *method {
            Method::GET => Ok(()),
            Method::POST if is_json(headers) => Ok(()),
            Method::POST => Err(Refused::NoJson),
            _ => Err(Refused::Method),
        }
    }
}

/// A header's value, if it is there once and is text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Pages of other sites may post forms and plain text without being asked, but no JSON.
fn is_json(headers: &HeaderMap) -> bool {
    only(headers, &header::CONTENT_TYPE).is_some_and(|text| {
        let kind = text.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// Whether they are equal, in a time that does not tell from where on they differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differing = |(a, b): (&u8, &u8)| a ^ b;
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .map(differing)
            .fold(0, |all, d| all | d)
            == 0
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            // Whoever guesses learns nothing.
            Refused::Stranger => StatusCode::NOT_FOUND.into_response(),
            Refused::OtherHost => Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this request is for another host; use the address that laglab printed",
            )
            .into_response(),
            Refused::OtherSite => Refusal::new(
                StatusCode::FORBIDDEN,
                "this request comes from another site; only laglab's own page is answered",
            )
            .into_response(),
            Refused::Method => {
                let allowed = [(header::ALLOW, "GET, POST")];
                let what = "requests are GET or POST";
                let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what);
                (allowed, refusal).into_response()
            }
            Refused::NoJson => Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "what is posted must be JSON: send it with `Content-Type: application/json`",
            )
            .into_response(),
        }
    }
}

/// The routes, behind these checks.
pub(super) fn guarded(routes: Router, access: Arc<Access>) -> Router {
    routes.layer(middleware::from_fn_with_state(access, guard))
}

async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let judged = access.judge(request.method(), request.uri(), request.headers());
    let mut response = match judged {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access {
            token: "0123456789abcdef".to_owned(),
            hosts: ["127.0.0.1:80".to_owned(), "localhost:80".to_owned()],
        }
    }

    /// What is said to a request with that path and these headers.
    fn judged(method: Method, path: &str, headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        access().judge(&method, &path.parse().unwrap(), &map)
    }

    const PAGE: &str = "/0123456789abcdef/";
    const HOST: (&str, &str) = ("host", "127.0.0.1:80");

    #[test]
    fn secrets_are_long_and_differ() {
        let [a, b] = [0, 0].map(|port| Access::new(port).unwrap().token);
        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
    }

    #[test]
    fn the_host_must_be_this_machine() {
        for host in ["127.0.0.1:80", "localhost:80"] {
            assert_eq!(judged(Method::GET, PAGE, &[("host", host)]), Ok(()));
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:81",
            "evil.example",
            "evil.example:80",
            "",
        ] {
            let said = judged(Method::GET, PAGE, &[("host", host)]);
            assert_eq!(said, Err(Refused::OtherHost), "{host}");
        }
        assert_eq!(judged(Method::GET, PAGE, &[]), Err(Refused::OtherHost));
        let twice = [HOST, ("host", "evil.example")];
        assert_eq!(judged(Method::GET, PAGE, &twice), Err(Refused::OtherHost));
        let absolute = format!("http://evil.example:80{PAGE}");
        assert_eq!(
            judged(Method::GET, &absolute, &[HOST]),
            Err(Refused::OtherHost)
        );
    }

    #[test]
    fn the_request_must_be_the_pages_own() {
        for (header, fine) in [
            ("origin", "http://127.0.0.1:80"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
        ] {
            assert_eq!(judged(Method::GET, PAGE, &[HOST, (header, fine)]), Ok(()));
        }
        for (header, foreign) in [
            ("origin", "http://evil.example"),
            ("origin", "http://localhost:80"),
            ("origin", "https://127.0.0.1:80"),
            ("origin", "http://127.0.0.1:81"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let said = judged(Method::GET, PAGE, &[HOST, (header, foreign)]);
            assert_eq!(said, Err(Refused::OtherSite), "{header}: {foreign}");
        }
    }

    #[test]
    fn strangers_learn_nothing() {
        for path in [
            "/",
            "/0123456789abcdeX/",
            "/0123456789abcdef0/",
            "/api/session",
            "//",
        ] {
            let said = judged(Method::GET, path, &[HOST]);
            assert_eq!(said, Err(Refused::Stranger), "{path}");
        }
        // Not even that their method is wrong.
        assert_eq!(judged(Method::PUT, "/", &[HOST]), Err(Refused::Stranger));
    }

    #[test]
    fn only_json_is_posted() {
        for (kind, said) in [
            ("application/json", Ok(())),
            ("Application/JSON; charset=utf-8", Ok(())),
            ("text/plain", Err(Refused::NoJson)),
            ("application/x-www-form-urlencoded", Err(Refused::NoJson)),
        ] {
            let headers = [HOST, ("content-type", kind)];
            assert_eq!(judged(Method::POST, PAGE, &headers), said, "{kind}");
        }
        assert_eq!(judged(Method::POST, PAGE, &[HOST]), Err(Refused::NoJson));
        assert_eq!(judged(Method::DELETE, PAGE, &[HOST]), Err(Refused::Method));
    }
}
