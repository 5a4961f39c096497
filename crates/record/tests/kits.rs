//! Kits: what they record is what their investigation needs, their profiles are classic and select
//! what the kit says, and their scripts hold the commands that they must.
#![allow(clippy::print_stderr, reason = "what is left out is said")]

use record::wprp::{check, select};
use record::{Investigation, Kit, Machine, Variant};

const SERVER: Machine = Machine {
    memory_bytes: 256 << 30,
    cpus: 64,
    nodes: 2,
};

const SMALL: Machine = Machine {
    memory_bytes: 2 << 30,
    cpus: 1,
    nodes: 1,
};

fn kits() -> impl Iterator<Item = Kit> {
    Investigation::ALL.into_iter().flat_map(|investigation| {
        [Machine::ORDINARY, SERVER, SMALL].map(|machine| Kit::new(investigation, machine))
    })
}

fn file(kit: &Kit, name: &str) -> String {
    let files = kit.files();
    let found = files.into_iter().find(|file| file.name == name);
    found.unwrap().text
}

#[test]
fn profiles_of_kits_pass_the_checker_without_a_word() {
    for kit in kits() {
        assert_eq!(check(&kit.profile()).unwrap(), [], "{kit:?}");
    }
}

#[test]
fn profiles_of_kits_select_what_the_kit_records() {
    for kit in kits() {
        for mode in ["File", "Memory"] {
            let id = format!("{}.Verbose.{mode}", kit.name());
            let selected = select(&kit.profile(), Some(&id)).unwrap();
            assert_eq!(selected.capture, kit.capture(), "{kit:?}");
            assert_eq!(selected.unused, [""; 0]);
        }
    }
}

#[test]
fn a_large_server_records_less_and_runs_beside_what_it_records() {
    let kit = Kit::new(Investigation::Dpc, SERVER);
    assert_eq!((kit.variant, kit.node), (Variant::LargeServer, Some(1)));
    assert!(file(&kit, "record.cmd").contains("/high /node 1 wpr.exe -start"));
    assert!(file(&kit, "record.ps1").contains("$node = 1\r\n"));
    let ordinary = Kit::new(Investigation::Dpc, Machine::ORDINARY);
    assert!(!file(&ordinary, "record.cmd").contains("/node"));
    assert!(file(&ordinary, "record.ps1").contains("$node = $null\r\n"));
    let per_cpu = |machine: Machine| {
        let kit = Kit::new(Investigation::LongWait, machine);
        kit.cost().busy_bytes_per_second / u64::from(machine.cpus)
    };
    assert!(per_cpu(SERVER) * 2 < per_cpu(Machine::ORDINARY));
}

/// The published script had four faults: dashes that are none, no `/wait`, a ping too few, and a stop
/// that may come before the start is over.
#[test]
fn scripts_have_none_of_the_published_faults() {
    for kit in kits() {
        for name in ["record.cmd", "record-xperf.cmd", "record.ps1"] {
            let text = file(&kit, name);
            assert!(text.is_ascii(), "{name}");
            assert!(!text.contains("@NAME@"), "{name}");
            for line in text.lines().filter(|line| line.starts_with("start ")) {
                assert!(line.starts_with("start \"\" /b /wait "), "{line}");
            }
        }
        let batch = file(&kit, "record.cmd");
        assert!(batch.contains("set /a packets=%action%+1"));
        assert!(batch.lines().count() == batch.matches("\r\n").count());
    }
}

#[test]
fn the_readme_tells_what_will_be_judged() {
    for kit in kits() {
        let readme = file(&kit, "README.md");
        for theory in kit.investigation.theories() {
            assert!(readme.contains(&format!("- `{theory}`")), "{theory}");
        }
        assert!(readme.contains("an estimate"), "{readme}");
    }
}

/// PowerShell itself reads the scripts, where there is one.
#[test]
fn powershell_parses_the_scripts() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (number, kit) in kits().enumerate() {
        let path = folder.path().join(format!("{number}.ps1"));
        std::fs::write(&path, file(&kit, "record.ps1")).unwrap();
        files.push(path);
    }
    let parse = "$all = @(); foreach ($f in $args) { $e = $null; $t = $null; \
                 [void][Management.Automation.Language.Parser]::ParseFile($f, [ref]$t, [ref]$e); $all += \
                 $e }; $all | ForEach-Object { $_.ToString() }; exit $all.Count";
    let script = folder.path().join("parse.ps1");
    std::fs::write(&script, parse).unwrap();
    let output = Command::new("pwsh")
        .args(["-NoProfile", "-NonInteractive", "-File"])
        .arg(&script)
        .args(&files)
        .output();
    match output {
        Err(error) => eprintln!("left out: there is no pwsh to parse scripts with ({error})"),
        Ok(output) => assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
