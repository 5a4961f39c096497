//! A running `laglab open`, and the least of HTTP that asks it.
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

/// A server, which ends when it is dropped.
pub(crate) struct Served {
    child: Child,
    config: TempDir,
    pub(crate) port: u16,
    token: String,
    /// What it printed up to its address.
    pub(crate) said: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Served {
    /// Opens traces, beside the real ones.
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
        // What else it prints must not fill the pipe.
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

    /// The folder of what the user set up.
    pub(crate) fn config(&self) -> PathBuf {
        self.config.path().to_owned()
    }

    /// The path of something below the page's.
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
            // A server that has seen enough of it may have gone.
            let _ = stream.write_all(body);
        }
        stream
    }

    /// Sends a request and reads the answer.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        Answer::read(self.begin(method, path, headers, body))
    }

    /// Posts a text as JSON.
    pub(crate) fn post_text(&self, path: &str, body: &[u8]) -> Answer {
        let json = [("Content-Type", "application/json")];
        Answer::read(self.begin("POST", path, &json, body))
    }

    /// Posts JSON, which must be answered.
    pub(crate) fn post(&self, below: &str, body: &Value) -> Value {
        let answer = self.post_text(&self.path(below), body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{below} {body}: {}", answer.text());
        answer.json()
    }

    /// Asks for JSON, which must be answered.
    pub(crate) fn get(&self, below: &str) -> Value {
        let answer = self.send("GET", &self.path(below), &[], b"");
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        answer.json()
    }

    /// Says that more is coming than does, and goes away.
    pub(crate) fn abandon(&self, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{",
            self.port
        );
        stream.write_all(head.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C; says whether it ended as it should.
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
        // Who is refused before all is read may find the connection closed after the answer.
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
