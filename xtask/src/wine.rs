//! Running Windows programs on Linux, so that the Windows build is tested, not only compiled.
//!
//! Debian 12's mingw-w64 links them and its Wine 8.0 runs them. Wine needs three things that it
//! does not do by itself: a prefix that says Windows 10 (it would say Windows 7), a
//! `bcryptprimitives.dll` (see `xtask/wine/`), and a server that outlives a program (each start
//! takes 0.1 s instead of 0.7 s).

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::command::{cargo, is_installed, program, read, root, run, target};

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
    let library = read(program("rustc").args(["--print", "target-libdir", "--target", TARGET]))?;
    if !PathBuf::from(library.trim()).is_dir() {
        run(program("rustup").args(["target", "add", TARGET]))?;
    }
    let missing: Vec<&str> = TOOLS
        .iter()
        .filter(|(tool, _)| !is_installed(tool))
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = program("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        run(command.stdout(Stdio::null()))
    };
    println!("installing {}", missing.join(" "));
    apt(&["update"])
        .and_then(|()| {
            let install = ["install", "--yes", "--no-install-recommends"];
            apt(&[&install[..], &missing].concat())
        })
        .map_err(|error| {
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
        // Written last: a prefix without it was left half-made.
        let ready = wine.prefix.join("ready");
        let fresh = !ready.is_file();
        if fresh {
            let _ = fs::remove_dir_all(&wine.prefix);
            fs::create_dir_all(&wine.prefix)
                .map_err(|error| format!("{} cannot be made: {error}", wine.prefix.display()))?;
        }
        // The time-out ends the server should this task be killed.
        run(&mut wine.command("wineserver", &["--persistent=600"]))?;
        if fresh {
            run(&mut wine.command("wineboot", &["--init"]))?;
            run(&mut wine.command("wine", &["winecfg", "-v", "win10"]))?;
            wine.add_bcryptprimitives()?;
            fs::write(&ready, "")
                .map_err(|error| format!("{} cannot be written: {error}", ready.display()))?;
        }
        Ok(wine)
    }

    /// `cargo SUBCOMMAND --target …`, with Wine to run what it builds.
    pub(crate) fn cargo(&self, subcommand: &str, arguments: &[&str]) -> Command {
        let mut command = cargo(&[subcommand, "--target", TARGET]);
        command
            .args(arguments)
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine");
        self.surround(command)
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = program(name);
        command.args(arguments).stdin(Stdio::null());
        self.surround(command)
    }

    fn surround(&self, mut command: Command) -> Command {
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
            // Neither .NET nor a browser: the offers to install them would wait for an answer.
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY");
        command
    }

    fn add_bcryptprimitives(&self) -> Result<(), String> {
        let system = self.prefix.join("drive_c/windows/system32");
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
            .arg(system.join("bcryptprimitives.dll"))
            .arg(root().join("xtask/wine/bcryptprimitives.rs"));
        run(&mut rustc)
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // A server that has already gone is as good as one that was stopped.
        let _ = self.command("wineserver", &["--kill"]).status();
    }
}
