//! `cargo xtask dist`: laglab for Windows, as a zip.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{self, cargo, program, root, target};
use crate::test::WITHOUT_SQL;
use crate::{page, wine};

/// The examples of `pgm` that go in, too.
const EXAMPLES: [&str; 3] = ["send", "receive", "reflect"];

const README: &str = "\
laglab explains why a Windows machine lags: from traces of Event Tracing (laglab explain TRACE.etl), and
by probes of the machine that it runs on (laglab measure sleep, files, net). `laglab --help` names all
commands. Nothing needs to be installed.

This build has no SQL: `laglab sql` and what needs it say so. It is what is tested, under Wine. Builds
from the sources have SQL.

pgm-send.exe, pgm-receive.exe and pgm-reflect.exe are small programs for reliable multicast (RFC 3208):
    pgm-receive INTERFACE GROUP        pgm-send INTERFACE GROUP
INTERFACE is a name or an address of this machine, GROUP such as 239.192.0.1.

Licence: MIT or Apache-2.0, at your choice (LICENSE-MIT, LICENSE-APACHE). THIRD-PARTY.txt names the
libraries that are part of laglab.exe, and their licences.
";

/// Builds for Windows, without SQL as that is what is tested there, and packs what a user needs.
///
/// # Errors
///
/// When something cannot be built or written, or there is no Python to pack it.
pub(crate) fn run() -> Result<(), String> {
    wine::install()?;
    // The build holds the page.
    page::build()?;
    let build = ["build", "--release", "--target", wine::TARGET];
    command::run(&mut cargo(
        &[&build[..], &["--package", "app"], WITHOUT_SQL].concat(),
    ))?;
    command::run(&mut cargo(
        &[&build[..], &["--package", "pgm", "--examples"]].concat(),
    ))?;
    let name = format!("laglab-{}-windows-x86_64", env!("CARGO_PKG_VERSION"));
    let dist = target().join("dist");
    let folder = dist.join(&name);
    // What an earlier one has left is not to be packed.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| fault(&folder, &error))?;
    let built = target().join(wine::TARGET).join("release");
    let copy = |from: PathBuf, to: &str| {
        let copied = fs::copy(&from, folder.join(to));
        copied.map(|_| ()).map_err(|error| fault(&from, &error))
    };
    copy(built.join("laglab.exe"), "laglab.exe")?;
    for example in EXAMPLES {
        let from = built.join("examples").join(format!("{example}.exe"));
        copy(from, &format!("pgm-{example}.exe"))?;
    }
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(root().join(licence), licence)?;
    }
    for (file, text) in [
        ("README.txt", README.to_owned()),
        ("THIRD-PARTY.txt", third_party()?),
    ] {
        let path = folder.join(file);
        // Notepad of older Windows knows no other ends of lines.
        fs::write(&path, text.replace('\n', "\r\n")).map_err(|error| fault(&path, &error))?;
    }
    let zip = dist.join(format!("{name}.zip"));
    let mut python = program("python3");
    python.args(["-m", "zipfile", "-c"]).arg(&zip).arg(&folder);
    command::run(&mut python)?;
    println!("{}", zip.display());
    Ok(())
}

/// The libraries that are part of the program, with the licences that they are under.
fn third_party() -> Result<String, String> {
    let tree = [
        "tree",
        "--package",
        "app",
        "--target",
        wine::TARGET,
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}: {l}",
    ];
    let listed = command::read(&mut cargo(&[&tree[..], WITHOUT_SQL].concat()))?;
    Ok(libraries(&listed))
}

/// What cargo lists, each once and in order, without the packages of this repository, which stand with
/// their folders.
fn libraries(listed: &str) -> String {
    let mut lines: Vec<&str> = listed
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| line.contains(": ") && !line.contains(" (/") && !line.contains(":\\"))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines.join("\n") + "\n"
}

fn fault(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_stand_once_and_in_order() {
        let listed = "app v0.1.0 (/src/laglab/crates/app): MIT OR Apache-2.0\n\
            zstd v1.0.0: MIT\n\
            clap v4.6.7: MIT OR Apache-2.0\n\
            zstd v1.0.0: MIT (*)\n\n\
            pgm v0.1.0 (C:\\laglab\\crates\\pgm): MIT OR Apache-2.0\n";
        let expected = "clap v4.6.7: MIT OR Apache-2.0\nzstd v1.0.0: MIT\n";
        assert_eq!(libraries(listed), expected);
    }
}
