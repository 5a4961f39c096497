//! Runs programs of the Windows build under Wine on Linux.
//!
//! The compiler mingw-w64 of Debian 12 links the programs, and Wine 8.0 of Debian 12 runs them. Wine lacks
//! three things, which this file adds. The first is a prefix of Windows 10, because the default is Windows 7.
//! The second is a `bcryptprimitives.dll` (see `xtask/wine/`). The third is a server that outlives a program,
//! so that a start takes 0.1 s instead of 0.7 s.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apt;
use crate::command::{self, add_target, program, root, run, target};

/// Target of the programs that Wine runs.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// Installs the linker, Wine, and Rust's standard library for Windows, if they are missing.
///
/// # Errors
///
/// Returns an error if a tool is missing and cannot be installed. The message gives advice.
pub(crate) fn install() -> Result<(), String> {
    add_target(TARGET)?;
    apt::provide(&apt::WINDOWS)
        .map_err(|error| format!("{error}; `cargo xtask test` without `--full` needs no Wine"))
}

/// Returns the command `cargo SUBCOMMAND --target …`. It can run Windows programs after [`Wine::surround`].
pub(crate) fn cargo(subcommand: &str, arguments: &[&str]) -> Command {
    let mut command = command::cargo(&[subcommand, "--target", TARGET]);
    command.args(arguments);
    command
}

/// Wine prefix and its server. Dropping this value stops the server.
pub(crate) struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Starts the server of Wine. If there is no prefix, makes it first.
    ///
    /// # Errors
    ///
    /// Returns an error if Wine fails, or if the added DLL cannot be compiled.
    pub(crate) fn start() -> Result<Self, String> {
        let wine = Self {
            prefix: target().join("wine"),
        };
        // If an earlier task was killed, its server may still run. The new server would then give up, so the old one is
        // stopped first.
        wine.stop();
        // This file is written at the end. If it is missing, making the prefix was interrupted.
        let ready = wine.prefix.join("ready");
        let is_ready = ready.is_file();
        if !is_ready {
            let _ = fs::remove_dir_all(&wine.prefix);
            fs::create_dir_all(&wine.prefix).map_err(|error| fault(&wine.prefix, &error))?;
        }
        // If this task is killed, the server ends only after the time-out. Until then, it must not keep our output
        // open, because another program may read our output from a pipe.
        let mut server = wine.command("wineserver", &["--persistent=600"]);
        run(server.stdout(Stdio::null()).stderr(Stdio::null()))?;
        if !is_ready {
            wine.set_up()?;
            fs::write(&ready, "").map_err(|error| fault(&ready, &error))?;
        }
        // Wine's services start with the first program and keep its output open. A test runner would then wait forever
        // for the end of its first test's output.
        let mut first = wine.command("wine", &["cmd", "/c", "exit"]);
        run(first.stdout(Stdio::null()).stderr(Stdio::null()))?;
        Ok(wine)
    }

    /// Returns a command that runs the Windows build of laglab, without arguments.
    pub(crate) fn laglab(&self) -> Command {
        let mut command = self.command("wine", &[]);
        command.arg(target().join(TARGET).join("debug/laglab.exe"));
        command
    }

    /// Stops the server of the prefix, if the server runs.
    fn stop(&self) {
        if self.prefix.is_dir() {
            // The error is ignored, because it only means that there is no server.
            let _ = self.command("wineserver", &["--kill"]).status();
        }
    }

    /// Returns a command that runs one of Wine's programs with this prefix.
    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = program(name);
        command.args(arguments).stdin(Stdio::null());
        self.surround(&mut command);
        command
    }

    /// Sets two groups of environment variables: variables that Wine reads, and variables that make cargo run
    /// programs with Wine.
    pub(crate) fn surround<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine")
            // insta would start cargo to find its snapshots, but there is no cargo under Wine.
            .env("INSTA_WORKSPACE_ROOT", root())
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            // These settings prevent Wine from offering to install .NET and a browser, and waiting for an
            // answer.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
    }

    /// Fills the prefix, sets its Windows version to Windows 10, and adds the missing DLL.
    fn set_up(&self) -> Result<(), String> {
        // The output goes to a log file, because Wine prints many warnings that do not matter.
        let log_path = self.prefix.join("set-up.log");
        let log = File::create(&log_path).map_err(|error| fault(&log_path, &error))?;
        let steps: [(&str, &[&str]); 2] = [
            ("wineboot", &["--init"]),
            ("wine", &["winecfg", "-v", "win10"]),
        ];
        for (name, arguments) in steps {
            let log = log.try_clone().map_err(|error| fault(&log_path, &error))?;
            run(self
                .command(name, arguments)
                .stdout(Stdio::null())
                .stderr(log))
            .map_err(|error| format!("{error}; see {}", log_path.display()))?;
        }
        let dll = self
            .prefix
            .join("drive_c/windows/system32/bcryptprimitives.dll");
        if dll.exists() {
            return Ok(()); // Wine is newer than 8.0 and has the DLL
        }
        let mut rustc = program("rustc");
        rustc
            .args([
                "--edition",
                "2024",
                "--target",
                TARGET,
                "--crate-type",
                "cdylib",
            ])
            .args([
                "-C",
                "panic=abort",
                "-C",
                "opt-level=2",
                "-C",
                "strip=symbols",
            ])
            .arg("-o")
            .arg(dll)
            .arg(root().join("xtask/wine/bcryptprimitives.rs"));
        run(&mut rustc)
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn fault(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
