//! Tests of kits: captures match investigations, profiles pass the checker and select the kinds that the kit
//! records, and scripts contain the correct commands.

use record::wprp::{check, select};
use record::{Detail, Investigation, Kit, Machine, Variant};

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
        [Machine::TYPICAL, SERVER, SMALL]
            .map(|machine| Kit::new(investigation, machine))
            .into_iter()
            .flat_map(|kit| Detail::ALL.map(|detail| kit.with_detail(detail)))
    })
}

fn file(kit: &Kit, name: &str) -> String {
    let files = kit.files();
    let found = files.into_iter().find(|file| file.name == name);
    found.unwrap().text
}

#[test]
fn profiles_of_kits_pass_the_checker() {
    for kit in kits() {
        assert_eq!(check(&kit.profile()).unwrap(), [], "{kit:?}");
    }
}

#[test]
fn profiles_of_kits_select_what_the_kit_records() {
    for kit in kits() {
        for mode in ["File", "Memory"] {
            let id = format!("{}.{}.{mode}", kit.name(), kit.detail.name());
            let selected = select(&kit.profile(), Some(&id)).unwrap();
            assert_eq!(selected.capture, kit.capture(), "{kit:?}");
            assert_eq!(selected.unused, [""; 0]);
        }
    }
}

/// In WPR, `NAME.light` selects the light level. The verbose level is the default.
#[test]
fn scripts_start_the_requested_level_of_detail() {
    let kit = Kit::new(Investigation::LongWait, Machine::TYPICAL);
    let light = kit.with_detail(Detail::Light);
    for (kit, named) in [
        (kit, "!laglab-long-wait"),
        (light, "!laglab-long-wait.light"),
    ] {
        let selected = select(&kit.profile(), named.strip_prefix('!')).unwrap();
        assert_eq!(selected.capture, kit.capture());
        let batch = file(&kit, "record.cmd");
        assert!(
            batch.contains(&format!("laglab-long-wait.wprp{named}\"")),
            "{batch}"
        );
        let powershell = file(&kit, "record.ps1");
        assert!(powershell.contains(&format!("laglab-long-wait.wprp{named}'")));
    }
    assert!(file(&kit, "record-xperf.cmd").contains("-stackwalk CSwitch"));
    assert!(!file(&light, "record-xperf.cmd").contains("-stackwalk"));
    assert_eq!(kit.profile(), light.profile());
}

#[test]
fn the_light_level_costs_less_and_lists_what_it_leaves_out() {
    let kit = Kit::new(Investigation::LongWait, Machine::TYPICAL);
    let light = kit.with_detail(Detail::Light);
    assert!(2 * light.cost().busy_bytes_per_second < kit.cost().busy_bytes_per_second);
    let readme = file(&light, "README.md");
    assert!(readme.contains("stacks of context switches"), "{readme}");
    // The theory `busy-waiting` needs samples with stacks and images. It does not belong to this
    // investigation, so the light level does not record them.
    let not_judged = readme.split("Theories it cannot judge: ").nth(1).unwrap();
    assert!(
        not_judged
            .lines()
            .next()
            .unwrap()
            .contains("`busy-waiting`")
    );
}

#[test]
fn a_large_server_records_less_on_another_node() {
    let kit = Kit::new(Investigation::Dpc, SERVER);
    assert_eq!((kit.variant, kit.node), (Variant::LargeServer, Some(1)));
    assert!(file(&kit, "record.cmd").contains("/high /node 1 wpr.exe -start"));
    assert!(file(&kit, "record.ps1").contains("$node = 1\r\n"));
    let ordinary = Kit::new(Investigation::Dpc, Machine::TYPICAL);
    assert!(!file(&ordinary, "record.cmd").contains("/node"));
    assert!(file(&ordinary, "record.ps1").contains("$node = $null\r\n"));
    let per_cpu = |machine: Machine| {
        let kit = Kit::new(Investigation::LongWait, machine);
        kit.cost().busy_bytes_per_second / u64::from(machine.cpus)
    };
    assert!(per_cpu(SERVER) * 2 < per_cpu(Machine::TYPICAL));
}

/// A published recording script has four faults: typographic dashes, a missing `/wait`, one ping too few, and a
/// stop that can run before the start has ended. The scripts of kits must not have these faults.
#[test]
fn scripts_avoid_the_faults_of_the_published_script() {
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
        assert!(batch.contains("set /a pings=%action%+1"));
        assert!(batch.lines().count() == batch.matches("\r\n").count());
    }
}

#[test]
fn the_readme_lists_the_theories() {
    for kit in kits() {
        let readme = file(&kit, "README.md");
        for theory in kit.investigation.theories() {
            assert!(readme.contains(&format!("- `{theory}`")), "{theory}");
        }
        assert!(readme.contains("an estimate"), "{readme}");
    }
}

#[test]
fn powershell_scripts_parse() {
    let mut parser = tree_sitter::Parser::new();
    let language = tree_sitter_powershell::LANGUAGE.into();
    parser.set_language(&language).unwrap();
    for kit in kits() {
        let text = file(&kit, "record.ps1");
        let tree = parser.parse(&text, None).unwrap();
        assert!(!tree.root_node().has_error(), "{kit:?}: {text}");
    }
}

/// The test searches for code that Windows PowerShell 5.1 and PowerShell 7 handle differently and that would
/// end the script.
#[test]
fn powershell_scripts_run_on_5_1() {
    for kit in kits() {
        let text = file(&kit, "record.ps1");
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .collect();
        for line in &code {
            assert!(!line.contains("&&") && !line.contains("??"), "{line}");
            // Only `Invoke-Line` may run programs. The operator `&` would convert their output on stderr to
            // errors, and change quotation marks inside arguments.
            assert!(!line.trim_start().starts_with("& "), "{line}");
            let redirects = line.contains("2>&1");
            assert!(!redirects || line.contains(">nul 2>&1"), "{line}");
        }
        let parameters = text.split("Set-StrictMode").next().unwrap();
        let parameters = parameters.split("param(").nth(1).unwrap();
        assert!(!parameters.contains("$PSScriptRoot"), "{parameters}");
    }
}
