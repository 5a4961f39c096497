//! Runs `laglab open`.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testdata::http::Client;

/// Running server of `laglab open`, and its client. Dropping this value ends the server.
pub(crate) struct Served {
    child: Child,
    config: TempDir,
    client: Client,
    /// Output of the server until it printed the address of the page.
    pub(crate) said: String,
}

impl Served {
    /// Opens traces. Their paths are relative to the folder of the real traces.
    pub(crate) fn open(args: &[&str]) -> Served {
        Served::start(args, |command| command.arg("--no-browser"))
    }

    /// Opens traces as on a machine without a program that can start a browser. The output on stderr is kept for
    /// [`Served::end`].
    pub(crate) fn open_without_programs(args: &[&str]) -> Served {
        let empty = tempfile::tempdir().unwrap();
        Served::start(args, |command| {
            command.env("PATH", empty.path()).stderr(Stdio::piped())
        })
    }

    fn start(args: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Served {
        let config = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_laglab"));
        command
            .arg("open")
            .args(args)
            .args(["--port", "0"])
            .current_dir(testdata::path("etl"))
            .env(
                "LAGLAB_CACHE",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
            )
            .env("LAGLAB_CONFIG", config.path())
            .env_remove("_NT_SYMBOL_PATH")
            .stdout(Stdio::piped());
        let mut child = change(&mut command).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        let client = loop {
            let line = lines.next().expect("it prints its address").unwrap();
            said.push_str(&line);
            said.push('\n');
            if line.starts_with("http://") {
                break Client::new(&line);
            }
        };
        // Another thread reads all further output, because the server would stop if the pipe were full.
        std::thread::spawn(move || lines.for_each(drop));
        Served {
            child,
            config,
            client,
            said,
        }
    }

    /// Ends the server. Returns its output on stderr.
    pub(crate) fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = String::new();
        let stderr = self.child.stderr.take();
        stderr.unwrap().read_to_string(&mut said).unwrap();
        said
    }

    /// Returns the folder in which the server stores the user's presets.
    pub(crate) fn config(&self) -> PathBuf {
        self.config.path().to_owned()
    }

    /// Sends SIGINT to the server. Returns true if the server ended correctly.
    #[cfg(unix)]
    pub(crate) fn interrupt(&mut self) -> bool {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
        sent.success() && self.child.wait().unwrap().success()
    }
}

impl Deref for Served {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
