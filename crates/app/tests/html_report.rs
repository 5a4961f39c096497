//! Tests of `laglab report`: its options and its output. The crate `report` tests the page.

use crate::program;

#[test]
fn the_trace_is_not_overwritten_and_stdout_works() {
    let trace = "perfview__SelfDescribingSingleEvent.etl";
    let refused = program::laglab(&["report", trace, "-o", trace]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is an input file"));
    let page = program::text(&["report", trace, "-o", "-", "--title", "A <title>"]);
    assert!(page.contains("<title>A &lt;title&gt;"));
}

#[test]
fn the_page_is_written_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let report = ["report", "--json", "filtrace__etw.etl", "-o"];
    let report = program::json(&[&report[..], &[path.to_str().unwrap()]].concat());
    let page = std::fs::read_to_string(path).unwrap();
    assert_eq!(report["bytes"], page.len());
    assert!(page.contains("data-picture=\"0\""));
}

#[test]
fn the_file_and_its_size_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let path = path.to_str().unwrap();
    let text = program::text(&["report", "filtrace__etw.etl", "-o", path]);
    let bytes = std::fs::metadata(path).unwrap().len();
    assert_eq!(text.lines().count(), 1, "{text}");
    let rest = text.strip_prefix(&format!("{path}: ")).expect(&text);
    let (size, _) = rest.split_once(" KiB, ").expect(&text);
    // One decimal is printed.
    let difference = size.parse::<f64>().unwrap() - bytes as f64 / 1024.0;
    assert!(difference.abs() < 0.051, "{bytes}: {text}");
}
