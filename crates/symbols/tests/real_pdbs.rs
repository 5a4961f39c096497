//! Compares PDBs from a real linker with the image that the linker wrote.
//!
//! These tests are left out on Windows, because the environment in which tests for Windows run has no compiler.
#![cfg(not(windows))]

use crate::driver;

use std::fs::{self, File};
use std::io::Cursor;

use driver::Driver;
use etl::Guid;
use symbols::write::{Function, write_pdb};
use symbols::{Pdb, PdbError, PdbId};
use testdata::Rng;

#[test]
fn functions_have_files_lines_and_what_is_inlined() {
    let driver = Driver::compile(true);
    let pdb = Pdb::open(File::open(&driver.pdb).unwrap(), &driver.id).unwrap();
    let dpc = driver.export("TinyDpcRoutine");
    let first = pdb.locate(dpc).unwrap().unwrap();
    assert_eq!(first.function_rva, dpc);
    let outer = first.frames.last().unwrap();
    // Rust writes the qualified name into the debug information. The exported name is not qualified.
    assert_eq!(outer.function.as_deref(), Some("tiny::TinyDpcRoutine"));
    assert!(outer.file.as_ref().unwrap().ends_with("tiny.rs"));
    // At least one address in the function must belong to the inlined function. At this address, the frame of
    // the inlined function must have a line of the inlined function's source code.
    let inlined = (dpc..dpc + 0x40)
        .filter_map(|rva| pdb.locate(rva).unwrap())
        .filter(|location| location.function_rva == dpc)
        .find(|location| {
            let names = location
                .frames
                .iter()
                .map(|frame| frame.function.as_deref());
            names.flatten().any(|name| name.ends_with("count_up"))
        })
        .expect("count_up is inlined");
    let line = |name: &str| {
        let frame = (inlined.frames.iter())
            .find(|frame| frame.function.as_deref().is_some_and(|f| f.ends_with(name)));
        frame.unwrap().line
    };
    assert_eq!(line("TinyDpcRoutine"), Some(22));
    assert!(matches!(line("count_up"), Some(14 | 15)));
}

#[test]
fn public_symbols_give_names_and_no_lines() {
    let driver = Driver::compile(false);
    let pdb = Pdb::open(File::open(&driver.pdb).unwrap(), &driver.id).unwrap();
    for (name, rva) in &driver.exports {
        let found = pdb.locate(rva + 1).unwrap().unwrap();
        assert_eq!(found.function_rva, *rva);
        assert_eq!(found.frames.len(), 1);
        assert_eq!(found.frames[0].function.as_ref(), Some(name));
        assert_eq!(found.frames[0].line, None);
    }
    for rva in [0, 0x10, driver.code_end + 1, u32::MAX] {
        assert_eq!(pdb.locate(rva).unwrap(), None, "{rva:#x}");
    }
}

#[test]
fn a_pdb_of_another_build_is_refused() {
    let driver = Driver::compile(false);
    let open = |guid, age| {
        let id = PdbId::new("tiny.pdb", guid, age).unwrap();
        Pdb::open(File::open(&driver.pdb).unwrap(), &id)
    };
    let id = &driver.id;
    assert!(open(id.guid(), id.age()).is_ok());
    for (guid, age) in [(Guid::ZERO, id.age()), (id.guid(), id.age() + 1)] {
        let error = open(guid, age).unwrap_err();
        assert!(matches!(error, PdbError::OtherBuild { .. }));
        let wanted = PdbId::new("x", guid, age).unwrap().key();
        assert_eq!(
            error.to_string(),
            format!(
                "belongs to another build: it is {}, expected {wanted}",
                id.key()
            )
        );
    }
}

#[test]
fn damaged_pdbs_give_errors() {
    let driver = Driver::compile(true);
    let whole = fs::read(&driver.pdb).unwrap();
    let dpc = driver.export("TinyDpcRoutine");
    let read = |bytes: Vec<u8>| match Pdb::open(Cursor::new(bytes), &driver.id) {
        Ok(pdb) => (dpc..dpc + 0x40)
            .step_by(5)
            .any(|rva| pdb.locate(rva).is_err()),
        Err(_) => true,
    };
    assert!(!read(whole.clone()));
    for part in 0..16 {
        assert!(
            read(whole[..whole.len() * part / 16].to_vec()),
            "{part}/16 of it"
        );
    }
    let mut rng = Rng(3);
    let mut failed = 0;
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + rng.below(64) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.bits() as u8;
        }
        failed += u32::from(read(bytes));
    }
    assert!(failed > 0, "no damage was seen");
}

/// In this test, an inlined function refers to itself as its scope. So its name would be infinitely long.
#[test]
fn names_without_end_are_refused() {
    use pdb_addr2line::pdb::{FallibleIterator, IdData, PDB};
    let driver = Driver::compile(true);
    let mut bytes = fs::read(&driver.pdb).unwrap();
    let mut linked = PDB::open(Cursor::new(bytes.clone())).unwrap();
    let ids = linked.id_information().unwrap();
    let (mut ids, mut forged) = (ids.iter(), None);
    while let Some(item) = ids.next().unwrap() {
        if let Ok(IdData::Function(function)) = item.parse()
            && function.name.as_bytes() == b"count_up"
        {
            forged = Some((item.index().0, function.function_type.0));
        }
    }
    let (own, function_type) = forged.expect("count_up is inlined");
    // The LF_FUNC_ID record contains the scope, the type and the name. The search accepts any scope.
    let tail = [&function_type.to_le_bytes()[..], b"count_up\0"].concat();
    let at = (bytes.windows(6 + tail.len()))
        .position(|window| window.starts_with(&[0x01, 0x16]) && window.ends_with(&tail))
        .unwrap();
    bytes[at + 2..at + 6].copy_from_slice(&own.to_le_bytes());
    let error = Pdb::open(Cursor::new(bytes), &driver.id).unwrap_err();
    assert!(error.to_string().contains("refers to itself"), "{error}");
}

/// Each name must be in the same bucket in the linker's PDB and in our PDB. The buckets are in the hash table
/// of public symbols.
#[test]
fn names_are_hashed_as_linkers_do() {
    let driver = Driver::compile(false);
    let mut functions = Vec::new();
    let linked = buckets(&fs::read(&driver.pdb).unwrap(), |name| {
        functions.push(Function {
            name,
            rva: 0x1000 + 0x10 * functions.len() as u32,
            size: 0x10,
        });
    });
    assert_eq!(functions.len(), driver.exports.len());
    let written = write_pdb(&driver.id, "tiny.obj", &functions).unwrap();
    let mut names = 0;
    assert_eq!(buckets(&written, |_| names += 1), linked);
    assert_eq!(names, functions.len());
}

/// Calls `name` for each public symbol of a PDB. Returns the bit mask of the used buckets in the hash table.
fn buckets(bytes: &[u8], mut name: impl FnMut(String)) -> Vec<u8> {
    use pdb_addr2line::pdb::{FallibleIterator, PDB, StreamIndex, SymbolData};
    let mut pdb = PDB::open(Cursor::new(bytes)).unwrap();
    let symbols = pdb.global_symbols().unwrap();
    let mut symbols = symbols.iter();
    while let Some(symbol) = symbols.next().unwrap() {
        if let Ok(SymbolData::Public(public)) = symbol.parse() {
            name(public.name.to_string().into_owned());
        }
    }
    let number = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    // At byte 16, the DBI stream contains the number of the stream with the hash table.
    let debug = pdb.raw_stream(StreamIndex(3)).unwrap().unwrap();
    let publics = number(debug.as_slice(), 16) as u16;
    let table = pdb.raw_stream(StreamIndex(publics)).unwrap().unwrap();
    let table = table.as_slice();
    let bitmap = 28 + 16 + number(table, 28 + 8);
    table[bitmap..bitmap + 516].to_vec()
}
