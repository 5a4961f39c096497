//! Tests that the names of functions in a new recording are equal to the names that `perf script` prints.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use import_linux::LinuxRecording;
use session::{SymbolOptions, Symbolication};
use tables::{Cache, Identities, ImageTracker, Options, Store};
use testdata::perf;

/// Program that spends its time in two functions, one of which is static.
const SOURCE: &str = "#include <unistd.h>\n\
    static volatile long sink;\n\
    static void __attribute__((noinline)) spin_inside(void) { for (long i = 0; i < 100000; i++) sink += i; }\n\
    void __attribute__((noinline)) spin_outside(void) { spin_inside(); getppid(); }\n\
    int main(void) { for (int i = 0; i < 2000; i++) spin_outside(); return 0; }\n";

/// Returns the names of the running kernel's functions by address.
fn kernel_names() -> BTreeMap<u64, BTreeSet<String>> {
    let mut names: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in std::fs::read_to_string("/proc/kallsyms").unwrap().lines() {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        names
            .entry(address)
            .or_default()
            .insert(words.nth(1).unwrap().to_owned());
    }
    names
}

/// Records the program. Returns the tables of the recording, or `None` if perf cannot record here.
fn record(folder: &Path) -> Option<Store> {
    std::fs::write(folder.join("spin.c"), SOURCE).unwrap();
    let compiled = Command::new("gcc")
        .args([
            "-O1",
            "-fno-omit-frame-pointer",
            "-Wl,--build-id=sha1",
            "-o",
            "spin",
            "spin.c",
        ])
        .current_dir(folder)
        .status();
    assert!(compiled.expect("gcc is needed").success());
    let options = ["-g", "--buildid-mmap"];
    let file = perf::record(folder, "cpu-clock", &options, "./spin")?;
    std::fs::copy("/proc/kallsyms", folder.join("perf.data.proc")).unwrap();
    Some(imports::open_store(&[file], Cache::Off).unwrap())
}

#[test]
fn functions_have_the_names_that_perf_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = record(folder.path()) else {
        return;
    };
    let identities = Identities::read(&store, Options::default()).unwrap();
    let options = SymbolOptions {
        path: Some("/".to_owned()),
        ..SymbolOptions::default()
    };
    let symbols = Symbolication::new(&options, &store, &identities.images).unwrap();
    let images = ImageTracker::new(&identities.images);
    let base = |process: u32, file: &str| {
        let of = &identities.images;
        let mut rows = 0..of.base_address.len();
        let is_it = |row: &usize| {
            of.process_id.get(*row) == Some(process) && of.path.get(*row) == Some(file)
        };
        rows.find(is_it).map(|row| of.base_address[row])
    };
    let start = LinuxRecording::from_store(&store)
        .unwrap()
        .events()
        .chunks()
        .iter()
        .filter_map(|chunk| chunk.first_ns)
        .min();
    let kernel = kernel_names();

    // perf prints a line `PID TIME:` for each event. The next lines are the call chain. Each of them has an address, a
    // name and a file.
    let fields = [
        "script",
        "--ns",
        "-F",
        "pid,time,ip,sym,dso",
        "-i",
        "perf.data",
    ];
    let text = perf::run(&fields, folder.path());
    let (mut process, mut time_ns) = (None, 0);
    let (mut equal, mut different) = (BTreeMap::<&str, usize>::new(), BTreeSet::new());
    for line in text.lines() {
        let line = line.trim();
        if let Some((pid, time)) = line.strip_suffix(':').and_then(|it| it.split_once(' ')) {
            // perf prints the id −1 if it does not know the process, for example because the process has ended.
            process = pid.parse().ok();
            let clock: u64 = time.trim().replace('.', "").parse().unwrap();
            time_ns = (clock - start.unwrap()) as i64;
            continue;
        }
        let Some((process, (address, rest))) = process.zip(line.split_once(' ')) else {
            continue;
        };
        let Some((name, file)) = rest.strip_suffix(')').and_then(|it| it.rsplit_once(" (")) else {
            continue;
        };
        let of = match file {
            "[kernel.kallsyms]" => "kernel",
            file if file.ends_with("/spin") => "program",
            file if file.contains("/libc.so") => "libc",
            _ => continue,
        };
        if name == "[unknown]" {
            continue;
        }
        let mut address = u64::from_str_radix(address, 16).unwrap();
        if of != "kernel" {
            // For files of programs, perf prints offsets in the file.
            let Some(base) = base(process, file) else {
                continue;
            };
            address += base;
        }
        let found = images
            .lookup(process, address, time_ns)
            .and_then(|row| symbols.name(row, address));
        let found = found.unwrap_or_default();
        let (_, function) = found.rsplit_once('!').unwrap_or_default();
        let function = function
            .rsplit_once("+0x")
            .map_or(function, |(function, _)| function);
        // Several names of kernel functions can have the same address.
        let is_same = || {
            let names = kernel.range(..=address).next_back();
            of == "kernel"
                && names.is_some_and(|(_, names)| names.contains(name) && names.contains(function))
        };
        match function == name || is_same() {
            true => *equal.entry(of).or_default() += 1,
            // perf may have found a separate file with debug information of the library. perf also knows kernel code
            // that is used only while the kernel starts. In both cases, only perf finds a name. The test accepts this.
            false if of != "program" && found.is_empty() => {}
            false => {
                different.insert(format!("{of} {address:x}: {found}, perf {name}"));
            }
        }
    }
    assert!(different.is_empty(), "{equal:?}, different: {different:#?}");
    assert!(equal["program"] > 100 && equal["kernel"] > 20, "{equal:?}");
    assert!(text.contains("spin_inside"));
    assert_eq!(
        symbols
            .missing()
            .iter()
            .filter(|it| it.module == "spin")
            .count(),
        0
    );
}
