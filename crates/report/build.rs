//! Build script. Release builds embed the JavaScript of the comparison page, so cargo rebuilds the crate if this
//! JavaScript changes.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist-report");
    // The folder must exist, because Cargo would otherwise run this script at every build.
    fs::create_dir_all(&script)?;
    // Builds with debug assertions do not embed the script. They read it from this folder at run time.
    match env::var_os("CARGO_CFG_DEBUG_ASSERTIONS") {
        None => println!("cargo::rerun-if-changed={}", script.display()),
        Some(_) => println!("cargo::rerun-if-changed=build.rs"),
    }
    Ok(())
}
