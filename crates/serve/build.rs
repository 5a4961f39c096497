//! Build script: rebuilds the crate if the files of the page change and are embedded in the program.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist");
    // The folder must exist, because Cargo would otherwise run this script at every build.
    fs::create_dir_all(&page)?;
    // Builds with debug assertions do not embed the page. They read it from this folder at run time.
    match env::var_os("CARGO_CFG_DEBUG_ASSERTIONS") {
        None => println!("cargo::rerun-if-changed={}", page.display()),
        Some(_) => println!("cargo::rerun-if-changed=build.rs"),
    }
    Ok(())
}
