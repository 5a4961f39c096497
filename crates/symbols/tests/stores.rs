//! Tests of PDBs in folders: all layouts of symbol stores, and all forms of files in them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use etl::Guid;
use symbols::write::{Function, write_pdb};
use symbols::{Module, Outcome, PdbError, PdbId, PdbSource, Stores, Symbolizer, UnresolvedReason};

fn id(age: u32) -> PdbId {
    let guid = Guid::new(0x1234, 0x5678, 0x9abc, *b"laglab!?");
    PdbId::new("Made.pdb", guid, age).unwrap()
}

fn pdb(id: &PdbId) -> Vec<u8> {
    let function = Function {
        name: "Work".to_owned(),
        rva: 0x1000,
        size: 0x100,
    };
    write_pdb(id, "made.obj", &[function]).unwrap()
}

/// Finds a PDB in the symbol path. In `path`, each `@` is replaced by `folder`.
fn find(folder: &Path, path: &str, id: &PdbId) -> Result<symbols::Pdb, symbols::NotFound> {
    let path = path.replace('@', folder.to_str().unwrap());
    Stores::offline(path.parse().unwrap()).find(id)
}

fn put(folder: &Path, file: &str, bytes: &[u8]) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn key(age: u32) -> String {
    format!("0000123456789ABC6C61676C6162213F{age:X}")
}

fn cabinet(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    builder
        .add_folder(cab::CompressionType::MsZip)
        .add_file(name);
    let mut writer = builder.build(std::io::Cursor::new(Vec::new())).unwrap();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn stores_are_read_in_every_layout_and_form() {
    let right = pdb(&id(0x1a));
    let key = key(0x1a);
    let compressed = cabinet("Made.pdb", &right);
    let elsewhere = tempfile::tempdir().unwrap();
    put(elsewhere.path(), "any.name", &right);
    let pointer = format!("PATH:{}\r\n", elsewhere.path().join("any.name").display());
    for (file, bytes) in [
        (format!("Made.pdb/{key}/Made.pdb"), &right[..]),
        (format!("made.PDB/{}/MADE.pdb", key.to_lowercase()), &right),
        (format!("Ma/Made.pdb/{key}/Made.pdb"), &right),
        (format!("Made.pdb/{key}/Made.pd_"), &compressed),
        (format!("Made.pdb/{key}/file.ptr"), pointer.as_bytes()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), &file, bytes);
        for path in ["srv*@", "cache*@", "@", "nowhere;srv*@/none*@"] {
            assert!(
                find(folder.path(), path, &id(0x1a)).is_ok(),
                "{file}: {path}"
            );
            assert!(
                find(folder.path(), path, &id(0x1b)).is_err(),
                "{file}: {path}"
            );
        }
    }
}

#[test]
fn another_build_is_passed_over_and_told() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "old/made.pdb", &pdb(&id(1)));
    put(folder.path(), "new/made.pdb", &pdb(&id(2)));
    put(folder.path(), "bad/made.pdb", b"MSCF or what");
    assert!(find(folder.path(), "@/bad;@/old;@/new", &id(2)).is_ok());

    let missing = find(folder.path(), "@/bad;@/old;srv*@/store", &id(2)).unwrap_err();
    let outcomes: Vec<_> = missing.attempts.iter().map(|a| &a.outcome).collect();
    assert!(matches!(
        outcomes[..],
        [
            Outcome::Refused(PdbError::Unreadable(_)),
            Outcome::Absent,
            Outcome::Refused(PdbError::OtherBuild { .. }),
            Outcome::Absent,
            Outcome::Absent,
        ]
    ));
    let text = missing.to_string();
    assert!(
        text.contains(&format!("it is {}, expected {}", key(1), key(2))),
        "{text}"
    );
}

#[test]
fn files_that_are_no_pdb_are_refused_by_the_name_of_their_format() {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let old = "Microsoft C/C++ program database 2.00\r\n\u{1a}JG\0\0";
    for (bytes, format) in [
        (&b""[..], "empty"),
        (b"BSJB\x01\0\x01\0", "portable PDB"),
        (lfs.as_bytes(), "Git LFS"),
        (b"\r\n<!DOCTYPE html><html>", "HTML page"),
        (b"\xEF\xBB\xBF<html>", "HTML page"),
        (&cabinet("Made.pdb", &pdb(&id(1))), "cabinet"),
        (old.as_bytes(), "program database 2.00"),
        (b"\x7FELF", "does not start as PDBs do"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "made.pdb", bytes);
        let refusal = find(folder.path(), "@", &id(1)).unwrap_err().to_string();
        assert!(refusal.contains(format), "{format}: {refusal}");
        assert!(!refusal.contains("times the file's size"), "{refusal}");
    }
}

#[test]
fn servers_are_not_asked_unless_that_is_allowed() {
    let path = "srv*https://example.invalid/symbols".parse().unwrap();
    let missing = Stores::offline(path).find(&id(1)).unwrap_err();
    assert_eq!(missing.attempts.len(), 1);
    assert_eq!(missing.attempts[0].place, "https://example.invalid/symbols");
    assert!(matches!(
        missing.attempts[0].outcome,
        Outcome::NetworkNotAllowed
    ));
}

/// Source that returns a PDB for any identity, and counts the requests.
struct Counting(Arc<AtomicUsize>);

impl PdbSource for Counting {
    fn find(&mut self, id: &PdbId) -> Result<symbols::Pdb, symbols::NotFound> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let file = std::io::Cursor::new(pdb(id));
        Ok(symbols::Pdb::open(file, id).unwrap())
    }
}

#[test]
fn addresses_are_looked_up_once() {
    let opened = Arc::default();
    let mut symbolizer = Symbolizer::new(Counting(Arc::clone(&opened)));
    let module = |n: u32| Module {
        name: format!("m{n}.sys"),
        time_date_stamp: Some(n),
        size: Some(0x2000),
        pdb: Some(id(n)),
        elf: None,
    };
    let modules: Vec<_> = (1..=40).map(|n| symbolizer.add(module(n))).collect();
    assert_eq!(symbolizer.add(module(3)), modules[2]);

    // The addresses alternate between modules. If the addresses were resolved one by one, each PDB would be
    // opened repeatedly.
    let addresses = (0..10).flat_map(|rva| modules.iter().map(move |m| (*m, 0x1000 + rva)));
    symbolizer.prepare(addresses);
    for rva in [0, 9] {
        for (n, module) in modules.iter().enumerate() {
            let offset = if rva == 0 {
                String::new()
            } else {
                format!("+{rva:#x}")
            };
            let name = format!("m{}.sys!Work{offset}", n + 1);
            assert_eq!(symbolizer.name(*module, 0x1000 + rva), name);
        }
    }
    assert_eq!(opened.load(Ordering::Relaxed), 40);
    assert_eq!(symbolizer.missing().count(), 0);
}

#[test]
fn what_is_missing_is_told() {
    let mut symbolizer = Symbolizer::new(Stores::offline("srv*nowhere".parse().unwrap()));
    let module = |name: &str, pdb| Module {
        name: name.to_owned(),
        time_date_stamp: None,
        size: None,
        pdb,
        elf: None,
    };
    let unknown = symbolizer.add(module("a.sys", None));
    let known = symbolizer.add(module("b.sys", Some(id(1))));
    symbolizer.add(module("never asked for.sys", None));
    assert_eq!(symbolizer.missing().count(), 0);
    assert_eq!(symbolizer.name(unknown, 0x10), "a.sys+0x10");
    assert_eq!(symbolizer.name(known, 0x1010), "b.sys+0x1010");
    let missing: Vec<_> = symbolizer.missing().collect();
    assert_eq!(missing.len(), 2);
    assert_eq!(missing[0].module.name, "a.sys");
    assert!(matches!(missing[0].why, UnresolvedReason::Unidentified));
    assert_eq!(missing[1].why.to_string(), "nowhere: not found");
}

#[test]
fn a_damaged_cabinet_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let whole = cabinet("Made.pdb", &pdb(&id(1)));
    let file = format!("Made.pdb/{}/Made.pd_", key(1));
    put(folder.path(), &file, &whole[..whole.len() / 2]);
    let missing = find(folder.path(), "srv*@", &id(1)).unwrap_err();
    let failed = |a: &symbols::Attempt| matches!(a.outcome, Outcome::Failed(_));
    assert!(missing.attempts.iter().any(failed), "{missing}");
}
