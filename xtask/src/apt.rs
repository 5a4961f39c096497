//! Packages of Debian and its kin.

use std::process::Stdio;

use crate::command::{is_installed, program, read, run};

/// Installs packages, for which one must be root.
///
/// # Errors
///
/// When one cannot be installed; says what to do where this task may install nothing.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        let mut command = program("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        run(command.stdout(Stdio::null()))
    };
    if !is_installed("apt-get") || read(program("id").arg("-u"))?.trim() != "0" {
        return Err("install it, as root of Debian or its kin this task does so".to_owned());
    }
    println!("installing {}", packages.join(" "));
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}
