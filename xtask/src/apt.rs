//! Installs programs and libraries that Debian and its derivatives have as packages.

use std::process::Stdio;

use crate::command::{install, is_installed, program, read};

/// Program or library that tasks need, and the Debian packages that contain it.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    found_by: InstallTest,
    packages: &'static [&'static str],
}

/// Test that shows whether a tool is installed.
#[derive(Clone, Copy)]
enum InstallTest {
    /// The tool is a program with this name on the search path.
    Program(&'static str),
    /// The tool is a library with this name that `pkg-config` knows.
    PkgConfig(&'static str),
    /// The tool is a library with this name that the system's loader knows.
    Loader(&'static str),
}

const fn tool(name: &'static str, packages: &'static [&'static str]) -> Tool {
    Tool {
        found_by: InstallTest::Program(name),
        packages,
    }
}

/// npm, which includes Node.js.
pub(crate) const NPM: Tool = tool(
    if cfg!(windows) { "npm.cmd" } else { "npm" },
    &["nodejs", "npm"],
);

/// Browser for tests and pictures.
pub(crate) const CHROMIUM: Tool = tool("chromium", &["chromium"]);

/// Second browser, in which the page is tested.
pub(crate) const FIREFOX: Tool = tool("firefox-esr", &["firefox-esr"]);

/// Linker for the Windows build, and Wine to run the build.
pub(crate) const WINDOWS: [Tool; 2] = [
    tool("x86_64-w64-mingw32-gcc", &["gcc-mingw-w64-x86-64-posix"]),
    tool("wine", &["wine", "wine64"]),
];

/// Programs and libraries that the tests of the network need, in addition to cargo.
pub(crate) const NETWORK: [Tool; 9] = [
    tool("ip", &["iproute2"]),
    tool("nft", &["nftables"]),
    tool("tshark", &["tshark"]),
    tool("gcc", &["gcc"]),
    tool("pkg-config", &["pkg-config"]),
    // Programs that `measure net --peers` compares with.
    tool("sockperf", &["sockperf"]),
    tool("iperf3", &["iperf3"]),
    // Another implementation of PGM, with which our implementation is tested.
    Tool {
        found_by: InstallTest::PkgConfig("openpgm-5.3"),
        packages: &["libpgm-dev"],
    },
    // Library with transports over PGM and TCP. laglab measures these transports and compares them with its
    // own transports.
    Tool {
        found_by: InstallTest::Loader("libzmq.so.5"),
        packages: &["libzmq5"],
    },
];

/// `perf`, which makes recordings of Linux for the tests. The tests also compare results of laglab with results of
/// `perf`.
pub(crate) const PERF: Tool = tool("perf", &["linux-perf"]);

/// Installs the tools that are missing.
///
/// # Errors
///
/// Returns an error if a tool is missing and cannot be installed. Installing needs apt and root.
pub(crate) fn provide(tools: &[Tool]) -> Result<(), String> {
    let missing = |tools: &[Tool]| -> Vec<&str> {
        let missing = tools.iter().filter(|tool| !tool.found_by.is_there());
        missing.flat_map(|tool| tool.packages).copied().collect()
    };
    let packages = missing(tools);
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    if !is_installed("apt-get") || read(program("id").arg("-u"))?.trim() != "0" {
        return Err(format!(
            "missing: {names} (names of Debian's packages); install them, or run this as root on \
             Debian or a derivative"
        ));
    }
    println!("installing {names}");
    apt(&["update"])?;
    apt(&[
        &["install", "--yes", "--no-install-recommends"],
        &packages[..],
    ]
    .concat())?;
    match missing(tools).join(" ") {
        still if still.is_empty() => Ok(()),
        still => Err(format!("{still}: not found after the installation")),
    }
}

impl InstallTest {
    fn is_there(self) -> bool {
        match self {
            Self::Program(name) => is_installed(name),
            Self::PkgConfig(library) => {
                let mut known = program("pkg-config");
                let known = known.args(["--exists", library]).stderr(Stdio::null());
                known.status().is_ok_and(|status| status.success())
            }
            Self::Loader(library) => {
                let known = read(program("ldconfig").arg("-p"));
                known.is_ok_and(|known| known.contains(library))
            }
        }
    }
}

fn apt(arguments: &[&str]) -> Result<(), String> {
    let mut command = program("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    install(command.stdout(Stdio::null()))
}
