//! Tests of `laglab record`: files, output and errors, and a recording in which scripts replace Windows
//! programs.

use crate::program;

use std::fs;

use program::{json, laglab, text};

fn error_of(args: &[&str], code: i32) -> String {
    let output = laglab(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn each_investigation_is_listed_with_its_theories() {
    let listed = text(&["record", "--list"]);
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        [
            "long-wait",
            "dpc",
            "rank",
            "cpu",
            "timer",
            "network",
            "dscp",
            "disk",
            "resume",
            "boot",
            "full"
        ]
    );
    let dpc = &json(&["record", "--list", "--json"])[1];
    assert_eq!(dpc["investigation"], "dpc");
    let judged = dpc["judged"].as_array().unwrap();
    assert!(judged.contains(&"long-interrupts".into()), "{dpc}");
    let open = dpc["not_recorded"].as_array().unwrap();
    assert!(open.contains(&"packet-marking".into()), "{dpc}");
}

#[test]
fn a_kit_is_written_and_its_profile_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    let kit = folder.path().join("kit");
    let kit = kit.to_str().unwrap();
    let args = [
        "record", "--for", "dpc", "--memory", "256", "--cpus", "64", "--nodes", "2",
    ];
    let said = text(&[&args[..], &["-o", kit]].concat());
    assert!(said.contains("64 CPUs, 256.0 GiB"), "{said}");
    assert!(!said.contains("assumed"), "{said}");
    let mut files: Vec<String> = fs::read_dir(kit)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(
        files,
        [
            "README.md",
            "laglab-dpc.wprp",
            "record-xperf.cmd",
            "record.cmd",
            "record.ps1"
        ]
    );
    let profile = format!("{kit}/laglab-dpc.wprp");
    let checked = text(&["record", "check", &profile]);
    assert!(
        checked.ends_with("valid for every release of WPR\n"),
        "{checked}"
    );
    let batch = fs::read_to_string(format!("{kit}/record.cmd")).unwrap();
    assert!(batch.contains("/node 1"));
    let of_node_0 = [&args[..], &["--node", "0", "-o", kit]].concat();
    text(&of_node_0);
    let batch = fs::read_to_string(format!("{kit}/record.cmd")).unwrap();
    assert!(batch.contains("/node 0"));
    let none = error_of(&[&args[..], &["--node", "2", "-o", kit]].concat(), 2);
    assert!(none.contains("no NUMA node 2"), "{none}");
}

#[test]
fn light_kits_start_the_light_profile() {
    let folder = tempfile::tempdir().unwrap();
    let kit = folder.path().join("kit");
    let kit = kit.to_str().unwrap();
    let of = |detail: &str| {
        let args = [
            "record",
            "--for",
            "long-wait",
            "--detail",
            detail,
            "-o",
            kit,
        ];
        json(&[&args[..], &["--json"]].concat())
    };
    let (verbose, light) = (of("verbose"), of("light"));
    assert_eq!(light["detail"], "light");
    assert_eq!(light["stacks"], serde_json::json!([]));
    assert_ne!(verbose["stacks"], light["stacks"]);
    let rate = |kit: &serde_json::Value| kit["busy_bytes_per_second"].as_u64().unwrap();
    assert!(rate(&light) < rate(&verbose));
    let batch = fs::read_to_string(format!("{kit}/record.cmd")).unwrap();
    assert!(
        batch.contains("laglab-long-wait.wprp!laglab-long-wait.light"),
        "{batch}"
    );
    let printed = text(&["record", "--for", "cpu", "--detail", "light", "--dry-run"]);
    assert!(printed.contains("!laglab-cpu.light -filemode"), "{printed}");
    let said = error_of(&["record", "--for", "cpu", "--detail", "full"], 2);
    assert!(said.contains("expected verbose or light"), "{said}");
}

#[test]
fn only_files_of_kits_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("README.md");
    fs::write(&mine, "# My project\n").unwrap();
    let args = [
        "record",
        "--for",
        "cpu",
        "-o",
        folder.path().to_str().unwrap(),
    ];
    let said = error_of(&args, 2);
    assert!(said.contains("not part of a kit"), "{said}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "# My project\n");
    // The folder still has only the file of the user.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    fs::remove_file(mine).unwrap();
    text(&args);
    text(&args);
}

#[test]
fn commands_are_printed_anywhere_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let kit = folder.path().join("kit");
    let kit = kit.to_str().unwrap();
    let printed = text(&["record", "--for", "rank", "--dry-run", "-o", kit]);
    for piece in [
        "laglab-rank.wprp!laglab-rank -filemode -recordtempto",
        "wpr.exe -marker now",
        "wpr.exe -boottrace -addboot",
        "reg.exe export",
        "xperf.exe -start \"NT Kernel Logger\" -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER+PRIORITY",
    ] {
        assert!(printed.contains(piece), "{piece}: {printed}");
    }
    assert!(!folder.path().join("kit").exists());
    let circular = json(&[
        "record",
        "--for",
        "rank",
        "--dry-run",
        "--circular",
        "--json",
    ]);
    let start = circular["wpr"][0]["command"].as_str().unwrap();
    assert!(start.ends_with("!laglab-rank"), "{start}");
}

#[test]
fn errors_in_profiles_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.wprp");
    let path = path.to_str().unwrap();
    let kit = folder.path().join("kit");
    text(&["record", "--for", "cpu", "-o", kit.to_str().unwrap()]);
    let good = fs::read_to_string(kit.join("laglab-cpu.wprp")).unwrap();
    fs::write(
        path,
        good.replace("Value=\"CSwitch\"", "Value=\"CSwitsch\""),
    )
    .unwrap();
    let output = laglab(&["record", "check", path]);
    assert_eq!(output.status.code(), Some(1));
    let line = good
        .lines()
        .position(|line| line.contains("\"CSwitch\""))
        .unwrap()
        + 1;
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains(&format!(
            "bad.wprp:{line}:18: error: unknown keyword `CSwitsch`; did you mean `CSwitch`?"
        )),
        "{said}"
    );
    let output = laglab(&["record", "check", path, "--json"]);
    let checked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked[0]["remarks"][0]["severity"], "error");
    assert_eq!(checked[0]["remarks"][0]["line"], line);
    fs::write(path, "<a>").unwrap();
    let said = error_of(&["record", "check", path], 2);
    assert!(said.contains("not an XML file"), "{said}");
    // The other files are still checked.
    let kit = kit.join("laglab-cpu.wprp");
    let output = laglab(&["record", "check", path, kit.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("valid for every release"), "{said}");
}

#[test]
fn wrong_usage_is_refused() {
    let said = error_of(&["record", "--for", "lag"], 2);
    assert!(said.contains("expected one of long-wait, dpc"), "{said}");
    error_of(&["record"], 2);
    error_of(&["record", "--for", "cpu", "--run", "--dry-run"], 2);
    if !cfg!(windows) {
        let said = error_of(&["record", "input"], 2);
        assert!(said.contains("on Windows only"), "{said}");
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        let said = error_of(&["record", "--for", "cpu", "--run", "-o", folder], 2);
        assert!(said.contains("--dry-run"), "{said}");
        // The kit remains, without an empty folder for temporary files.
        let kept: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
        assert!(!kept.is_empty());
        for entry in kept {
            assert!(entry.path().is_file(), "{entry:?}");
        }
        // A folder of the user stays.
        let own = format!("{folder}/own");
        fs::create_dir(&own).unwrap();
        let args = [
            "record",
            "--for",
            "cpu",
            "--run",
            "-o",
            folder,
            "--temporary",
            &own,
        ];
        error_of(&args, 2);
        assert!(fs::exists(&own).unwrap());
    }
}

/// Tests `--run` with scripts that replace Windows programs. The script `wpr.exe` saves a simulated trace.
#[cfg(unix)]
#[test]
fn recordings_are_made_saved_and_explained() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let below = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    text(&[
        "simulate",
        "frozen",
        "--profile",
        "long-wait",
        "-o",
        &below("simulated.etl"),
    ]);
    let script = |name: &str, body: &str| {
        let path = below(name);
        fs::write(
            &path,
            format!("#!/bin/sh\necho {name} \"$@\" >> {}\n{body}", below("log")),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let save = format!(
        "if [ \"$1\" = -stop ]; then cp {} \"$2\"; fi\n",
        below("simulated.etl")
    );
    script("wpr.exe", &save);
    script("reg.exe", "");
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let kit = below("kit");
    let args = [
        "record",
        "--for",
        "long-wait",
        "--run",
        "--seconds",
        "1",
        "--note",
        "again",
        "-o",
        &kit,
    ];
    let output = program::laglab_with(&[("PATH", &path)], &args);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("Calculator.exe"), "{said}");
    let log = fs::read_to_string(below("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let trace = format!("{kit}/laglab-long-wait-1.etl");
    assert_eq!(
        lines[..2],
        [
            format!(
                "wpr.exe -start {kit}/laglab-long-wait.wprp!laglab-long-wait -filemode -recordtempto {kit}/temp"
            ),
            format!("wpr.exe -stop {trace} again"),
        ]
    );
    assert!(
        lines[2]
            .starts_with(r"reg.exe export HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl")
    );
    let notes = fs::read_to_string(format!("{trace}.notes.txt")).unwrap();
    assert!(notes.starts_with("again\n"), "{notes}");
    // Modules of the simulation have PDBs, and the trace has the ids of these PDBs.
    let symbols = fs::read_to_string(format!("{trace}.symbols.tsv")).unwrap();
    assert!(symbols.contains("ntoskrnl.exe\tnt"), "{symbols}");
    // If the recording cannot be started, the packet capture is stopped, too.
    script("wpr.exe", "exit 5\n");
    let output = program::laglab_with(&[("PATH", &path)], &args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("elevated"));
    script("netsh.exe", "");
    fs::remove_file(below("log")).unwrap();
    let args = ["record", "--for", "dscp", "--run", "-o", &kit];
    let output = program::laglab_with(&[("PATH", &path)], &args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let log = fs::read_to_string(below("log")).unwrap();
    let verbs: Vec<String> = log
        .lines()
        .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(verbs[0], "netsh.exe trace start", "{log}");
    assert!(verbs[1].starts_with("wpr.exe -start"), "{log}");
    assert_eq!(verbs[2..], ["netsh.exe trace stop"], "{log}");
}
