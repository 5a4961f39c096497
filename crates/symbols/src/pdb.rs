//! One PDB: its identity, and the functions, files and lines of its addresses.

use std::any::Any;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use etl::Guid;
use msvc_demangler::DemangleFlags;
use pdb_addr2line::pdb::{FallibleIterator, PDB, Source, SourceSlice, SourceView};
use pdb_addr2line::{Context, ContextPdbData, TypeFormatterFlags};

use crate::PdbId;
use crate::identity::key;
use crate::name_cost;

/// How many times its size a PDB may have us read of it. Streams of an honest one do not share
/// pages, and each is read at most twice.
const MAX_READ: u64 = 8;

/// Longest decorated name that is made readable, in bytes. Microsoft's compiler writes none longer,
/// and a reader that calls itself for each part of a name needs a bound.
const MAX_DECORATED: usize = 4096;

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where the function that it lies in begins, relative to the module.
    pub function_rva: u32,
    /// The function that it lies in, last, and before it the calls that were inlined there,
    /// innermost first. Never empty.
    pub frames: Vec<Frame>,
}

/// A function at an address, by a call of its own or inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, without arguments.
    pub function: Option<String>,
    /// Its source file, as the compiler knew it.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
}

/// A PDB that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PdbError {
    /// It describes another build.
    #[error("is the PDB of another build: it is {found}, expected {wanted}")]
    OtherBuild {
        /// GUID and age of the PDB, as symbol stores write them.
        found: String,
        /// Those wanted.
        wanted: String,
    },
    /// It is no PDB, or a damaged one.
    #[error("is no PDB that can be read: {0}")]
    Unreadable(String),
    /// Its bytes cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

self_cell::self_cell!(
    /// What was read of a PDB, with what was made of it so far.
    struct Opened {
        owner: ContextPdbData<'static, 'static, Bytes>,
        #[not_covariant]
        dependent: Resolver,
    }
);

type Resolver<'a> = Context<'a, 'static>;

/// An open PDB.
pub struct Pdb(Opened);

impl Pdb {
    /// Opens the PDB in `bytes`, if it is the one that `id` says.
    ///
    /// The age that counts is that of the DBI stream, which linkers put into the image: tools that
    /// add to a PDB later raise only the other one.
    ///
    /// # Errors
    /// If the bytes are no readable PDB, or that of another build.
    pub fn open(bytes: impl Read + Seek + Send + 'static, id: &PdbId) -> Result<Pdb, PdbError> {
        let bytes = Bytes::new(Box::new(bytes))?;
        contained(|| {
            let mut pdb = identified(bytes, id)?;
            let types = pdb.type_information().map_err(unreadable)?;
            let ids = pdb.id_information().map_err(unreadable)?;
            name_cost::check(&types, &ids).map_err(PdbError::Unreadable)?;
            let data = ContextPdbData::try_from_pdb(pdb).map_err(unreadable)?;
            let flags = TypeFormatterFlags::NO_FUNCTION_RETURN
                | TypeFormatterFlags::NO_MEMBER_FUNCTION_STATIC
                | TypeFormatterFlags::NAME_ONLY
                | TypeFormatterFlags::NO_ARGUMENTS;
            Opened::try_new(data, |data| data.make_context_with_formatter_flags(flags))
                .map(Pdb)
                .map_err(unreadable)
        })
    }

    /// What is known of an address relative to the module; nothing outside its functions.
    ///
    /// # Errors
    /// If the PDB is damaged where it tells of the address.
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

/// Which of these names the PDB in `bytes` has as symbols of the whole module, if it is the one that
/// `id` says: functions and variables that other modules' debuggers can ask for.
///
/// # Errors
/// If the bytes are no readable PDB, or that of another build.
pub fn symbols_named(
    bytes: impl Read + Seek + Send + 'static,
    id: &PdbId,
    names: &[&str],
) -> Result<Vec<bool>, PdbError> {
    let bytes = Bytes::new(Box::new(bytes))?;
    contained(|| {
        let mut pdb = identified(bytes, id)?;
        let table = pdb.global_symbols().map_err(unreadable)?;
        let mut found = vec![false; names.len()];
        let mut symbols = table.iter();
        while let Some(symbol) = symbols.next().map_err(unreadable)? {
            // Kinds that the reader does not know name nothing that is asked for.
            let Ok(data) = symbol.parse() else { continue };
            let Some(name) = data.name().map(|name| name.to_string()) else {
                continue;
            };
            for (found, wanted) in found.iter_mut().zip(names) {
                *found |= name == *wanted;
            }
        }
        Ok(found)
    })
}

/// The PDB in `bytes`, if it is the one that `id` says.
fn identified(bytes: Bytes, id: &PdbId) -> Result<PDB<'static, Bytes>, PdbError> {
    let mut pdb = PDB::open(bytes).map_err(unreadable)?;
    let information = pdb.pdb_information().map_err(unreadable)?;
    let (a, b, c, d) = information.guid.as_fields();
    let guid = Guid::new(a, b, c, *d);
    let debug = pdb.debug_information().map_err(unreadable)?;
    let age = debug.age().unwrap_or(information.age);
    match (guid, age) == (id.guid(), id.age()) {
        true => Ok(pdb),
        false => Err(PdbError::OtherBuild {
            found: key(guid, age),
            wanted: id.key(),
        }),
    }
}

impl fmt::Debug for Pdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pdb")
    }
}

/// A name as people write it: decorated C++ names without decoration.
fn readable(name: String) -> String {
    if !name.starts_with('?') || name.len() > MAX_DECORATED {
        return name;
    }
    msvc_demangler::demangle(&name, DemangleFlags::NAME_ONLY).unwrap_or(name)
}

fn unreadable(error: impl fmt::Display) -> PdbError {
    PdbError::Unreadable(error.to_string())
}

/// Runs what reads a PDB. The crates that do take its numbers at their word, and panic over some
/// damaged files (sums that overflow, ranges the wrong way round): that is the file's fault, and
/// must not end the program.
fn contained<T>(read: impl FnOnce() -> Result<T, PdbError>) -> Result<T, PdbError> {
    let caught = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no reason is given");
        Err(PdbError::Unreadable(format!("it is damaged ({text})")))
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(caught)
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The bytes of a PDB, of which no more is read than an honest one needs: streams of a forged one
/// can all be the same pages, thousands of times.
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
                format!("its streams claim more than {MAX_READ} times the file's size"),
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

/// A part of a PDB.
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
