//! Reader of one PDB. It reads the identity of the PDB, and the functions, files and lines of addresses.

use std::any::Any;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use etl::Guid;
#[cfg(feature = "network")]
use etl::le;
use msvc_demangler::DemangleFlags;
use pdb_addr2line::pdb::{FallibleIterator, PDB, Source, SourceSlice, SourceView};
use pdb_addr2line::{Context, ContextPdbData, TypeFormatterFlags};

use crate::PdbId;
use crate::identity::key;
use crate::name_cost;

/// Maximum ratio of the bytes that are read from a PDB to the size of its file. In a valid PDB, two streams
/// share no pages, and each stream is read at most twice.
const MAX_READ: u64 = 8;

/// First bytes of a PDB.
const SIGNATURE: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1ADS\0\0\0";

/// Number of bytes at the start of a file from which its format is recognised.
pub(crate) const HEAD: u64 = 64;

/// Maximum length in bytes of a decorated name. Longer names stay decorated. Microsoft's compiler does not write
/// longer names. The undecorator is recursive, so it needs a limit.
const MAX_DECORATED: usize = 4096;

/// Function and source lines of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Address of the first byte of the function, relative to the module.
    pub function_rva: u32,
    /// Functions at the address. Functions that are inlined at the address come first, the innermost function
    /// at the front. The function that contains the address comes last. The list is never empty.
    pub frames: Vec<Frame>,
}

/// A function at an address. It is the function that contains the address, or a function that is inlined at
/// the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function without arguments.
    pub function: Option<String>,
    /// Path of the source file that the compiler recorded.
    pub file: Option<String>,
    /// Line in the file, counted from 1.
    pub line: Option<u32>,
}

/// Reason why a PDB cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PdbError {
    /// The PDB describes another build.
    #[error("belongs to another build: it is {found}, expected {wanted}")]
    OtherBuild {
        /// GUID and age of the PDB, in the format that symbol stores use.
        found: String,
        /// Expected GUID and age, in the format that symbol stores use.
        wanted: String,
    },
    /// The file is not a PDB or is damaged.
    #[error("is not a readable PDB: {0}")]
    Unreadable(String),
    /// The bytes of the PDB cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

self_cell::self_cell!(
    /// Parsed parts of a PDB, and the resolver that is built from these parts.
    struct OpenPdb {
        owner: ContextPdbData<'static, 'static, Bytes>,
        #[not_covariant]
        dependent: Resolver,
    }
);

type Resolver<'a> = Context<'a, 'static>;

/// A PDB that is ready for look-ups of addresses.
pub struct Pdb(OpenPdb);

impl Pdb {
    /// Opens the PDB in `bytes` and checks that its identity is `id`.
    ///
    /// The age of `id` is compared with the age in the DBI stream. Linkers write the same age into the image.
    /// Tools that modify the PDB later change only the age in the PDB stream.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a readable PDB, or if the PDB describes another build.
    pub fn open(bytes: impl Read + Seek + Send + 'static, id: &PdbId) -> Result<Pdb, PdbError> {
        let bytes = Bytes::new(Box::new(bytes))?;
        contained(|| {
            let mut pdb = identified(bytes, id)?;
            let types = pdb.type_information().map_err(unreadable)?;
            let ids = pdb.id_information().map_err(unreadable)?;
            name_cost::check(&types, &ids)?;
            let data = ContextPdbData::try_from_pdb(pdb).map_err(unreadable)?;
            let flags = TypeFormatterFlags::NO_FUNCTION_RETURN
                | TypeFormatterFlags::NO_MEMBER_FUNCTION_STATIC
                | TypeFormatterFlags::NAME_ONLY
                | TypeFormatterFlags::NO_ARGUMENTS;
            OpenPdb::try_new(data, |data| data.make_context_with_formatter_flags(flags))
                .map(Pdb)
                .map_err(unreadable)
        })
    }

    /// Looks up an address relative to the module. Returns `None` if no function contains the address.
    ///
    /// # Errors
    /// Returns an error if the records for the address are damaged.
    pub fn locate(&self, rva: u32) -> Result<Option<Location>, PdbError> {
        contained(|| {
            self.0.with_dependent(|_, resolver| {
                let Some(found) = resolver.find_frames(rva).map_err(unreadable)? else {
                    return Ok(None);
                };
                let frames: Vec<Frame> = (found.frames.into_iter())
                    .map(|frame| Frame {
                        function: frame.function.map(readable),
                        file: frame.file.map(|file| file.into_owned()),
                        line: frame.line,
                    })
                    .collect();
                let tells = |frame: &Frame| frame.function.is_some() || frame.file.is_some();
                Ok(frames.iter().any(tells).then_some(Location {
                    function_rva: found.start_rva,
                    frames,
                }))
            })
        })
    }
}

/// Searches the PDB in `bytes` for functions and variables with these names. Returns one value for each name:
/// true if a symbol was found. Only symbols that are visible in the whole module are searched. Symbols of a
/// single source file are not searched.
///
/// # Errors
/// Returns an error if the bytes are not a readable PDB, or if the PDB describes another build.
pub fn symbols_named(
    bytes: impl Read + Seek + Send + 'static,
    id: &PdbId,
    names: &[&str],
) -> Result<Vec<bool>, PdbError> {
    let bytes = Bytes::new(Box::new(bytes))?;
    contained(|| {
        let mut pdb = identified(bytes, id)?;
        let table = pdb.global_symbols().map_err(unreadable)?;
        let mut presence = vec![false; names.len()];
        let mut symbols = table.iter();
        while let Some(symbol) = symbols.next().map_err(unreadable)? {
            // The parser does not know all kinds of symbols, but it knows functions and variables. So symbols
            // of unknown kinds are skipped.
            let Ok(data) = symbol.parse() else { continue };
            let Some(name) = data.name().map(|name| name.to_string()) else {
                continue;
            };
            for (presence, wanted) in presence.iter_mut().zip(names) {
                *presence |= name == *wanted;
            }
        }
        Ok(presence)
    })
}

/// Opens the PDB in `bytes` and checks that its identity is `id`.
fn identified(mut bytes: Bytes, id: &PdbId) -> Result<PDB<'static, Bytes>, PdbError> {
    check_format(&bytes.head()?)?;
    let mut pdb = PDB::open(bytes).map_err(unreadable)?;
    let information = pdb.pdb_information().map_err(unreadable)?;
    let (a, b, c, d) = information.guid.as_fields();
    let guid = Guid::new(a, b, c, *d);
    let debug = pdb.debug_information().map_err(unreadable)?;
    let age = debug.age().unwrap_or(information.age);
    if (guid, age) == (id.guid(), id.age()) {
        Ok(pdb)
    } else {
        Err(PdbError::OtherBuild {
            found: key(guid, age),
            wanted: id.key(),
        })
    }
}

/// Returns the size in bytes that a PDB states in its header. `head` has the first bytes of the file.
///
/// # Errors
/// Returns an error if the file is no PDB.
#[cfg(feature = "network")]
pub(crate) fn stated_size(head: &[u8]) -> Result<u64, PdbError> {
    check_format(head)?;
    let block = le::u32(head, SIGNATURE.len());
    let blocks = le::u32(head, SIGNATURE.len() + 8);
    let (block, blocks) = block
        .zip(blocks)
        .ok_or_else(|| unreadable("its header is cut off"))?;
    Ok(u64::from(block) * u64::from(blocks))
}

/// Returns an error that names the format of a file that is no PDB. `head` has the first bytes of the file.
fn check_format(head: &[u8]) -> Result<(), PdbError> {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let format = match head {
        _ if head.starts_with(SIGNATURE) => return Ok(()),
        [] => "it is empty; delete it, so that it is downloaded again",
        _ if head.starts_with(b"BSJB") => {
            "it is a portable PDB of .NET, without functions of native code; build the module with DebugType full"
        }
        _ if head.starts_with(b"MSCF") => {
            "it is a cabinet; expand it, or end its name in _ (.pd_), as symbol stores do"
        }
        _ if head.starts_with(b"Microsoft C/C++ program database 2.00") => {
            "it is a PDB of an old compiler (program database 2.00); build the module with Visual C++ 7.0 or later"
        }
        _ if head.starts_with(b"version https://git-lfs.") => {
            "it is a pointer of Git LFS, without the file's content; run `git lfs pull`"
        }
        _ if text.starts_with(b"<") => {
            "it is an HTML page or another document with tags, as servers send for errors and sign-ins; open its \
             address in a browser"
        }
        _ => "it does not start as PDBs do",
    };
    Err(unreadable(format))
}

impl fmt::Debug for Pdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pdb")
    }
}

/// Returns a readable form of a name. The decoration of C++ names is removed.
fn readable(name: String) -> String {
    if !name.starts_with('?') || name.len() > MAX_DECORATED {
        return name;
    }
    msvc_demangler::demangle(&name, DemangleFlags::NAME_ONLY).unwrap_or(name)
}

pub(crate) fn unreadable(error: impl fmt::Display) -> PdbError {
    PdbError::Unreadable(error.to_string())
}

/// Runs code that parses a PDB, and converts its panics to errors. The parser crates trust the numbers in the
/// file. So some damaged files make them panic, because a sum overflows or a range is inverted. Such a panic
/// must not end the program.
fn contained<T>(read: impl FnOnce() -> Result<T, PdbError>) -> Result<T, PdbError> {
    let caught = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no reason given");
        Err(PdbError::Unreadable(format!("it is damaged ({text})")))
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(caught)
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// Bytes of a PDB, with a limit on the number of bytes that are read. Without this limit, a forged PDB could
/// have thousands of streams that share the same pages.
struct Bytes {
    source: Box<dyn ReadSeek>,
    left: u64,
}

impl Bytes {
    fn new(mut source: Box<dyn ReadSeek>) -> io::Result<Bytes> {
        let length = source.seek(SeekFrom::End(0))?;
        Ok(Bytes {
            source,
            left: length.saturating_mul(MAX_READ),
        })
    }

    /// Returns the first [`HEAD`] bytes.
    fn head(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.source.rewind()?;
        self.source.as_mut().take(HEAD).read_to_end(&mut head)?;
        Ok(head)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes {{ left: {} }}", self.left)
    }
}

impl Source<'static> for Bytes {
    fn view(
        &mut self,
        slices: &[SourceSlice],
    ) -> io::Result<Box<dyn SourceView<'static> + Send + Sync>> {
        let size: u64 = slices.iter().map(|slice| slice.size as u64).sum();
        self.left = self.left.checked_sub(size).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("its streams have more than {MAX_READ} times the file's size"),
            )
        })?;
        let mut bytes = vec![0; size as usize];
        let mut rest = &mut bytes[..];
        for slice in slices {
            let (part, behind) = rest.split_at_mut(slice.size);
            self.source.seek(SeekFrom::Start(slice.offset))?;
            self.source.read_exact(part)?;
            rest = behind;
        }
        Ok(Box::new(View(bytes)))
    }
}

/// Bytes of a stream of a PDB.
struct View(Vec<u8>);

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View of {} bytes", self.0.len())
    }
}

impl SourceView<'static> for View {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }
}
