//! `laglab tune supports`.

mod program;

use std::fs;

use program::laglab;

/// The least program file there is, with `names` in it. It has no version.
fn program_file(names: &str) -> Vec<u8> {
    let mut file = vec![0; 0x80];
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file.extend(b"PE\0\0");
    file.extend(0x8664_u16.to_le_bytes());
    file.extend([0; 14]);
    file.extend(240_u16.to_le_bytes());
    file.extend(0x22_u16.to_le_bytes());
    let mut optional = vec![0; 240];
    optional[..2].copy_from_slice(&0x20b_u16.to_le_bytes());
    optional[108..112].copy_from_slice(&16_u32.to_le_bytes());
    file.extend(optional);
    file.extend(names.encode_utf16().flat_map(u16::to_le_bytes));
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
fn what_is_no_program_is_refused() {
    let output = laglab(&[
        "tune",
        "supports",
        "GlobalTimerResolutionRequests",
        "--kernel",
        "truth.json",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("no program file of Windows"), "{error}");
}
