//! Chromium, which tests the page and takes pictures.

use std::path::PathBuf;

use crate::apt;
use crate::command::installed;

/// Name of the browser on Debian.
const CHROMIUM: &str = "chromium";

/// Returns the path of the browser. Installs the browser if it is missing.
///
/// # Errors
///
/// Returns an error if the browser is missing and cannot be installed. The message gives advice.
pub(crate) fn find() -> Result<PathBuf, String> {
    apt::provide(&[apt::CHROMIUM])?;
    installed(CHROMIUM).ok_or_else(|| format!("{CHROMIUM} is not on the search path"))
}
