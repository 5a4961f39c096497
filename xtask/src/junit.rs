//! Reports of tests in the format of JUnit, as cargo-nextest and `ui/e2e/junit.ts` write them.

use std::io;
use std::path::PathBuf;

use roxmltree::{Document, Node};

use crate::verdicts::{self, Failure, Verdicts};

/// File to which a test runner writes its report.
pub(crate) struct Report {
    pub(crate) path: PathBuf,
    /// Returns the command that runs one test again. The arguments are the names of the test program and of the test.
    pub(crate) command: fn(&str, &str) -> String,
}

impl Report {
    /// Removes the report of an earlier run.
    ///
    /// # Errors
    ///
    /// Returns an error if there is a report that cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), String> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Reads the report. Returns `None` if there is none: the test runner did not get as far as its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the report cannot be read or has another format.
    pub(crate) fn read(&self) -> Result<Option<Verdicts>, String> {
        let failed = |error: String| format!("{}: {error}", self.path.display());
        match std::fs::read_to_string(&self.path) {
            Ok(text) => self.verdicts(&text).map(Some).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn verdicts(&self, report: &str) -> Result<Verdicts, String> {
        let document = Document::parse(report).map_err(|error| error.to_string())?;
        let mut verdicts = Verdicts::default();
        for case in document
            .descendants()
            .filter(|node| node.has_tag_name("testcase"))
        {
            let program = case.attribute("classname").unwrap_or_default();
            let test = case.attribute("name").unwrap_or_default();
            let name = format!("{program} {test}");
            verdicts.add_left_out(&name, &output_of(case));
            let failure = |tags: [&str; 2], cause: &str| Failure {
                test: name.clone(),
                tries: 1 + all(case, &tags).count(),
                cause: cause.to_owned(),
                command: (self.command)(program, test),
            };
            if let Some(failed) = all(case, &["failure", "error"]).next() {
                let reruns = ["rerunFailure", "rerunError"];
                (verdicts.failures).push(failure(reruns, &cause_of(failed)));
                continue;
            }
            verdicts.passed += 1;
            let tags = ["flakyFailure", "flakyError"];
            if let Some(first) = all(case, &tags).next() {
                verdicts.flaky.push(failure(tags, &cause_of(first)));
            }
        }
        Ok(verdicts)
    }
}

/// Returns the cause of a failure. A test that was ended because it took too long has no text.
fn cause_of(failure: Node<'_, '_>) -> String {
    match failure.text().unwrap_or_default().trim() {
        "" => failure.attribute("type").unwrap_or_default().to_owned(),
        text => verdicts::cause(text),
    }
}

fn all<'d>(case: Node<'d, 'd>, tags: &[&str]) -> impl Iterator<Item = Node<'d, 'd>> {
    case.children()
        .filter(move |node| tags.contains(&node.tag_name().name()))
}

/// Returns the output of a test, or of one of its failures.
fn output_of(node: Node<'_, '_>) -> String {
    let outputs = all(node, &["system-out", "system-err"]);
    outputs
        .filter_map(|output| output.text())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Report that cargo-nextest 0.9.148 wrote, without times and most of the output.
    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" skipped="0" failures="3" errors="0">
  <testsuite name="jx::it" tests="5" skipped="0" errors="0" failures="3">
    <testcase name="flaky" classname="jx">
      <flakyFailure message="thread &apos;flaky&apos; (9432) panicked at src/lib.rs:3:117" type="test failure with exit code 101">thread &apos;flaky&apos; (9432) panicked at src/lib.rs:3:117:
first try
stack backtrace:
   0: __rustc::rust_begin_unwind
        <system-out>running 1 test</system-out><system-err>first try</system-err>
      </flakyFailure>
      <system-out>running 1 test</system-out>
    </testcase>
    <testcase name="good" classname="jx::it"><system-out>
running 1 test</system-out><system-err>left out: no perf &lt;here&gt;
</system-err></testcase>
    <testcase name="full::bad" classname="jx::it">
      <failure message="thread &apos;bad&apos; (9433) panicked at src/lib.rs:2:20" type="test failure with exit code 101">thread &apos;bad&apos; (9433) panicked at src/lib.rs:2:20:
assertion `left == right` failed: sum &amp; &lt;all&gt;
  left: 2
 right: 3
note: Some details are omitted</failure>
      <rerunFailure type="test failure with exit code 101">thread &apos;bad&apos; (9441) panicked</rerunFailure>
    </testcase>
    <testcase name="killed" classname="jx::bin/jx">
      <failure message="process aborted with signal 6 (SIGABRT)" type="test abort">process aborted with signal 6 (SIGABRT)</failure>
    </testcase>
    <testcase name="hangs" classname="jx"><failure type="test timeout"/></testcase>
  </testsuite>
</testsuites>"#;

    fn report() -> Report {
        Report {
            path: PathBuf::new(),
            command: |program, test| format!("{program} {test}"),
        }
    }

    #[test]
    fn a_report_has_all_verdicts() {
        let verdicts = report().verdicts(REPORT).unwrap();
        assert_eq!(verdicts.passed, 2);
        let reason = ("jx::it good".to_owned(), "no perf <here>".to_owned());
        assert_eq!(verdicts.left_out, [reason].into());
        let failure = |test: &str, tries, cause: &str, command: &str| Failure {
            test: test.to_owned(),
            tries,
            cause: cause.to_owned(),
            command: command.to_owned(),
        };
        let sum =
            "assertion `left == right` failed: sum & <all> left: 2 right: 3 (src/lib.rs:2:20)";
        let abort = "process aborted with signal 6 (SIGABRT)";
        let failures = [
            failure("jx::it full::bad", 2, sum, "jx::it full::bad"),
            failure("jx::bin/jx killed", 1, abort, "jx::bin/jx killed"),
            failure("jx hangs", 1, "test timeout", "jx hangs"),
        ];
        assert_eq!(verdicts.failures, failures);
        let flaky = failure("jx flaky", 2, "first try (src/lib.rs:3:117)", "jx flaky");
        assert_eq!(verdicts.flaky, [flaky]);
    }

    #[test]
    fn a_damaged_report_is_refused() {
        assert!(report().verdicts("<testsuites>").is_err());
    }
}
