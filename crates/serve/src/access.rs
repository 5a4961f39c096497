//! Access checks: only the page of this server gets answers, and only for the user who started the server.
//!
//! Any web page can send requests to this machine, and any host name can resolve to it. Therefore
//! each address contains a secret that the server chooses at its start, and each request must name
//! this host. Requests that browsers mark as cross-site are rejected. Headers of the responses
//! forbid other sites to read them or to show them in frames, and forbid browsers to guess their
//! type.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::Refusal;
use crate::connections::PermitFlag;

/// Headers that the server adds to every response.
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
    // Traces are private, so the browser must not store responses.
    (header::CACHE_CONTROL, "no-store"),
];

/// Secret and hosts of this server.
#[derive(Debug)]
pub(super) struct Access {
    /// Secret that the server chose at its start: 128 random bits in hexadecimal.
    token: String,
    /// Hosts (name and port) that a request may name.
    hosts: [String; 2],
}

/// Reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalReason {
    /// The request is for another host.
    OtherHost,
    /// The request comes from another site.
    OtherSite,
    /// The address of the request lacks the secret.
    WrongSecret,
    /// The method is neither GET nor POST.
    Method,
    /// The body is not JSON.
    NoJson,
}

impl Access {
    /// Creates the secret and the list of hosts for a server on this port.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bits.
    pub(super) fn new(port: u16) -> io::Result<Access> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Access {
            token: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
            hosts: ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}")),
        })
    }

    /// Returns the address of the page.
    pub(super) fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }

    /// Returns the full path of a resource, given by its path below the page.
    pub(super) fn path(&self, below: &str) -> String {
        format!("/{}/{below}", self.token)
    }

    fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), RefusalReason> {
        let host = only(headers, &header::HOST).ok_or(RefusalReason::OtherHost)?;
        let is_for_us = |host: &str| self.hosts.iter().any(|ours| ours == host);
        let named_in_uri = uri.authority().map(|authority| authority.as_str());
        if !is_for_us(host) || named_in_uri.is_some_and(|named| named != host) {
            return Err(RefusalReason::OtherHost);
        }
        let is_ours = |origin: &HeaderValue| {
            let origin = origin.to_str().ok();
            origin.and_then(|origin| origin.strip_prefix("http://")) == Some(host)
        };
        // Browsers send `none` if the user typed the address or a program opened it. They send `same-origin` if the
        // page itself sent the request.
        let is_same_site = |site: &HeaderValue| site == "same-origin" || site == "none";
        if !headers.get_all(header::ORIGIN).iter().all(is_ours)
            || !headers.get_all("sec-fetch-site").iter().all(is_same_site)
        {
            return Err(RefusalReason::OtherSite);
        }
        let first = uri.path().split('/').nth(1).unwrap_or_default();
        if !is_equal(first.as_bytes(), self.token.as_bytes()) {
            return Err(RefusalReason::WrongSecret);
        }
        match *method {
            Method::GET => Ok(()),
            Method::POST if is_json(headers) => Ok(()),
            Method::POST => Err(RefusalReason::NoJson),
            _ => Err(RefusalReason::Method),
        }
    }
}

/// Returns the value of a header if the header occurs once and its value is text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns true if the content type is JSON. Browsers let pages of other sites post forms and plain
/// text at once. For JSON they first send a preflight request, which this server rejects.
fn is_json(headers: &HeaderMap) -> bool {
    only(headers, &header::CONTENT_TYPE).is_some_and(|text| {
        let kind = text.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// Compares two values. The time does not depend on the number of equal bytes, so it reveals no part of the secret.
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

impl IntoResponse for RefusalReason {
    fn into_response(self) -> Response {
        match self {
            // The response to a wrong secret must reveal nothing.
            RefusalReason::WrongSecret => StatusCode::NOT_FOUND.into_response(),
            RefusalReason::OtherHost => Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this request is for another host; use the address that laglab printed",
            )
            .into_response(),
            RefusalReason::OtherSite => Refusal::new(
                StatusCode::FORBIDDEN,
                "this request comes from another site; use laglab's own page",
            )
            .into_response(),
            RefusalReason::Method => {
                let allowed = [(header::ALLOW, "GET, POST")];
                let what = "only GET and POST are allowed";
                let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what);
                (allowed, refusal).into_response()
            }
            RefusalReason::NoJson => Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON; send it with `Content-Type: application/json`",
            )
            .into_response(),
        }
    }
}

/// Adds the access checks to all routes.
pub(super) fn guarded(routes: Router, access: Arc<Access>) -> Router {
    routes.layer(middleware::from_fn_with_state(access, guard))
}

async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let judged = access.judge(request.method(), request.uri(), request.headers());
    let mut response = match judged {
        Ok(()) => {
            if let Some(permitted) = request.extensions().get::<PermitFlag>() {
                permitted.set();
            }
            next.run(request).await
        }
        // A response fits into the buffers of a socket. A client that does not read the response therefore cannot keep
        // the connection open.
        Err(refused) => ([(header::CONNECTION, "close")], refused).into_response(),
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

    /// Returns the decision about a request with the given method, path and headers.
    fn judged(
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<(), RefusalReason> {
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
            assert_eq!(said, Err(RefusalReason::OtherHost), "{host}");
        }
        assert_eq!(
            judged(Method::GET, PAGE, &[]),
            Err(RefusalReason::OtherHost)
        );
        let twice = [HOST, ("host", "evil.example")];
        assert_eq!(
            judged(Method::GET, PAGE, &twice),
            Err(RefusalReason::OtherHost)
        );
        let absolute = format!("http://evil.example:80{PAGE}");
        assert_eq!(
            judged(Method::GET, &absolute, &[HOST]),
            Err(RefusalReason::OtherHost)
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
            assert_eq!(said, Err(RefusalReason::OtherSite), "{header}: {foreign}");
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
            assert_eq!(said, Err(RefusalReason::WrongSecret), "{path}");
        }
        // With a wrong secret, even a wrong method is not reported.
        assert_eq!(
            judged(Method::PUT, "/", &[HOST]),
            Err(RefusalReason::WrongSecret)
        );
    }

    #[test]
    fn only_json_is_posted() {
        for (kind, said) in [
            ("application/json", Ok(())),
            ("Application/JSON; charset=utf-8", Ok(())),
            ("text/plain", Err(RefusalReason::NoJson)),
            (
                "application/x-www-form-urlencoded",
                Err(RefusalReason::NoJson),
            ),
        ] {
            let headers = [HOST, ("content-type", kind)];
            assert_eq!(judged(Method::POST, PAGE, &headers), said, "{kind}");
        }
        assert_eq!(
            judged(Method::POST, PAGE, &[HOST]),
            Err(RefusalReason::NoJson)
        );
        assert_eq!(
            judged(Method::DELETE, PAGE, &[HOST]),
            Err(RefusalReason::Method)
        );
    }
}
