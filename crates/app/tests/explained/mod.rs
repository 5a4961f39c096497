//! Runs `laglab explain` on a trace, and checks that its queries return the shown rows.
#![allow(dead_code, reason = "queries are checked only with SQL")]

use serde_json::Value;

use crate::program;

/// Explanation of a trace by `laglab explain`, as JSON.
pub(crate) struct Explained {
    pub(crate) trace: String,
    pub(crate) report: Value,
}

impl Explained {
    pub(crate) fn new(trace: &str, options: &[&str]) -> Explained {
        let arguments = [&["explain", trace, "--json"], options].concat();
        Explained {
            trace: trace.to_owned(),
            report: program::json(&arguments),
        }
    }

    pub(crate) fn findings(&self) -> &[Value] {
        self.report["explanation"]["findings"].as_array().unwrap()
    }

    /// Returns the findings of a theory.
    pub(crate) fn by_theory(&self, theory: &str) -> Vec<&Value> {
        let all = self.findings().iter();
        all.filter(|finding| finding["theory"] == theory).collect()
    }

    /// Returns the judgement of a theory about the whole trace.
    pub(crate) fn judgement(&self, theory: &str) -> &str {
        let mut all = self.report["explanation"]["theories"]
            .as_array()
            .unwrap()
            .iter();
        let verdict = all.find(|verdict| verdict["theory"] == theory);
        let verdict = verdict.unwrap_or_else(|| panic!("no theory {theory}"));
        verdict["judgement"].as_str().unwrap()
    }

    /// Returns all evidence. Each has the name of its theory.
    fn evidence(&self) -> Vec<(&str, &Value)> {
        let explanation = &self.report["explanation"];
        let mut all = Vec::new();
        for finding in self.findings() {
            push_evidence(&mut all, finding);
            for verdict in finding["weighed"].as_array().into_iter().flatten() {
                push_evidence(&mut all, verdict);
            }
        }
        for verdict in explanation["theories"].as_array().unwrap() {
            push_evidence(&mut all, verdict);
        }
        all
    }

    /// Runs the queries of all evidence, and asserts that they return the shown rows.
    #[cfg(feature = "sql")]
    pub(crate) fn check_queries(&self, options: &[&str]) {
        check_evidence(&self.trace, &self.evidence(), options);
    }
}

/// Runs the queries of evidence about a trace, and asserts that they return the shown rows. Each entry of `evidence` is
/// a pair: the name of the source, and the evidence.
#[cfg(feature = "sql")]
pub(crate) fn check_evidence(trace: &str, evidence: &[(&str, &Value)], options: &[&str]) {
    let statements: Vec<String> = (0..)
        .zip(evidence)
        .map(|(n, (_, evidence))| {
            let query = evidence["query"].as_str().unwrap();
            format!("SELECT {n} AS evidence_number;\n{query};\n")
        })
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, statements.concat().as_bytes()).unwrap();
    let file = file.path().to_str().unwrap();
    let arguments = [&["sql", trace, "--json", "--file", file], options].concat();
    let mut answers: Vec<Vec<Value>> = Vec::new();
    // Some evidence is that a table has no rows, which the program notes on standard error.
    let output = program::laglab(&arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        match row.get("evidence_number") {
            Some(_) => answers.push(Vec::new()),
            None => answers.last_mut().unwrap().push(row),
        }
    }
    assert_eq!(answers.len(), evidence.len(), "{trace}");
    for ((source, evidence), rows) in evidence.iter().zip(answers) {
        let about = format!("{trace}: {source}: {evidence:#}\n{rows:#?}");
        let columns = evidence["columns"].as_array().unwrap();
        let shown = evidence["rows"].as_array().unwrap();
        assert_eq!(shown.len(), rows.len(), "{about}");
        for (shown, row) in shown.iter().zip(&rows) {
            assert_eq!(row.as_object().unwrap().len(), columns.len(), "{about}");
            for (cell, column) in shown.as_array().unwrap().iter().zip(columns) {
                let asked = &row[column["name"].as_str().unwrap()];
                assert!(is_same(cell, asked), "{cell} and {asked} in {about}");
            }
        }
    }
}

fn push_evidence<'v>(all: &mut Vec<(&'v str, &'v Value)>, of: &'v Value) {
    let theory = of["theory"].as_str().unwrap();
    let evidence = of["evidence"].as_array().into_iter().flatten();
    all.extend(evidence.map(|evidence| (theory, evidence)));
}

/// Compares cells. Integers, flags and text must be equal. Other numbers may differ by rounding.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(a), Some(b)) if one.is_f64() || other.is_f64() => {
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
        }
        _ => one == other,
    }
}
