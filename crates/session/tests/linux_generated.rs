//! Tests that functions of generated code in a new recording have the names that `perf script` prints.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use import_linux::LinuxRecording;
use session::{SymbolOptions, Symbolication};
use tables::{Cache, Identities, ImageTracker, Options, Store};
use testdata::perf;

/// Programs that compute in a function with this name.
const NODE: &str = "function computeSlowly(n) { return n < 2 ? n : computeSlowly(n - 1) + computeSlowly(n - 2); }\n\
    const until = Date.now() + 1000; while (Date.now() < until) computeSlowly(20);\n";
const PYTHON: &str = "import time\ndef computeSlowly(n): return n if n < 2 else computeSlowly(n - 1) + computeSlowly(n - 2)\n\
    until = time.time() + 1\nwhile time.time() < until: computeSlowly(14)\n";

/// Program of Python that fails if this Python cannot write a map.
const CAN_WRITE_MAP: &str =
    "import sys, sysconfig; sys.exit(sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE') != 1)";

/// Part of the names of the function.
const FUNCTION: &str = "computeSlowly";

/// Call chain that perf prints: process, time in nanoseconds, and addresses with their names.
type Chain = (u32, u64, Vec<(u64, String)>);

/// Returns the parts of call chains that perf names by a map.
fn printed(folder: &Path) -> Vec<Chain> {
    let arguments = [
        "script",
        "--ns",
        "-F",
        "pid,time,ip,sym,dso",
        "-i",
        "perf.data",
    ];
    let text = perf::run(&arguments, folder);
    let mut chains: Vec<Chain> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some((pid, time)) = line.strip_suffix(':').and_then(|it| it.split_once(' ')) {
            let time = time.trim().replace('.', "").parse().unwrap();
            chains.extend(pid.parse().ok().map(|pid| (pid, time, Vec::new())));
        } else if let Some((address, rest)) = line.split_once(' ')
            && let Some((name, file)) = rest.rsplit_once(" (")
            && file.starts_with("/tmp/perf-")
            && name != "[unknown]"
        {
            let address = u64::from_str_radix(address, 16).unwrap();
            let (_, _, addresses) = chains.last_mut().unwrap();
            addresses.push((address, name.to_owned()));
        }
    }
    chains
}

/// Compares the names. Returns the number of equal ones, and those that differ.
fn compare(folder: &Path, chains: &[Chain]) -> (usize, BTreeSet<String>) {
    let store = imports::open_store(&[folder.join("perf.data")], Cache::Off).unwrap();
    let identities = Identities::read(&store, Options::default()).unwrap();
    let options = SymbolOptions::default();
    let symbols = Symbolication::new(&options, &store, &identities.images).unwrap();
    let images = ImageTracker::new(&identities.images);
    let start = first_ns(&store);
    let (mut equal, mut different) = (0, BTreeSet::new());
    for (process, time, addresses) in chains {
        for (address, name) in addresses {
            let row = images.lookup(*process, *address, (time - start) as i64);
            let found = row.and_then(|row| symbols.function(row, *address));
            if found.as_deref() == Some(&format!("anon!{name}")) {
                equal += 1;
            } else {
                different.insert(format!("{address:x}: {found:?}, perf {name}"));
            }
        }
    }
    (equal, different)
}

fn first_ns(store: &Store) -> u64 {
    let recording = LinuxRecording::from_store(store).unwrap();
    let chunks = recording.events().chunks().iter();
    chunks.filter_map(|chunk| chunk.first_ns).min().unwrap()
}

/// Returns the programs on this machine that can write a map, as commands of a shell.
fn commands(folder: &Path) -> BTreeMap<&'static str, String> {
    std::fs::write(folder.join("x.js"), NODE).unwrap();
    std::fs::write(folder.join("x.py"), PYTHON).unwrap();
    let can_run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let mut commands = BTreeMap::new();
    if can_run("node", &["--version"]) {
        commands.insert(
            "node",
            format!("exec node --perf-basic-prof {}/x.js", folder.display()),
        );
    }
    for python in ["python3", "python3.12", "python3.13"] {
        if can_run(python, &["-c", CAN_WRITE_MAP]) {
            commands.insert(
                "python",
                format!("exec {python} -X perf {}/x.py", folder.display()),
            );
        }
    }
    commands
}

#[test]
fn generated_functions_have_the_names_that_perf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let commands = commands(folder);
    if commands.is_empty() {
        testdata::skip("neither node nor a Python that writes a map is on this machine");
    }
    for (program, command) in commands {
        // Python is mostly built without frame pointers. Few of its stacks then show a generated function.
        let options = ["-g", "-F", "4999"];
        if perf::record(folder, "cpu-clock", &options, &command).is_none() {
            return;
        }
        let chains = printed(folder);
        let processes: BTreeSet<u32> = chains
            .iter()
            .filter(|(_, _, addresses)| addresses.iter().any(|(_, name)| name.contains(FUNCTION)))
            .map(|(process, ..)| *process)
            .collect();
        let (equal, different) = compare(folder, &chains);
        assert!(
            equal > 0 && different.is_empty(),
            "{program}: {equal}, {different:#?}"
        );

        // Without the map, nothing names the functions. With it in the file of facts, all have names again.
        let mut facts = String::new();
        for process in &processes {
            let path = format!("/tmp/perf-{process}.map");
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                facts += &format!("{path}:{line}\n");
            }
            std::fs::remove_file(path).unwrap();
        }
        let of_processes: Vec<Chain> = chains
            .into_iter()
            .filter(|(process, ..)| processes.contains(process))
            .collect();
        assert_eq!(compare(folder, &of_processes).0, 0, "{program}");
        let file = folder.join("perf.data.proc");
        std::fs::write(&file, facts).unwrap();
        let (with_facts, different) = compare(folder, &of_processes);
        assert!(
            with_facts > 0 && different.is_empty(),
            "{program}: {different:#?}"
        );
        std::fs::remove_file(file).unwrap();
    }
}
