//! Tests of files of Linux. gcc compiles the files. The expected functions, offsets and build ids come from `nm`,
//! `objdump` and `readelf`.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use symbols::{BuildId, Elf, ElfId, Module, Stores, Symbolizer};

const SOURCE: &str = "static int __attribute__((noinline)) inner(int x) { return x * 3 + 1; }\n\
    int outer(int x) { return inner(x) + inner(x + 1); }\n\
    int __attribute__((weak, alias(\"outer\"))) weak_outer(int x);\n\
    int main(int argc, char **argv) { return outer(argc) + 1; }\n";

/// Runs a program. Returns its output.
fn run(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = (Command::new(program).args(arguments).current_dir(folder)).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; install gcc and binutils"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles [`SOURCE`] to the file `usr/bin/prog` in a folder. The addresses of the program differ from the offsets in
/// the file, so the tests detect if the two are confused.
fn compile(folder: &Path, options: &[&str]) -> PathBuf {
    fs::create_dir_all(folder.join("usr/bin")).unwrap();
    fs::write(folder.join("prog.c"), SOURCE).unwrap();
    let fixed = [
        "-no-pie",
        "-Wl,--build-id=sha1",
        "-o",
        "usr/bin/prog",
        "prog.c",
    ];
    run("gcc", &[options, &fixed].concat(), folder);
    folder.join("usr/bin/prog")
}

fn build_id(file: &Path) -> String {
    let notes = run("readelf", &["-n", file.to_str().unwrap()], Path::new("/"));
    notes
        .split("Build ID: ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
}

/// Returns the names of the functions that `nm` prints, by their offset in the file.
fn functions(file: &Path) -> BTreeMap<u64, BTreeSet<String>> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let file = file.to_str().unwrap();
    let sections = run("objdump", &["-h", "-j", ".text", file], Path::new("/"));
    let line = sections
        .lines()
        .find(|line| line.contains(" .text "))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (size, address, offset) = (
        hexadecimal(words[2]),
        hexadecimal(words[3]),
        hexadecimal(words[5]),
    );
    let mut functions: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for line in run("nm", &[file], Path::new("/")).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [at, "t" | "T" | "w" | "W", name] = words[..]
            && let Some(distance) = hexadecimal(at).checked_sub(address)
            && distance < size
        {
            functions
                .entry(distance + offset)
                .or_default()
                .insert(name.to_owned());
        }
    }
    functions
}

/// Resolves the offset in the file `prog` with the symbol path. Returns its name and the reason of a failure.
fn resolve(symbols: &Path, path: &str, id: &str, offset: u64) -> (String, String) {
    let path_of_symbols = symbols.to_str().unwrap().parse().unwrap();
    let mut symbolizer = Symbolizer::new(Stores::offline(path_of_symbols));
    let module = symbolizer.add(Module {
        name: "prog".into(),
        time_date_stamp: None,
        size: None,
        pdb: None,
        elf: Some(ElfId {
            is_generated: false,
            path: path.into(),
            build_id: BuildId::parse(id),
        }),
    });
    let name = symbolizer.name(module, u32::try_from(offset).unwrap());
    let why = symbolizer
        .missing()
        .next()
        .map_or(String::new(), |it| it.why.to_string());
    (name, why)
}

#[test]
fn functions_are_those_of_nm() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &["-g"]);
    let (id, functions) = (build_id(&file), functions(&file));
    let names: BTreeSet<&str> = functions.values().flatten().map(String::as_str).collect();
    for name in ["main", "inner", "outer", "weak_outer", "_start"] {
        assert!(names.contains(name), "{names:?}");
    }
    for (offset, expected) in &functions {
        let (name, why) = resolve(folder.path(), "/usr/bin/prog", &id, *offset);
        let function = name
            .strip_prefix("prog!")
            .unwrap_or_else(|| panic!("{name}: {why}"));
        assert!(
            expected.contains(function),
            "{function}, expected {expected:?}"
        );
    }
    // If an address has two names, the name that is not weak is used. An address inside the function gets the name
    // and the offset in the function.
    let outer = functions
        .iter()
        .find(|(_, names)| names.contains("outer"))
        .unwrap()
        .0;
    assert_eq!(
        resolve(folder.path(), "/usr/bin/prog", &id, *outer).0,
        "prog!outer"
    );
    assert_eq!(
        resolve(folder.path(), "/usr/bin/prog", &id, outer + 1).0,
        "prog!outer+0x1"
    );
    assert_eq!(
        resolve(folder.path(), "/usr/bin/prog", &id, 0).0,
        "prog+0x0"
    );
}

#[test]
fn files_are_found_by_path_name_and_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &[]);
    let (id, functions) = (build_id(&file), functions(&file));
    let main = functions
        .iter()
        .find(|(_, names)| names.contains("main"))
        .unwrap()
        .0;
    let cached = format!(".build-id/{}/{}/elf", &id[..2], &id[2..]);
    for place in ["usr/bin/prog", "prog", &cached] {
        let copy = tempfile::tempdir().unwrap();
        let to = copy.path().join(place);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
        assert_eq!(
            resolve(copy.path(), "/usr/bin/prog", &id, *main).0,
            "prog!main",
            "{place}"
        );
    }
    // A path that leads out of the folder must not be opened.
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let (name, why) = resolve(&below, "/../usr/bin/prog", &id, *main);
    assert_eq!(name, format!("prog+{main:#x}"));
    assert!(why.ends_with("below: not found"), "{why}");
}

#[test]
fn debug_files_have_the_names_of_stripped_programs() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &["-g"]);
    let (id, functions) = (build_id(&file), functions(&file));
    let inner = functions
        .iter()
        .find(|(_, names)| names.contains("inner"))
        .unwrap()
        .0;
    let debug = format!(".build-id/{}/{}.debug", &id[..2], &id[2..]);
    for place in [debug.clone(), format!("usr/lib/debug/{debug}")] {
        let copy = tempfile::tempdir().unwrap();
        for file in [&place, "usr/bin/prog"] {
            fs::create_dir_all(copy.path().join(file).parent().unwrap()).unwrap();
        }
        let program = file.to_str().unwrap();
        run("strip", &["-o", "usr/bin/prog", program], copy.path());
        let before = resolve(copy.path(), "/usr/bin/prog", &id, *inner);
        assert_eq!(before.0, format!("prog+{inner:#x}"));
        run(
            "objcopy",
            &["--only-keep-debug", program, &place],
            copy.path(),
        );
        assert_eq!(
            resolve(copy.path(), "/usr/bin/prog", &id, *inner).0,
            "prog!inner"
        );
        // Without the program, the debug file does not resolve addresses, because it lacks the mapped parts.
        fs::remove_file(copy.path().join("usr/bin/prog")).unwrap();
        assert_eq!(
            resolve(copy.path(), "/usr/bin/prog", &id, *inner).0,
            format!("prog+{inner:#x}")
        );
    }
}

#[test]
fn other_builds_and_other_files_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &[]);
    let (found, other) = (build_id(&file), "0123456789abcdef0123456789abcdef01234567");
    let why = resolve(folder.path(), "/usr/bin/prog", other, 0).1;
    let expected = format!("its build id is {found}, expected {other}");
    assert!(why.contains(&expected), "{why}");
    fs::write(folder.path().join("usr/bin/text"), "no program").unwrap();
    let why = resolve(folder.path(), "/usr/bin/text", &found, 0).1;
    assert!(why.contains("is not a readable ELF file"), "{why}");
    let why = resolve(folder.path(), "/usr/bin/prog", "", 0).1;
    assert!(
        why.contains("record with `perf record --buildid-mmap`"),
        "{why}"
    );
    let why = resolve(folder.path(), "[vdso]", "", 0).1;
    assert!(why.contains("it is not a file"), "{why}");
}

#[test]
fn damaged_files_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = compile(folder.path(), &["-g"]);
    let id = BuildId::parse(&build_id(&file)).unwrap();
    let whole = fs::read(&file).unwrap();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut refused = 0;
    for round in 0..400 {
        let mut bytes = whole.clone();
        // The tables that describe the parts of the file are at its start and its end.
        let (from, len) = match round % 2 {
            0 => (0, 1024),
            _ => (bytes.len() - 4096, 4096),
        };
        for _ in 0..=next() % 8 {
            bytes[from + (next() % len) as usize] =
                [0, 0xFF, 0x80, next() as u8][(next() % 4) as usize];
        }
        let damaged = folder.path().join("damaged");
        fs::write(&damaged, &bytes).unwrap();
        match Elf::open(fs::File::open(&damaged).unwrap(), &id) {
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(refused > 10 && refused < 400, "{refused}");
}
