//! Runs `laglab open`, and sends requests with a minimal HTTP client.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Running server of `laglab open`. Dropping this value ends the server.
pub(crate) struct Served {
    child: Child,
    config: TempDir,
    pub(crate) port: u16,
    token: String,
    /// Text that the server printed up to the address of the page.
    pub(crate) said: String,
}

/// HTTP response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Served {
    /// Opens traces. Their paths are relative to the folder of the real traces.
    pub(crate) fn open(args: &[&str]) -> Served {
        let config = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_laglab"))
            .arg("open")
            .args(args)
            .args(["--no-browser", "--port", "0"])
            .current_dir(testdata::path("etl"))
            .env(
                "LAGLAB_CACHE",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
            )
            .env("LAGLAB_CONFIG", config.path())
            .env_remove("_NT_SYMBOL_PATH")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        let address = loop {
            let line = lines.next().expect("it prints its address").unwrap();
            said.push_str(&line);
            said.push('\n');
            if let Some(rest) = line.strip_prefix("http://127.0.0.1:") {
                break rest.to_owned();
            }
        };
        // Another thread reads all further output, because the server would stop if the pipe were full.
        std::thread::spawn(move || lines.for_each(drop));
        let mut parts = address.split('/');
        let port = parts.next().unwrap().parse().unwrap();
        let token = parts.next().unwrap().to_owned();
        Served {
            child,
            config,
            port,
            token,
            said,
        }
    }

    /// Returns the folder in which the server stores the user's presets.
    pub(crate) fn config(&self) -> PathBuf {
        self.config.path().to_owned()
    }

    /// Returns the full path of a resource, given by its path below the page.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("/{}/{below}", self.token)
    }

    fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(300)))
            .unwrap();
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
        stream.write_all(head.as_bytes()).unwrap();
        if method == "POST" {
            // The error is ignored, because the server may reject the request and disconnect before all of it
            // is sent.
            let _ = stream.write_all(body);
        }
        stream
    }

    /// Sends a request and reads the response.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        Answer::read(self.begin(method, path, headers, body))
    }

    /// Sends a POST request with a body that is marked as JSON.
    pub(crate) fn post_text(&self, path: &str, body: &[u8]) -> Answer {
        let json = [("Content-Type", "application/json")];
        Answer::read(self.begin("POST", path, &json, body))
    }

    /// Posts JSON, asserts that the status is 200, and returns the response as JSON.
    pub(crate) fn post(&self, below: &str, body: &Value) -> Value {
        let answer = self.post_text(&self.path(below), body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{below} {body}: {}", answer.text());
        answer.json()
    }

    /// Sends a GET request, asserts that the status is 200, and returns the response as JSON.
    pub(crate) fn get(&self, below: &str) -> Value {
        let answer = self.send("GET", &self.path(below), &[], b"");
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }

    /// Sends a request with a shorter body than its header states, and disconnects.
    pub(crate) fn abandon(&self, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{",
            self.port
        );
        stream.write_all(head.as_bytes()).unwrap();
    }

    /// Sends SIGINT to the server. Returns true if the server ended correctly.
    #[cfg(unix)]
    pub(crate) fn interrupt(&mut self) -> bool {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        sent.success() && self.child.wait().unwrap().success()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    fn read(mut stream: TcpStream) -> Answer {
        let mut bytes = Vec::new();
        // The error is ignored: if the server rejects a request before it has read all of it, it may reset
        // the connection.
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Answer {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(other, _)| other == name)?;
        Some(value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}
