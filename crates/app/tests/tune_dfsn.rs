//! Tests of `laglab tune dfsn`.

use crate::program;

use std::fs;
use std::process::Output;

use program::laglab;
use serde_json::Value;
use tempfile::TempDir;

/// Export of a namespace, in the form in which `dfsutil root export` prints it.
const EXPORT: &str = r#"<?xml version="1.0"?>
<Root Name="\\child.corp.contoso.com\Testing" State="1" Timeout="300">
  <Target Server="FILE1" Folder="Testing" State="2"/>
  <Link Name="Software" State="1" Timeout="1800">
    <Target Server="TARGET1" Folder="Software" State="2"/>
    <Target Server="TARGET2" Folder="TARGET1" State="2"/>
  </Link>
</Root>
"#;

/// Referrals of a client before old servers are removed, in the form in which `dfsutil cache referral` prints
/// them.
const REFERRALS: &str = r"
Entry: \child.corp.contoso.com\Testing
ShortEntry: \child.corp.contoso.com\Testing
Expires in 276 seconds
UseCount: 0 Type:0x81 ( REFERRAL_SVC DFS )
   0:[\FILE1\Testing] AccessStatus: 0 ( ACTIVE TARGETSET )
   1:[\FILE2.child.corp.contoso.com\Testing]
";

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

fn code_and_stderr(output: &Output) -> (i32, String) {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), error)
}

#[test]
fn an_export_is_rewritten_only_when_asked_to() {
    let folder = Folder::new();
    let export = folder.file("export.xml", EXPORT);
    let full = folder.path("full.xml");
    let rewrite = |more: &[&str]| {
        let args = ["--json", "tune", "dfsn", "rewrite", &export];
        laglab(&[&args, more].concat())
    };
    let dry = rewrite(&["--suffix", "child.corp.contoso.com"]);
    assert_eq!(code_and_stderr(&dry), (0, String::new()));
    let report: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(report["changes"].as_array().unwrap().len(), 2);
    assert_eq!(report["left"][0]["why"], "namespace_server");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1);

    let map = "target2=nas.corp.contoso.com";
    let written = rewrite(&[
        "--suffix",
        "child.corp.contoso.com",
        "--map",
        map,
        "-o",
        &full,
    ]);
    assert_eq!(code_and_stderr(&written), (0, String::new()));
    let expected = EXPORT
        .replace(
            "\"TARGET1\" Folder=\"Software",
            "\"TARGET1.child.corp.contoso.com\" Folder=\"Software",
        )
        .replace("TARGET2", "nas.corp.contoso.com");
    assert_eq!(fs::read_to_string(full).unwrap(), expected);

    let (code, error) = code_and_stderr(&rewrite(&["--map", map]));
    assert_eq!(code, 1);
    assert!(error.contains("1 short names are left"), "{error}");
}

#[test]
fn other_files_are_refused() {
    let folder = Folder::new();
    let bomb = r#"<!DOCTYPE r [<!ENTITY a "aaaa">]><Root Name="\\a\b">&a;</Root>"#;
    for (text, what) in [(bomb, "DTD"), ("<Roots/>", "`Roots`"), ("\0", "")] {
        let export = folder.file("odd.xml", text);
        let (code, error) = code_and_stderr(&laglab(&["tune", "dfsn", "rewrite", &export]));
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("odd.xml") && error.contains(what), "{error}");
    }
}

#[test]
fn a_gate_prints_proceed_or_wait_until() {
    let folder = Folder::new();
    let before = folder.file("before.txt", REFERRALS);
    let after = folder.file(
        "after.txt",
        &REFERRALS.replace("0:[\\FILE1\\", "0:[\\FILE2.child.corp.contoso.com\\"),
    );
    let gate = |gate: &str, files: &[&str]| {
        let servers = ["--old", "FILE1", "--new", "file2.child.corp.contoso.com"];
        let namespace = [
            "--namespace",
            r"\\child.corp.contoso.com\Testing",
            "--at",
            "2026-03-01T10:00:00Z",
        ];
        let args = [
            &["--json", "tune", "dfsn", "gate", gate],
            files,
            &servers,
            &namespace,
        ]
        .concat();
        let output = laglab(&args);
        (
            serde_json::from_slice::<Value>(&output.stdout).unwrap(),
            output.status.code(),
        )
    };
    let (clients, code) = gate("old-gone", &[&after, &before]);
    assert_eq!(code, Some(1));
    assert_eq!(
        (&clients[0]["proceed"], &clients[1]["proceed"]),
        (&Value::from(true), &Value::from(false))
    );
    assert_eq!(clients[1]["wait_until"], "2026-03-01T10:04:36Z");
    assert_eq!(clients[1]["reasons"][0]["what"], "old_listed");
    assert_eq!(clients[1]["reasons"][0]["active"], true);
    assert_eq!(gate("new-known", &[&before]).1, Some(0));
    assert_eq!(gate("old-gone", &[&after]).1, Some(0));
}

#[test]
fn the_runbook_has_both_gates_and_an_undo() {
    let book = program::text(&[
        "tune",
        "dfsn",
        "runbook",
        r"\\child.corp.contoso.com\Testing",
        "--old",
        "FILE1",
        "--new",
        "file2.child.corp.contoso.com",
    ]);
    for part in [
        "# Migration of \\\\child.corp.contoso.com\\Testing\n",
        "laglab tune dfsn gate new-known referrals.txt",
        "laglab tune dfsn gate old-gone referrals.txt",
        "dfsutil root AddDom \"\\\\file2.child.corp.contoso.com\\Testing\" V2\n",
        "Undo: ",
    ] {
        assert!(book.contains(part), "{part} is not in\n{book}");
    }
    let (code, error) = code_and_stderr(&laglab(&[
        "tune", "dfsn", "runbook", "Testing", "--old", "a", "--new", "b.c",
    ]));
    assert_eq!(code, 2);
    assert!(error.contains("invalid path of a namespace"), "{error}");
}
