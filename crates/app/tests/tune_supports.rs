//! Tests of `laglab tune supports`.

use crate::program;

use std::fs;

use program::laglab;
use symbols::write::{Function, write_pdb};
use symbols::{PdbId, in_store};

/// GUID of the PDB to which the program files refer.
const GUID: [u8; 16] = *b"0123456789abcdef";

/// Makes a small program file that follows the PE specification. It has one section with a reference to a PDB
/// and the text `names`. It has no version.
fn program_file(names: &str) -> Vec<u8> {
    const SECTION: u32 = 0x1000;
    const FILE_AT: u32 = 0x200;
    let put = |to: &mut Vec<u8>, numbers: &[u32]| {
        to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    };
    let mut section = Vec::new();
    put(&mut section, &[0, 0, 0, 2, 37, SECTION + 64, FILE_AT + 64]);
    section.resize(64, 0);
    section.extend(b"RSDS");
    section.extend(GUID);
    put(&mut section, &[1]);
    section.extend(b"ntkrnlmp.pdb\0");
    section.resize(128, 0);
    section.extend(names.encode_utf16().flat_map(u16::to_le_bytes));
    section.resize(512, 0);

    let mut file = vec![0; 0x80];
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file.extend(b"PE\0\0");
    file.extend(0x8664_u16.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend([0; 12]);
    file.extend(240_u16.to_le_bytes());
    file.extend(0x22_u16.to_le_bytes());
    let mut optional = vec![0; 240];
    optional[..2].copy_from_slice(&0x20b_u16.to_le_bytes());
    optional[108..112].copy_from_slice(&16_u32.to_le_bytes());
    // The debug directory is the seventh data directory.
    optional[160..164].copy_from_slice(&SECTION.to_le_bytes());
    optional[164..168].copy_from_slice(&28_u32.to_le_bytes());
    file.extend(optional);
    file.extend(b".rdata\0\0");
    put(
        &mut file,
        &[512, SECTION, 512, FILE_AT, 0, 0, 0, 0x4000_0040],
    );
    file.resize(FILE_AT as usize, 0);
    file.extend(section);
    file
}

#[test]
fn a_folder_of_kernels_is_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let put =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
    put("new.exe", &program_file("GlobalTimerResolutionRequests\0"));
    put("old.exe", &program_file("KernelSEHOPEnabled\0"));
    put("readme.txt", b"kernels");
    let path = folder.path().to_str().expect("a path");
    let output = laglab(&[
        "--json",
        "tune",
        "supports",
        "globaltimer",
        "--kernel",
        path,
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows: Vec<_> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["file"].as_str(), row["knows"].as_bool()))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("new.exe"), Some(true)),
            (Some("old.exe"), Some(false))
        ]
    );
}

#[test]
fn a_kernel_without_the_name_is_a_no() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = folder.path().join("ntoskrnl.exe");
    fs::write(&kernel, program_file("KernelSEHOPEnabled\0")).expect("written");
    let path = kernel.to_str().expect("a path");
    let output = laglab(&[
        "tune",
        "supports",
        "GlobalTimerResolutionRequests",
        "--kernel",
        path,
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn other_files_are_refused() {
    let output = laglab(&[
        "tune",
        "supports",
        "GlobalTimerResolutionRequests",
        "--kernel",
        "truth.json",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("not a Windows program file"), "{error}");
}

/// The program file lacks the name, as if the name were composed at run time. But the PDB has a symbol with
/// this name.
#[test]
fn a_kernel_is_searched_with_symbols_of_a_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = folder.path().join("ntoskrnl.exe");
    fs::write(&kernel, program_file("KernelSEHOPEnabled\0")).expect("written");
    let id = PdbId::new("ntkrnlmp.pdb", etl::Guid(GUID), 1).expect("a name");
    let store = folder.path().join("store");
    let pdb = store.join(in_store(&id));
    fs::create_dir_all(pdb.parent().expect("a folder")).expect("made");
    let variable = Function {
        name: "KiGlobalTimerResolutionRequests".to_owned(),
        rva: 0x1000,
        size: 16,
    };
    let bytes = write_pdb(&id, "timer.obj", &[variable]).expect("a PDB");
    fs::write(pdb, bytes).expect("written");
    let kernel = kernel.to_str().expect("a path");
    let ask = |symbols: &str| {
        laglab(&[
            "--json",
            "tune",
            "supports",
            "globaltimer",
            "--kernel",
            kernel,
            "--symbols",
            symbols,
        ])
    };
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    let output = ask(empty.to_str().expect("a path"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("no symbols of") && said.contains("ntkrnlmp.pdb"),
        "{said}"
    );
    let output = ask(&format!("srv*{}", store.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(rows[0]["symbol"], "KiGlobalTimerResolutionRequests");
    assert_eq!(ask("srv*").status.code(), Some(2));
}
