//! Packages of Debian and its kin.

use std::process::Stdio;

use crate::command::{program, run};

/// Installs packages, for which one must be root.
///
/// # Errors
///
/// When one cannot be installed.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let mut command = program("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        run(command.stdout(Stdio::null()))
    };
    println!("installing {}", packages.join(" "));
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}
