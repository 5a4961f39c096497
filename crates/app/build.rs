//! Makes cargo notice when the page was built: it is part of the program.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist");
    // Cargo would run this again and again for a folder that is not there.
    fs::create_dir_all(&page)?;
    println!("cargo::rerun-if-changed={}", page.display());
    Ok(())
}
