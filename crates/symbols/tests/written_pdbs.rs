//! Reads PDBs that the writer of this crate made. The reader is independent of the writer.

use std::io::Cursor;

use etl::Guid;
use symbols::write::{Function, WriteError, write_pdb};
use symbols::{Pdb, PdbError, PdbId, symbols_named};
use testdata::Rng;

fn id() -> PdbId {
    PdbId::new("made.pdb", Guid::new(1, 2, 3, [4; 8]), 7).unwrap()
}

fn function(name: &str, rva: u32, size: u32) -> Function {
    let name = name.to_owned();
    Function { name, rva, size }
}

#[test]
fn every_address_of_a_function_is_found() {
    let mut rng = Rng(11);
    for count in [0, 1, 2, 5000] {
        let mut rva = 0x1000;
        let functions: Vec<Function> = (0..count)
            .map(|n| {
                let size = 1 + rng.below(600) as u32;
                let function = function(&format!("Module{n}::ƒ<{n}>"), rva, size);
                rva += size;
                function
            })
            .collect();
        let bytes = write_pdb(&id(), "made.obj", &functions).unwrap();
        assert_eq!(bytes.len() % 4096, 0);
        let pdb = Pdb::open(Cursor::new(bytes), &id()).unwrap();
        for Function { name, rva, size } in &functions {
            for rva in [*rva, rva + size / 2, rva + size - 1] {
                let found = pdb.locate(rva).unwrap().unwrap();
                assert_eq!(found.frames[0].function.as_ref(), Some(name));
                assert!(found.function_rva <= rva);
            }
        }
        assert_eq!(pdb.locate(0xFFF).unwrap(), None);
        assert_eq!(pdb.locate(rva).unwrap(), None);
    }
}

#[test]
fn symbols_are_found_by_their_whole_names() {
    let functions = [
        function("KiGlobalTimer", 0x1000, 16),
        function("Other", 0x1010, 16),
    ];
    let bytes = write_pdb(&id(), "made.obj", &functions).unwrap();
    let asked = ["KiGlobalTimer", "KiGlobal", "Other", ""];
    let found = symbols_named(Cursor::new(bytes.clone()), &id(), &asked).unwrap();
    assert_eq!(found, [true, false, true, false]);
    let older = PdbId::new("made.pdb", id().guid(), 6).unwrap();
    let other = symbols_named(Cursor::new(bytes), &older, &asked);
    assert!(matches!(other, Err(PdbError::OtherBuild { .. })));
}

#[test]
fn large_ones_leave_out_the_pages_of_the_map() {
    // The streams need more than 4096 pages. So each map of free pages has more than one page in the file.
    let functions: Vec<Function> = (0..300)
        .map(|n| function(&format!("{n}{}", "x".repeat(60_000)), 0x1000 + n * 16, 16))
        .collect();
    let bytes = write_pdb(&id(), "made.obj", &functions).unwrap();
    assert!(bytes.len() > 2 * 4096 * 4096);
    let pdb = Pdb::open(Cursor::new(bytes), &id()).unwrap();
    for Function { name, rva, .. } in &functions {
        let found = pdb.locate(rva + 3).unwrap().unwrap();
        assert!(found.frames[0].function.as_ref() == Some(name));
    }
}

#[test]
fn decorated_names_are_made_readable() {
    // The example is from Microsoft's documentation of decorated names.
    let functions = [function("?calc@@YAHXZ", 0x1000, 8)];
    let bytes = write_pdb(&id(), "made.obj", &functions).unwrap();
    let pdb = Pdb::open(Cursor::new(bytes), &id()).unwrap();
    let found = pdb.locate(0x1004).unwrap().unwrap();
    assert_eq!(found.frames[0].function.as_deref(), Some("calc"));
}

#[test]
fn what_cannot_be_is_refused() {
    let write = |functions: &[Function]| write_pdb(&id(), "made.obj", functions);
    for functions in [
        vec![function("in the headers", 0xFF0, 16)],
        vec![function("empty", 0x1000, 0)],
        vec![function("past the end", u32::MAX, 1)],
        vec![function("a", 0x1000, 17), function("on it", 0x1010, 16)],
    ] {
        assert!(matches!(write(&functions), Err(WriteError::Place { .. })));
    }
    for name in ["", "a\0b", &"x".repeat(0xFF01)] {
        let error = WriteError::Name(name.len());
        assert_eq!(write(&[function(name, 0x1000, 1)]), Err(error));
    }
}

/// Reads a PDB with many functions, and PDBs of which each word in turn is a large number.
#[cfg(target_os = "linux")]
#[test]
fn memory_grows_only_with_the_size_of_a_forged_pdb() {
    use std::path::Path;

    use testdata::memory::{Bound, Forged, check};

    const LARGE: [u32; 3] = [0x00FF_FFFF, 0x7FFF_FFF0, u32::MAX];
    const ONE_FUNCTION: &str = "one.pdb";
    let bound = Bound {
        base: 64 << 20,
        per_byte: 30,
    };
    let read = |path: &Path| -> Result<(), PdbError> {
        let bytes = std::fs::read(path)?;
        if path.ends_with(ONE_FUNCTION) {
            for at in (32..bytes.len()).step_by(4) {
                if bytes[at..at + 4] == [0; 4] {
                    continue;
                }
                for large in LARGE {
                    let mut forged = bytes.clone();
                    forged[at..at + 4].copy_from_slice(&large.to_le_bytes());
                    if let Ok(pdb) = Pdb::open(Cursor::new(forged), &id()) {
                        let _ = pdb.locate(0x1000);
                    }
                }
            }
        }
        Pdb::open(Cursor::new(bytes), &id())?.locate(0x1000)?;
        Ok(())
    };
    check(
        "written_pdbs::memory_grows_only_with_the_size_of_a_forged_pdb",
        bound,
        read,
        || {
            let functions = |count: u32| {
                let of = |n: u32| function(&format!("{n}"), 0x1000 + n * 16, 16);
                let functions: Vec<Function> = (0..count).map(of).collect();
                write_pdb(&id(), "made.obj", &functions).unwrap()
            };
            let forged = |name, file, count| Forged {
                name,
                file,
                bytes: functions(count),
                expanded: 0,
                opens: true,
            };
            vec![
                forged("many functions", "many.pdb", 300_000),
                forged("large numbers", ONE_FUNCTION, 1),
            ]
        },
    );
}
