//! Writer of small but complete PDBs that contain only the addresses of functions.
//!
//! The PDBs belong to simulated programs with invented functions. With these PDBs, tools that resolve
//! addresses can be tested end to end. A PDB has one compilation unit (compiland) and one code section. For
//! each function, it has a procedure and a public symbol. It also has the hash tables in which debuggers find
//! names. The layout follows [LLVM's documentation] of the format and [Microsoft's own sources].
//!
//! [LLVM's documentation]: https://llvm.org/docs/PDB/index.html
//! [Microsoft's own sources]: https://github.com/microsoft/microsoft-pdb

mod container;
mod name_table;

use etl::write::Payload;

use crate::PdbId;
use container::container;
use name_table::{Public, name_table};

/// Relative address of the first code. Sections are aligned to pages. The headers of an image are in its
/// first page.
const PAGE: u32 = 0x1000;

/// Number of the stream with the section headers. The five streams before it have fixed numbers. The first of
/// them, the stream of the old directory, is empty.
const SECTION_HEADERS: u16 = 5;
/// Number of the stream with the symbol records.
const SYMBOL_RECORDS: u16 = 6;
/// Number of the stream with the public symbols.
const PUBLICS: u16 = 7;
/// Number of the stream with the global symbols.
const GLOBALS: u16 = 8;
/// Number of the stream with the symbols of the compilation unit (compiland).
const COMPILAND: u16 = 9;
/// Number that stands for a missing stream.
const NO_STREAM: u16 = 0xFFFF;

/// Number of the code section, the only section. Section numbers start at 1.
const CODE_SECTION: u16 = 1;

/// Maximum length of a function's name, in bytes. A record has at most 64 KiB.
const MAX_NAME: usize = 0xFF00;

/// A function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Address of the function, relative to the module's base.
    pub rva: u32,
    /// Size of the function in bytes.
    pub size: u32,
}

/// Error that occurs if a PDB cannot describe the functions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The function is empty, is in the headers of the image, exceeds the address space, or overlaps the
    /// previous function.
    #[error(
        "the function `{name}` cannot have {size} bytes at {rva:#x}: a function must have at least one \
         byte, start at 0x1000 or later, and not overlap another function"
    )]
    Place {
        /// Name of the function.
        name: String,
        /// Address of the function, relative to the module's base.
        rva: u32,
        /// Size of the function, in bytes.
        size: u32,
    },
    /// The name is empty, contains a NUL, or is too long.
    #[error("a function's name must have 1 to {MAX_NAME} bytes and no NUL; it has {0} bytes")]
    Name(usize),
}

/// Returns a PDB that has the identity `id` and describes the functions. `compiland` is the name of the
/// functions' compilation unit.
///
/// # Errors
/// Returns an error if a function has an invalid name or address.
pub fn write_pdb(
    id: &PdbId,
    compiland: &str,
    functions: &[Function],
) -> Result<Vec<u8>, WriteError> {
    let mut functions: Vec<&Function> = functions.iter().collect();
    functions.sort_by_key(|function| function.rva);
    let mut end = PAGE;
    for Function { name, rva, size } in &functions {
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return Err(WriteError::Name(name.len()));
        }
        let after = rva.checked_add(*size).filter(|_| *rva >= end && *size > 0);
        end = after.ok_or_else(|| WriteError::Place {
            name: name.clone(),
            rva: *rva,
            size: *size,
        })?;
    }
    // Addresses in the file are relative to the section. The section starts with the first code.
    let section_size = end - PAGE;
    let mut symbols = Payload::new();
    let mut publics = Vec::new();
    let mut compiland_symbols = Payload::new();
    compiland_symbols.u32(4); // CV_SIGNATURE_C13
    for function in &functions {
        publics.push(Public {
            name: &function.name,
            record: symbols.len() as u32,
        });
        public(&mut symbols, function);
        procedure(&mut compiland_symbols, function);
    }
    let symbol_bytes = compiland_symbols.len() as u32;
    compiland_symbols.u32(0); // no references to global symbols
    let debug = debug_information(id.age(), compiland, symbol_bytes, section_size);
    Ok(container(&[
        Payload::new(),
        information(id),
        no_types(),
        debug,
        no_types(),
        section_header(section_size),
        symbols,
        public_symbols(&publics),
        name_table(&[]),
        compiland_symbols,
    ]))
}

/// Returns the stream that identifies the PDB.
fn information(id: &PdbId) -> Payload {
    const VC70: u32 = 20_000_404;
    const HAS_ID_STREAM: u32 = 20_140_508; // version number that announces this feature
    let mut stream = Payload::new();
    stream.u32(VC70).u32(0).u32(id.age()).guid(id.guid());
    // There are no named streams. So the list of names has no bytes, and the hash table has 1 bucket and no
    // entries.
    stream.u32(0).u32(0).u32(1).u32(0).u32(0).u32(0);
    stream.u32(HAS_ID_STREAM);
    stream
}

/// Returns an empty stream of types or ids.
fn no_types() -> Payload {
    const V80: u32 = 20_040_203;
    const HEADER_SIZE: u32 = 56;
    const FIRST: u32 = 0x1000;
    let mut stream = Payload::new();
    stream
        .u32(V80)
        .u32(HEADER_SIZE)
        .u32(FIRST)
        .u32(FIRST)
        .u32(0);
    stream.u16(NO_STREAM).u16(NO_STREAM);
    stream.u32(4).u32(0x3FFFF); // size of a hash, number of hash buckets
    stream.bytes(&[0; 24]); // three empty tables
    stream
}

/// Returns the DBI stream. It contains the numbers of other streams, the compilation units (compilands), and
/// the code of each compiland.
fn debug_information(age: u32, compiland: &str, symbol_bytes: u32, section_size: u32) -> Payload {
    const V70: u32 = 19_990_903;
    const CONTRIBUTIONS_V60: u32 = 0xeffe_0000 + 19_970_605;
    const AMD64: u16 = 0x8664;
    let mut contribution = Payload::new();
    contribution
        .u16(CODE_SECTION)
        .u16(0)
        .u32(0)
        .u32(section_size);
    contribution.u32(CODE).u16(0).u16(0).u32(0).u32(0);

    let mut compilands = Payload::new();
    compilands.u32(0).bytes(&contribution).u16(0).u16(COMPILAND);
    compilands.u32(symbol_bytes).u32(0).u32(0); // no line numbers in either format
    compilands.u16(0).u16(0).u32(0).u32(0).u32(0); // no source files
    compilands.utf8_z(compiland).utf8_z(compiland);
    align(&mut compilands);

    let mut contributions = Payload::new();
    contributions.u32(CONTRIBUTIONS_V60).bytes(&contribution);

    let mut sources = Payload::new();
    sources.u16(1).u16(0).u16(0).u16(0); // one compiland, no source files

    // The file names for "edit and continue" consist of one empty name and a hash table. Compilands refer to
    // the empty name.
    let mut names = Payload::new();
    names.u32(0xEFFE_EFFE).u32(1).u32(4).u32(0);
    names.u32(1).u32(0).u32(0);

    let mut others = Payload::new();
    for kind in 0..11 {
        others.u16(if kind == 5 {
            SECTION_HEADERS
        } else {
            NO_STREAM
        });
    }

    let mut stream = Payload::new();
    stream.u32(u32::MAX).u32(V70).u32(age).u16(GLOBALS);
    stream.u16(0x8000 | 14 << 8); // the version of the linker is 14
    stream.u16(PUBLICS).u16(0).u16(SYMBOL_RECORDS).u16(0);
    stream.u32(compilands.len() as u32);
    stream.u32(contributions.len() as u32).u32(0);
    stream.u32(sources.len() as u32).u32(0).u32(0);
    stream.u32(others.len() as u32).u32(names.len() as u32);
    stream.u16(0).u16(AMD64).u32(0);
    for part in [compilands, contributions, sources, names, others] {
        stream.bytes(&part);
    }
    stream
}

/// Flags IMAGE_SCN_CNT_CODE, IMAGE_SCN_MEM_EXECUTE and IMAGE_SCN_MEM_READ of the code section.
const CODE: u32 = 0x6000_0020;

/// Returns the IMAGE_SECTION_HEADER of the code section.
fn section_header(size: u32) -> Payload {
    let mut header = Payload::new();
    header.bytes(b".text\0\0\0").u32(size).u32(PAGE);
    header.u32(size).u32(PAGE).u32(0).u32(0).u32(0).u32(CODE);
    header
}

/// Appends an S_PUB32 record, which maps a name to an address.
fn public(stream: &mut Payload, function: &Function) {
    const S_PUB32: u16 = 0x110E;
    const IS_FUNCTION: u32 = 2;
    let mut record = Payload::new();
    record
        .u32(IS_FUNCTION)
        .u32(function.rva - PAGE)
        .u16(CODE_SECTION);
    record.utf8_z(&function.name);
    push(stream, S_PUB32, &record);
}

/// Appends two records: an S_GPROC32 record, which maps a name to a range of addresses, and the S_END record that ends
/// the procedure.
fn procedure(stream: &mut Payload, function: &Function) {
    const S_GPROC32: u16 = 0x1110;
    const S_END: u16 = 0x0006;
    /// Size in bytes of the record's part before the name, including the record header.
    const FIXED: usize = 39;
    let end = stream.len() + (FIXED + function.name.len() + 1).next_multiple_of(4);
    let mut record = Payload::new();
    record.u32(0).u32(end as u32).u32(0); // no parent, end of the procedure, next procedure unknown
    record.u32(function.size).u32(0).u32(function.size);
    record
        .u32(0)
        .u32(function.rva - PAGE)
        .u16(CODE_SECTION)
        .u8(0);
    record.utf8_z(&function.name);
    push(stream, S_GPROC32, &record);
    debug_assert_eq!(stream.len(), end);
    push(stream, S_END, &Payload::new());
}

/// Appends a symbol record. It consists of its size (the size field is not counted), its kind, its fields,
/// and padding.
fn push(stream: &mut Payload, kind: u16, fields: &Payload) {
    let size = (4 + fields.len()).next_multiple_of(4) - 2;
    stream.u16(size as u16).u16(kind).bytes(fields);
    align(stream);
}

/// Pads the stream to a multiple of 4 bytes.
fn align(bytes: &mut Payload) {
    while !bytes.len().is_multiple_of(4) {
        bytes.u8(0);
    }
}

/// Returns the stream that maps names and addresses to public symbols. The stream lists the symbols in the
/// order of their addresses.
fn public_symbols(publics: &[Public<'_>]) -> Payload {
    let names = name_table(publics);
    let mut stream = Payload::new();
    stream.u32(names.len() as u32).u32(4 * publics.len() as u32);
    stream.bytes(&[0; 20]); // no thunks
    stream.bytes(&names);
    for public in publics {
        stream.u32(public.record);
    }
    stream
}
