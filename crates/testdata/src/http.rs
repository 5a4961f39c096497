//! Minimal HTTP client for tests of the server of `laglab open`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Client of a server on this machine. The addresses of the server contain a secret.
#[derive(Clone, Debug)]
pub struct Client {
    /// Port of the server.
    pub port: u16,
    token: String,
}

/// HTTP response.
#[derive(Debug)]
pub struct Answer {
    /// Status code of the response.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// Body of the response.
    pub body: Vec<u8>,
}

impl Client {
    /// Creates a client for the page at an address such as `http://127.0.0.1:80/SECRET/`.
    ///
    /// # Panics
    /// Panics if the address does not have this form.
    pub fn new(page: &str) -> Client {
        let rest = page.strip_prefix("http://127.0.0.1:");
        let mut parts = rest.expect("an address on this machine").split('/');
        let mut part = || parts.next().expect("a port and a secret");
        Client {
            port: part().parse().expect("a port"),
            token: part().to_owned(),
        }
    }

    /// Returns the full path of a resource. `below` is the path of the resource below the page.
    pub fn path(&self, below: &str) -> String {
        format!("/{}/{below}", self.token)
    }

    fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).expect("a sent head");
        if method == "POST" {
            // The server may reject the request and disconnect before the whole request is sent. So an error
            // is ignored here.
            let _ = stream.write_all(body);
        }
        stream
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let timeout = Some(Duration::from_secs(300));
        stream.set_read_timeout(timeout).expect("a timeout");
        stream
    }

    /// Sends a request and reads the response.
    ///
    /// # Panics
    /// Panics if the server does not answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        Answer::read(self.begin(method, path, headers, body))
    }

    /// Sends a POST request with a body that is marked as JSON.
    ///
    /// # Panics
    /// Panics if the server does not answer.
    pub fn post_text(&self, path: &str, body: &[u8]) -> Answer {
        self.send("POST", path, &[("Content-Type", "application/json")], body)
    }

    /// Posts JSON to a path below the page. Returns the response as JSON.
    ///
    /// # Panics
    /// Panics if the status is not 200.
    pub fn post(&self, below: &str, body: &Value) -> Value {
        let answer = self.post_text(&self.path(below), body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{below} {body}: {}", answer.text());
        answer.json()
    }

    /// Sends a GET request to a path below the page. Returns the response as JSON.
    ///
    /// # Panics
    /// Panics if the status is not 200.
    pub fn get(&self, below: &str) -> Value {
        let answer = self.send("GET", &self.path(below), &[], b"");
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }

    /// Sends a request whose body is shorter than its header states. Then disconnects.
    pub fn abandon(&self, path: &str) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{",
            self.port
        );
        let sent = self.connect().write_all(head.as_bytes());
        sent.expect("a sent head");
    }
}

impl Answer {
    fn read(mut stream: TcpStream) -> Answer {
        let mut bytes = Vec::new();
        // The server may reject a request before it has read the whole request. It may then reset the
        // connection. So an error is ignored here.
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head in UTF-8");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer {
            status: status.expect("a status"),
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// Returns the value of a header. `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(other, _)| other == name)?;
        Some(value)
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}
