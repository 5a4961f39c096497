//! Reader of cabinets, the archive format of [MS-CAB], with MSZIP, LZX or no compression.
//!
//! A cabinet has folders and files. A folder is a sequence of blocks. Each block expands to at most 32 KiB,
//! and all blocks of a folder form one stream. A file is a range of a folder's stream. This reader expands
//! each folder once, from start to end. The cabinet is untrusted, so no size that the cabinet states
//! determines the size of an allocation.
//!
//! [MS-CAB]: https://learn.microsoft.com/previous-versions/bb267310(v=vs.85)

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use crate::le;

/// Maximum expanded size of a block in bytes. It is also the maximum distance of MSZIP references.
const MAX_BLOCK: usize = 32 << 10;

/// Flag of the cabinet header. It means that the set has a cabinet before this cabinet.
const HAS_PREVIOUS: u16 = 1;
/// Flag of the cabinet header. It means that the set has a cabinet after this cabinet.
const HAS_NEXT: u16 = 2;
/// Flag of the cabinet header. It means that headers contain reserved areas.
const HAS_RESERVED: u16 = 4;

/// Smallest of the special folder indexes. A special folder index marks a file that is split between
/// cabinets.
const SPLIT_FILE: u16 = 0xFFFD;

/// Maximum length of a name in bytes, including the NUL at its end.
const MAX_NAME: u64 = 257;

pub(super) struct Cabinet<R> {
    reader: R,
    /// Size of the reserved area in each block header, in bytes.
    block_reserve: u8,
    folders: Vec<Folder>,
}

/// Folder of a cabinet. The data of a folder is compressed together.
pub(super) struct Folder {
    first_block: u64,
    blocks: u16,
    compression: u16,
    /// Files of the folder, sorted by their start.
    pub(super) files: Vec<FileEntry>,
}

/// File of a cabinet: `size` bytes at the offset `start` of its folder's expanded data.
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) size: u64,
}

impl<R: BufRead + Seek> Cabinet<R> {
    /// Reads the lists of folders and files.
    pub(super) fn open(mut reader: R) -> io::Result<Cabinet<R>> {
        let header = read::<36>(&mut reader, "the cabinet header")?;
        let files_at = u32_of(&header, 16);
        let folder_count = u16_of(&header, 26);
        let file_count = u16_of(&header, 28);
        let flags = u16_of(&header, 30);

        let (mut folder_reserve, mut block_reserve) = (0, 0);
        if flags & HAS_RESERVED != 0 {
            let [low, high, folder, block] = read(&mut reader, "the reserved sizes")?;
            folder_reserve = folder;
            block_reserve = block;
            reader.seek_relative(u16::from_le_bytes([low, high]).into())?;
        }
        for flag in [HAS_PREVIOUS, HAS_NEXT] {
            if flags & flag != 0 {
                read_name(&mut reader)?;
                read_name(&mut reader)?;
            }
        }

        let mut folders = Vec::new();
        for _ in 0..folder_count {
            let entry = read::<8>(&mut reader, "the folder list")?;
            reader.seek_relative(folder_reserve.into())?;
            folders.push(Folder {
                first_block: u32_of(&entry, 0).into(),
                blocks: u16_of(&entry, 4),
                compression: u16_of(&entry, 6),
                files: Vec::new(),
            });
        }

        reader.seek(SeekFrom::Start(files_at.into()))?;
        for _ in 0..file_count {
            let entry = read::<16>(&mut reader, "the file list")?;
            let name = String::from_utf8_lossy(&read_name(&mut reader)?).into_owned();
            let folder = u16_of(&entry, 8);
            if folder >= SPLIT_FILE {
                return Err(invalid(format!(
                    "{name:?} is split between several cabinets"
                )));
            }
            let Some(folder) = folders.get_mut(usize::from(folder)) else {
                return Err(invalid(format!(
                    "{name:?} is in folder {folder}, and there are {folder_count}"
                )));
            };
            folder.files.push(FileEntry {
                name,
                start: u32_of(&entry, 4).into(),
                size: u32_of(&entry, 0).into(),
            });
        }
        for folder in &mut folders {
            folder.files.sort_by_key(|file| file.start);
            if let Some([before, after]) = folder
                .files
                .array_windows()
                .find(|[before, after]| before.start + before.size > after.start)
            {
                return Err(invalid(format!(
                    "{:?} and {:?} overlap",
                    before.name, after.name
                )));
            }
        }
        Ok(Cabinet {
            reader,
            block_reserve,
            folders,
        })
    }

    /// Moves the folders out of the cabinet, in the order of the cabinet.
    pub(super) fn take_folders(&mut self) -> Vec<Folder> {
        std::mem::take(&mut self.folders)
    }

    /// Returns a reader of the expanded data of `folder`. A read past the end of the data is an error: the list of
    /// files states which data the folder has, so the cabinet is then damaged.
    pub(super) fn expand(&mut self, folder: &Folder) -> FolderData<'_, R> {
        FolderData {
            reader: &mut self.reader,
            block_reserve: self.block_reserve,
            next_block: folder.first_block,
            blocks_left: folder.blocks,
            compression: folder.compression,
            expander: None,
            block: Vec::new(),
            used: 0,
        }
    }
}

pub(super) struct FolderData<'a, R> {
    reader: &'a mut R,
    block_reserve: u8,
    next_block: u64,
    blocks_left: u16,
    compression: u16,
    /// Expander of the blocks. It is created when the first block is read.
    expander: Option<Expander>,
    block: Vec<u8>,
    used: usize,
}

impl<R: BufRead + Seek> Read for FolderData<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.block.len() && !buffer.is_empty() {
            if self.blocks_left == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "its folder's data ends before the file does",
                ));
            }
            self.read_block()?;
        }
        let length = (&self.block[self.used..]).read(buffer)?;
        self.used += length;
        Ok(length)
    }
}

impl<R: BufRead + Seek> FolderData<'_, R> {
    fn read_block(&mut self) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(self.next_block))?;
        let header = read::<8>(&mut self.reader, "a block header")?;
        let mut checked = vec![0; usize::from(self.block_reserve)];
        self.reader.read_exact(&mut checked)?;
        let (compressed, expanded) = (u16_of(&header, 4), usize::from(u16_of(&header, 6)));
        if expanded > MAX_BLOCK {
            return Err(invalid(format!(
                "the block at byte {} says it holds {expanded} bytes, more than 32768",
                self.next_block
            )));
        }
        let data_at = checked.len();
        (&mut *self.reader)
            .take(compressed.into())
            .read_to_end(&mut checked)?;
        let data = &checked[data_at..];
        if data.len() < usize::from(compressed) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the archive ends in the block at byte {}: it contains {} of the block's {compressed} bytes",
                    self.next_block,
                    data.len()
                ),
            ));
        }
        // A stored checksum of 0 means that the checksum was not computed.
        let stored = u32_of(&header, 0);
        let computed = checksum(&header[4..]) ^ checksum(&checked[..data_at]) ^ checksum(data);
        if stored != 0 && stored != computed {
            return Err(invalid(format!(
                "the block at byte {} has checksum {computed:#010x}, expected {stored:#010x}",
                self.next_block
            )));
        }

        let expander = match &mut self.expander {
            Some(expander) => expander,
            none => none.insert(Expander::new(self.compression)?),
        };
        // The old block is discarded first. So no old data remains if the new block is faulty.
        self.used = 0;
        let previous = std::mem::take(&mut self.block);
        self.block = expander.expand(data, expanded, previous)?;
        self.next_block += (header.len() + checked.len()) as u64;
        self.blocks_left -= 1;
        Ok(())
    }
}

enum Expander {
    Stored,
    MsZip(Box<flate2::Decompress>),
    Lzx(Box<lzxd::Lzxd>),
}

impl Expander {
    /// Creates an expander for the field `typeCompress` of a folder. The low 4 bits of `typeCompress` are the
    /// method. For LZX, bits 8 to 12 are the binary logarithm of the window size.
    fn new(compression: u16) -> io::Result<Expander> {
        use lzxd::WindowSize::*;
        let window = match (compression & 15, compression >> 8 & 31) {
            (0, _) => return Ok(Expander::Stored),
            (1, _) => return Ok(Expander::MsZip(Box::new(flate2::Decompress::new(false)))),
            (3, 15) => KB32,
            (3, 16) => KB64,
            (3, 17) => KB128,
            (3, 18) => KB256,
            (3, 19) => KB512,
            (3, 20) => MB1,
            (3, 21) => MB2,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    format!(
                        "unknown compression {compression:#06x}; expected stored, MSZIP or LZX"
                    ),
                ));
            }
        };
        Ok(Expander::Lzx(Box::new(lzxd::Lzxd::new(window))))
    }

    /// Expands one block, `data`, to `expanded` bytes. `previous` is the expanded content of the previous
    /// block.
    fn expand(
        &mut self,
        data: &[u8],
        expanded: usize,
        mut previous: Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        let block = match self {
            Expander::Stored => {
                previous.clear();
                previous.extend_from_slice(data);
                previous
            }
            Expander::MsZip(inflate) => {
                let Some(data) = data.strip_prefix(b"CK") else {
                    return Err(invalid(
                        "an MSZIP block does not start with \"CK\"".to_owned(),
                    ));
                };
                inflate.reset(false);
                if !previous.is_empty() {
                    inflate.set_dictionary(&previous).map_err(io::Error::from)?;
                }
                let mut block = Vec::with_capacity(expanded);
                inflate
                    .decompress_vec(data, &mut block, flate2::FlushDecompress::Finish)
                    .map_err(io::Error::from)?;
                block
            }
            Expander::Lzx(lzx) => lzx
                .decompress_next(data, expanded)
                .map_err(|error| invalid(format!("an LZX block is damaged: {error}")))?
                .to_vec(),
        };
        if block.len() != expanded {
            return Err(invalid(format!(
                "a block holds {} bytes, expected {expanded}",
                block.len()
            )));
        }
        Ok(block)
    }
}

/// Returns the bitwise XOR of all little-endian 32-bit words. If 1 to 3 bytes remain at the end, they form a
/// big-endian word.
fn checksum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words
        .iter()
        .fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
    sum ^ rest
        .iter()
        .fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn read<const N: usize>(reader: &mut impl Read, what: &str) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader
        .read_exact(&mut bytes)
        .map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))?;
    Ok(bytes)
}

/// Reads a name up to the NUL at its end.
fn read_name(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut name = Vec::new();
    reader.take(MAX_NAME).read_until(0, &mut name)?;
    match name.pop() {
        Some(0) => Ok(name),
        _ => Err(invalid("a name does not end".to_owned())),
    }
}

fn u16_of(bytes: &[u8], at: usize) -> u16 {
    le::u16(bytes, at).unwrap_or_default()
}

fn u32_of(bytes: &[u8], at: usize) -> u32 {
    le::u32(bytes, at).unwrap_or_default()
}
