//! Running Windows programs on Linux, so that the Windows build is tested, not only compiled.
//!
//! Debian 12's mingw-w64 links them and its Wine 8.0 runs them. Wine needs three things that it
//! does not do by itself: a prefix that says Windows 10 (it would say Windows 7), a
//! `bcryptprimitives.dll` (see `xtask/wine/`), and a server that outlives a program (each start
//! takes 0.1 s instead of 0.7 s).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apt;
use crate::command::{add_target, cargo, is_installed, program, root, run, target};

/// The target whose programs Wine runs.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// What must be installed: the program by which it is recognised, and Debian's packages for it.
const TOOLS: [(&str, &[&str]); 2] = [
    ("x86_64-w64-mingw32-gcc", &["gcc-mingw-w64-x86-64-posix"]),
    ("wine", &["wine", "wine64"]),
];

/// Makes sure that the linker, Wine and Rust's library for Windows are here, installing what is
/// missing.
///
/// # Errors
///
/// When something is missing and cannot be installed; the message says what to do.
pub(crate) fn install() -> Result<(), String> {
    add_target(TARGET)?;
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(tool, _)| !is_installed(tool))
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    apt::install(&missing).map_err(|error| {
        format!(
            "{error}\nThe Windows half needs {}. Install them as root, or leave that half out: \
             `cargo xtask test --quick`.",
            missing.join(" ")
        )
    })
}

/// A Wine prefix, ready to run programs, with its server alive until this is dropped.
pub(crate) struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Starts Wine's server, making the prefix first where there is none.
    ///
    /// # Errors
    ///
    /// When Wine or the compiler of the stand-in DLL fails.
    pub(crate) fn start() -> Result<Self, String> {
        let wine = Self {
            prefix: target().join("wine"),
        };
        // A server left over from a killed task would make the new one give up.
        wine.stop();
        // Written last: a prefix without it was left half-made.
        let ready = wine.prefix.join("ready");
        let is_ready = ready.is_file();
        if !is_ready {
            let _ = fs::remove_dir_all(&wine.prefix);
            fs::create_dir_all(&wine.prefix).map_err(|error| fault(&wine.prefix, &error))?;
        }
        // Should this task be killed, the time-out ends the server; until then it must not keep
        // open a pipe that someone reads our output from.
        let mut server = wine.command("wineserver", &["--persistent=600"]);
        run(server.stdout(Stdio::null()).stderr(Stdio::null()))?;
        if !is_ready {
            wine.set_up()?;
            fs::write(&ready, "").map_err(|error| fault(&ready, &error))?;
        }
        Ok(wine)
    }

    /// `cargo SUBCOMMAND --target …`, with Wine to run what it builds.
    pub(crate) fn cargo(&self, subcommand: &str, arguments: &[&str]) -> Command {
        let mut command = cargo(&[subcommand, "--target", TARGET]);
        command
            .args(arguments)
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine")
            // insta would ask cargo where its snapshots are, but there is none under Wine.
            .env("INSTA_WORKSPACE_ROOT", root());
        self.surround(command)
    }

    /// Ends the prefix's server, if it runs.
    fn stop(&self) {
        if self.prefix.is_dir() {
            // It reports an error when there is none to stop, which is as good.
            let _ = self.command("wineserver", &["--kill"]).status();
        }
    }

    /// One of Wine's programs, in this prefix.
    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = program(name);
        command.args(arguments).stdin(Stdio::null());
        self.surround(command)
    }

    /// `command` with what Wine reads from the environment.
    fn surround(&self, mut command: Command) -> Command {
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            // Neither .NET nor a browser: the offers to install them would wait for an answer.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY");
        command
    }

    /// Fills the prefix, makes it say Windows 10, and adds the DLL that it lacks.
    fn set_up(&self) -> Result<(), String> {
        // Wine complains a lot while all is well.
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
            .map_err(|error| format!("{error}; {} says why", log_path.display()))?;
        }
        let dll = self
            .prefix
            .join("drive_c/windows/system32/bcryptprimitives.dll");
        if dll.exists() {
            return Ok(()); // a Wine newer than 8.0
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
    format!("{} cannot be written: {error}", path.display())
}
