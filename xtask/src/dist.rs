//! `cargo xtask dist`: packs laglab for Windows as a zip file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{self, cargo, program, root, target};
use crate::test::WITHOUT_SQL;
use crate::{page, wine};

/// Examples of the crate `pgm` that the zip file contains.
const EXAMPLES: [&str; 3] = ["send", "receive", "reflect"];

const README: &str = "\
laglab finds out why a Windows machine lags: from traces of Event Tracing (laglab explain TRACE.etl), and
by measurements on this machine (laglab measure sleep, files, net). `laglab --help` lists all commands.
No installation is needed.

This build has no SQL (`laglab sql`), like the build that is tested under Wine. Builds from source have it.

pgm-send.exe, pgm-receive.exe and pgm-reflect.exe are small programs for reliable multicast (RFC 3208):
    pgm-receive INTERFACE GROUP        pgm-send INTERFACE GROUP
INTERFACE is a name or an address of this machine, GROUP such as 239.192.0.1.

Licence: MIT or Apache-2.0, at your choice (LICENSE-MIT, LICENSE-APACHE). THIRD-PARTY.txt names the
libraries in laglab.exe and their licences.
";

/// Builds laglab for Windows without SQL, as the tests do. Packs the files that a user needs.
///
/// # Errors
///
/// Returns an error if something cannot be built or written, or there is no Python to pack it.
pub(crate) fn run() -> Result<(), String> {
    wine::install()?;
    // The page must be built first, because the program embeds it.
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
    // Files of an earlier build must not be packed, so they are removed.
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
        // Old versions of Notepad only show CR LF as the end of a line.
        fs::write(&path, text.replace('\n', "\r\n")).map_err(|error| fault(&path, &error))?;
    }
    let zip = dist.join(format!("{name}.zip"));
    let mut python = program("python3");
    python.args(["-m", "zipfile", "-c"]).arg(&zip).arg(&folder);
    command::run(&mut python)?;
    println!("{}", zip.display());
    Ok(())
}

/// Returns a list of the libraries in the program, and their licences.
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

/// Sorts the list that cargo prints. Removes duplicates, and removes the packages of this repository (lines
/// that contain a folder).
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
    fn libraries_are_sorted_and_unique() {
        let listed = "app v0.1.0 (/src/laglab/crates/app): MIT OR Apache-2.0\n\
            zstd v1.0.0: MIT\n\
            clap v4.6.7: MIT OR Apache-2.0\n\
            zstd v1.0.0: MIT (*)\n\n\
            pgm v0.1.0 (C:\\laglab\\crates\\pgm): MIT OR Apache-2.0\n";
        let expected = "clap v4.6.7: MIT OR Apache-2.0\nzstd v1.0.0: MIT\n";
        assert_eq!(libraries(listed), expected);
    }
}
