//! `cargo xtask pictures`: takes the pictures of README.md and of the manual with headless Chromium.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::command::{self, program, root, target};
use crate::{browser, demo, page};

/// Maximum size of a picture in bytes.
const LIMIT: u64 = 150_000;

/// Takes the pictures, and writes them to `docs/img`.
///
/// # Errors
///
/// Returns an error if npm, Chromium or the build fails, or if a picture is larger than [`LIMIT`].
pub(crate) fn take() -> Result<(), String> {
    let chromium = browser::find()?;
    page::build()?;
    let laglab = demo::build()?;
    let scratch = target().join("pictures");
    let pictures = root().join("docs/img");
    for folder in [&scratch, &pictures] {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    let simulated = |scenario: &str| -> Result<PathBuf, String> {
        let trace = scratch.join(scenario).with_extension("etl");
        let mut simulate = program(&laglab);
        simulate.args(["simulate", scenario, "--symbols"]);
        simulate.arg(scratch.join("symbols")).arg("--output");
        command::read(simulate.arg(&trace))?;
        Ok(trace)
    };
    let symbols = scratch.join("symbols");
    let server = Server::start(&laglab, &[simulated("rank-stall")?.as_os_str()])?;
    let (before, after) = (
        simulated("dpc-flood-teaming")?,
        simulated("dpc-flood-no-teaming")?,
    );
    let compared = Server::start(
        &laglab,
        &[
            before.as_os_str(),
            "--against".as_ref(),
            after.as_os_str(),
            "--symbols".as_ref(),
            symbols.as_os_str(),
        ],
    )?;
    let linux = root().join("docs/linux/shop.data");
    let linux = Server::start(&laglab, &[linux.as_os_str()])?;
    let mut node = program("node");
    node.arg(root().join("xtask/pictures.mjs")).arg(chromium);
    node.args([&server.address, &compared.address, &linux.address]);
    command::run(node.arg(&pictures))?;
    let entries = std::fs::read_dir(&pictures).map_err(|error| failed(&pictures, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(&pictures, &error))?.path();
        let size = path
            .metadata()
            .map_err(|error| failed(&path, &error))?
            .len();
        println!("{} has {size} bytes", path.display());
        if size > LIMIT {
            return Err(format!("{} is larger than {LIMIT} bytes", path.display()));
        }
    }
    Ok(())
}

/// Running `laglab open`. Dropping this value ends the server.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts the server with arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start or prints no address.
    fn start(laglab: &Path, arguments: &[&OsStr]) -> Result<Self, String> {
        let mut open = program(laglab);
        open.args(["open", "--no-browser", "--no-cache"])
            .args(arguments);
        let mut child = open
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(laglab, &error))?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        let mut lines = lines.into_iter().flatten().map_while(Result::ok);
        let address = lines.find(|line| line.starts_with("http://"));
        let address = address.ok_or("`laglab open` printed no address")?;
        Ok(Self { child, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors are ignored, because they mean that the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
