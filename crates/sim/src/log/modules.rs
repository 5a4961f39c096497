//! The address space of the simulated machine: modules, their addresses and their identities.
//!
//! A module's address is derived from its file name and the release of Windows, so a name has the
//! same address in every scenario. If two modules would overlap, the second one moves to the next
//! free slot. The identities of a module's file and PDB are also derived from its functions.
//! Modules with the same name but other functions therefore count as other files, and one symbol
//! store can contain the PDBs of several scenarios.

use std::collections::HashMap;

use etl::Guid;

use crate::windows::Windows;

/// Address of a module's first function, relative to the module's base.
const FIRST_RVA: u32 = 0x1000;
/// Size of each function in bytes.
const FUNCTION_SIZE: u32 = 0x200;
/// Offset of a frame's return address from the start of its function, in bytes. It represents the
/// instruction after a call.
const RETURN_OFFSET: u64 = 0x4A;
/// Address space reserved for each module, in bytes.
const SLOT: u64 = 16 << 20;
/// Maximum number of frames in a stack, as in Windows.
const MAX_FRAMES: usize = 192;

/// Error in a frame (`module!function`) that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The text is not `module!function`.
    #[error(
        "`{0}` is not a frame: expected `module!function`, such as `ndis.sys!ndisInterruptDpc`"
    )]
    NotAFrame(String),
    /// A user-mode module is named where only kernel modules can run.
    #[error(
        "`{0}` is a user module: it cannot run in the System process, in a DPC or in an interrupt"
    )]
    UserCodeInKernel(String),
    /// The module has no room for another function.
    #[error("`{module}` has room for {limit} functions, but the scenario names more")]
    TooManyFunctions {
        /// File name of the module.
        module: String,
        /// Maximum number of functions of a module.
        limit: u32,
    },
    /// The address space has no room for another module.
    #[error("the address space has no room for `{0}`: the scenario names too many modules")]
    TooManyModules(String),
}

/// Identifier of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackId(u32);

/// A function. Its code extends from [`Function::rva`] to the next function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Address of the function relative to the module's base.
    pub(crate) rva: u32,
    /// Size of the function in bytes.
    pub(crate) size: u32,
}

/// A module: an image file, mapped at the same address in all processes that use it.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// File name, spelled as at its first mention.
    pub(crate) file: String,
    /// NT path of the file.
    pub(crate) path: String,
    /// Base address of the module.
    pub(crate) base: u64,
    /// Size in memory, in bytes.
    pub(crate) size: u32,
    /// Link time in the file's header. It is a hash of the contents, as in reproducible builds.
    pub(crate) time_date_stamp: u32,
    /// Checksum of the file.
    pub(crate) checksum: u32,
    /// Name of the PDB.
    pub(crate) pdb_file: String,
    pub(crate) pdb_guid: Guid,
    /// Age of the PDB: the number of times that it was rewritten.
    pub(crate) pdb_age: u32,
    /// Ids of the processes that have mapped the module, in order of first mention. Empty for a
    /// kernel module, because all processes share it.
    pub(crate) processes: Vec<u32>,
    /// Functions, sorted by address.
    pub(crate) functions: Vec<Function>,
    is_kernel: bool,
    by_name: HashMap<String, usize>,
    /// Generator seeded with a hash of the module's name, the release of Windows and the module's
    /// functions.
    content: Bits,
}

impl Module {
    /// Appends a function and returns its index.
    fn push(&mut self, name: &str) -> usize {
        let index = self.functions.len();
        self.functions.push(Function {
            name: name.to_owned(),
            rva: FIRST_RVA + FUNCTION_SIZE * index as u32,
            size: FUNCTION_SIZE,
        });
        self.by_name.insert(name.to_owned(), index);
        self.content.add(name);
        self.identify();
        index
    }

    /// Computes the identities of the module's file and PDB from `content`.
    fn identify(&mut self) {
        let mut bits = self.content;
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&bits.next().to_le_bytes());
        guid[8..].copy_from_slice(&bits.next().to_le_bytes());
        self.pdb_guid = Guid(guid);
        self.time_date_stamp = bits.next() as u32;
        self.checksum = self.size + (bits.next() % 0x1_0000) as u32;
    }
}

/// All modules and stacks of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Modules {
    windows: Windows,
    list: Vec<Module>,
    /// Index of each module in `list`, by its file name in lower case.
    by_file: HashMap<String, usize>,
    /// For each occupied slot: the index in `list` of its module. The key of a slot is its address divided by
    /// [`SLOT`].
    taken: HashMap<u64, usize>,
    /// Return addresses of each stack, encoded as in the payload of a stack event.
    stacks: Vec<Box<[u8]>>,
    by_frames: HashMap<Box<[u8]>, StackId>,
}

impl Modules {
    /// Creates an address space that contains only the kernel.
    pub(crate) fn new(windows: Windows) -> Modules {
        let mut modules = Modules {
            windows,
            list: Vec::new(),
            by_file: HashMap::new(),
            taken: HashMap::new(),
            stacks: Vec::new(),
            by_frames: HashMap::new(),
        };
        modules
            .map(None, "ntoskrnl.exe")
            .expect("an empty address space has room");
        modules
    }

    /// Maps a module into a process if it is not mapped yet. If `process` is `None`, maps the module into the
    /// kernel, which accepts only kernel modules. Modules that a frame names need no call, because
    /// `Modules::function` and `Modules::frame` map them.
    ///
    /// # Errors
    /// Returns an error if a user-mode module is mapped into the kernel, or the address space has no room.
    pub(crate) fn map(&mut self, process: Option<u32>, file: &str) -> Result<(), FrameError> {
        self.module(process, file).map(|_| ())
    }

    /// Sets the path of a module's file: an NT path, or a path with a drive (`C:\Games\game.exe`).
    ///
    /// # Errors
    /// See [`Modules::map`].
    pub(crate) fn set_path(
        &mut self,
        process: Option<u32>,
        file: &str,
        path: &str,
    ) -> Result<(), FrameError> {
        let module = self.module(process, file)?;
        self.list[module].path = match path.strip_prefix("C:").or(path.strip_prefix("c:")) {
            Some(rest) => format!("{SYSTEM_VOLUME}{rest}"),
            None => path.to_owned(),
        };
        Ok(())
    }

    /// Returns the address of `module!function`, such as a DPC's routine or a thread's start
    /// address.
    ///
    /// # Errors
    /// Returns an error if the text is not a frame, the module cannot be mapped into the process,
    /// or the module has no room for another function.
    pub(crate) fn function(
        &mut self,
        process: Option<u32>,
        frame: &str,
    ) -> Result<u64, FrameError> {
        let not_a_frame = || FrameError::NotAFrame(frame.to_owned());
        let (file, name) = frame.split_once('!').ok_or_else(not_a_frame)?;
        if file.is_empty() || name.is_empty() {
            return Err(not_a_frame());
        }
        let module = self.module(process, file)?;
        let module = &mut self.list[module];
        let index = match module.by_name.get(name) {
            Some(index) => *index,
            None => {
                let limit = (module.size - FIRST_RVA) / FUNCTION_SIZE;
                if module.functions.len() >= limit as usize {
                    return Err(FrameError::TooManyFunctions {
                        module: module.file.clone(),
                        limit,
                    });
                }
                module.push(name)
            }
        };
        Ok(module.base + u64::from(module.functions[index].rva))
    }

    /// Returns an address inside `module!function`, for use in a sample or a stack.
    ///
    /// # Errors
    /// See [`Modules::function`].
    pub(crate) fn frame(&mut self, process: Option<u32>, frame: &str) -> Result<u64, FrameError> {
        Ok(self.function(process, frame)? + RETURN_OFFSET)
    }

    /// Returns the id of the stack with these addresses, innermost frame first. At most 192
    /// addresses are kept. Equal stacks have the same id.
    pub(crate) fn stack(&mut self, frames: &[u64]) -> StackId {
        let bytes: Box<[u8]> = frames
            .iter()
            .take(MAX_FRAMES)
            .flat_map(|frame| frame.to_le_bytes())
            .collect();
        if let Some(id) = self.by_frames.get(&bytes) {
            return *id;
        }
        let id = StackId(self.stacks.len() as u32);
        self.stacks.push(bytes.clone());
        self.by_frames.insert(bytes, id);
        id
    }

    /// Returns the addresses of a stack, encoded as in the payload of a stack event.
    #[inline]
    pub(super) fn addresses(&self, stack: StackId) -> &[u8] {
        &self.stacks[stack.0 as usize]
    }

    /// Returns all modules in order of first mention.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Module> {
        self.list.iter()
    }

    pub(crate) fn of_kernel(&self) -> impl Iterator<Item = &Module> {
        self.list.iter().filter(|module| module.is_kernel)
    }

    /// Returns the modules that a process has mapped.
    pub(crate) fn of_process(&self, process: u32) -> impl Iterator<Item = &Module> {
        self.list
            .iter()
            .filter(move |module| module.processes.contains(&process))
    }

    fn module(&mut self, process: Option<u32>, file: &str) -> Result<usize, FrameError> {
        let key = file.to_ascii_lowercase();
        let index = match self.by_file.get(&key) {
            Some(index) => *index,
            None => {
                let module = self.make(file, &key)?;
                self.list.push(module);
                self.by_file.insert(key, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        let module = &mut self.list[index];
        if !module.is_kernel {
            let process = process
                .filter(|process| !matches!(process, 0 | 4))
                .ok_or_else(|| FrameError::UserCodeInKernel(file.to_owned()))?;
            if !module.processes.contains(&process) {
                module.processes.push(process);
            }
        }
        Ok(index)
    }

    fn make(&mut self, file: &str, key: &str) -> Result<Module, FrameError> {
        let is_kernel = is_kernel_file(key);
        let mut bits = Bits::new(key, self.windows);
        let area = Area::new(key, is_kernel, self.windows);
        let first = bits.next() % area.slots;
        let slot = (0..area.slots)
            .map(|step| area.base / SLOT + (first + step) % area.slots)
            .find(|slot| !self.taken.contains_key(slot))
            .ok_or_else(|| FrameError::TooManyModules(file.to_owned()))?;
        self.taken.insert(slot, self.list.len());
        let size = 0x8_0000 + (bits.next() % 0x40) as u32 * 0x1_0000;
        let mut module = Module {
            file: file.to_owned(),
            path: default_path(file, key, is_kernel),
            base: slot * SLOT,
            size,
            time_date_stamp: 0,
            checksum: 0,
            pdb_file: pdb_file(file, key),
            pdb_guid: Guid([0; 16]),
            pdb_age: 1,
            processes: Vec::new(),
            functions: Vec::new(),
            is_kernel,
            by_name: HashMap::new(),
            content: bits,
        };
        module.identify();
        Ok(module)
    }
}

/// NT device name of the volume with Windows. A volume mapping in the log gives it the drive letter
/// `C:`.
pub(super) const SYSTEM_VOLUME: &str = r"\Device\HarddiskVolume3";

fn is_kernel_file(key: &str) -> bool {
    const OTHERS: [&str; 8] = [
        "ntoskrnl.exe",
        "hal.dll",
        "ci.dll",
        "kd.dll",
        "cdd.dll",
        "clfs.sys",
        "mcupdate.dll",
        "bootvid.dll",
    ];
    key.ends_with(".sys") || OTHERS.contains(&key)
}

fn default_path(file: &str, key: &str, is_kernel: bool) -> String {
    /// Programs of Windows that are in the folder `System32`.
    const SYSTEM_PROGRAMS: [&str; 14] = [
        "smss.exe",
        "csrss.exe",
        "wininit.exe",
        "winlogon.exe",
        "services.exe",
        "lsass.exe",
        "svchost.exe",
        "dwm.exe",
        "conhost.exe",
        "spoolsv.exe",
        "taskhostw.exe",
        "searchindexer.exe",
        "audiodg.exe",
        "ctfmon.exe",
    ];
    if is_kernel {
        let is_driver = key.ends_with(".sys") && !key.starts_with("win32k");
        let folder = if is_driver { r"drivers\" } else { "" };
        return format!(r"\SystemRoot\System32\{folder}{file}");
    }
    if key == "explorer.exe" {
        return format!(r"{SYSTEM_VOLUME}\Windows\{file}");
    }
    match file.strip_suffix(".exe") {
        Some(program) if !SYSTEM_PROGRAMS.contains(&key) => {
            format!(r"{SYSTEM_VOLUME}\Program Files\{program}\{file}")
        }
        _ => format!(r"{SYSTEM_VOLUME}\Windows\System32\{file}"),
    }
}

fn pdb_file(file: &str, key: &str) -> String {
    if key == "ntoskrnl.exe" {
        return "ntkrnlmp.pdb".into();
    }
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    format!("{stem}.pdb")
}

/// Address range for one kind of module.
struct Area {
    base: u64,
    /// Size in multiples of [`SLOT`].
    slots: u64,
}

impl Area {
    /// Returns the address range for a module. The ranges are invented, but they lie within the address
    /// ranges of Windows: user addresses have 43 bits on Windows 7 and 47 bits in later releases.
    fn new(key: &str, is_kernel: bool, windows: Windows) -> Area {
        let (base, slots) = match (is_kernel, key.ends_with(".exe"), windows) {
            (true, _, _) => (0xFFFF_F801_0000_0000, 0x2000),
            (false, true, Windows::Seven) => (0x1_4000_0000, 0x800),
            (false, false, Windows::Seven) => (0x7F8_0000_0000, 0x700),
            (false, true, _) => (0x7FF6_0000_0000, 0x200),
            (false, false, _) => (0x7FF8_0000_0000, 0x700),
        };
        Area { base, slots }
    }
}

/// Pseudo-random numbers derived from a module's name, the release of Windows and texts that are
/// added later. FNV-1a hashes these inputs; `SplitMix64` makes numbers from the hash.
#[derive(Clone, Copy, Debug)]
struct Bits(u64);

impl Bits {
    fn new(key: &str, windows: Windows) -> Bits {
        let mut bits = Bits(0xCBF2_9CE4_8422_2325);
        bits.hash(key.bytes().chain(windows.build().to_le_bytes()));
        bits
    }

    /// Adds a text and an end mark. Because of the end mark, `ab` + `c` gives another hash than `a` + `bc`.
    fn add(&mut self, text: &str) {
        self.hash(text.bytes().chain([0]));
    }

    fn hash(&mut self, bytes: impl Iterator<Item = u8>) {
        self.0 = bytes.fold(self.0, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn functions_lie_in_their_module() {
        let mut modules = Modules::new(Windows::Ten);
        let first = modules.function(None, "ndis.sys!a").unwrap();
        let second = modules.function(None, "NDIS.SYS!b").unwrap();
        assert_eq!(modules.function(None, "ndis.sys!a"), Ok(first));
        assert_eq!(second, first + 0x200);
        let ndis = modules.iter().find(|m| m.file == "ndis.sys").unwrap();
        assert_eq!(first, ndis.base + 0x1000);
        assert_eq!(ndis.functions[1].name, "b");
        assert_eq!(
            (ndis.functions[1].rva, ndis.functions[1].size),
            (0x1200, 0x200)
        );
        assert_eq!(ndis.path, r"\SystemRoot\System32\drivers\ndis.sys");
        let frame = modules.frame(None, "ndis.sys!b").unwrap();
        assert!((second + 1..second + 0x200).contains(&frame));
    }

    #[test]
    fn a_library_is_mapped_once_for_all_processes() {
        let mut modules = Modules::new(Windows::Ten);
        let frame = |modules: &mut Modules, process| modules.frame(Some(process), "ntdll.dll!f");
        let first = frame(&mut modules, 40).unwrap();
        assert_eq!(frame(&mut modules, 60), Ok(first));
        modules.map(Some(60), "game.exe").unwrap();
        let files = |process| -> Vec<_> {
            let mapped = modules.of_process(process);
            mapped.map(|module| module.file.as_str()).collect()
        };
        assert_eq!(
            (files(40), files(60)),
            (vec!["ntdll.dll"], vec!["ntdll.dll", "game.exe"])
        );
        assert!(
            modules
                .of_kernel()
                .all(|module| module.file == "ntoskrnl.exe")
        );
    }

    #[test]
    fn paths_are_the_devices() {
        let mut modules = Modules::new(Windows::Ten);
        modules
            .set_path(Some(40), "game.exe", r"C:\Games\game.exe")
            .unwrap();
        modules.map(Some(40), "lsass.exe").unwrap();
        let paths: Vec<_> = modules.of_process(40).map(|m| m.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                r"\Device\HarddiskVolume3\Games\game.exe",
                r"\Device\HarddiskVolume3\Windows\System32\lsass.exe"
            ]
        );
    }

    #[test]
    fn where_a_module_is_follows_from_its_name() {
        let one = |before: &[&str], windows| {
            let mut modules = Modules::new(windows);
            for file in before {
                modules.map(Some(40), file).unwrap();
            }
            modules.map(Some(40), "user32.dll").unwrap();
            modules.iter().last().unwrap().clone()
        };
        let (alone, later) = (one(&[], Windows::Ten), one(&["a.dll"], Windows::Ten));
        assert_eq!((alone.base, alone.pdb_guid), (later.base, later.pdb_guid));
        assert_ne!(alone.pdb_guid, one(&[], Windows::Eleven25H2).pdb_guid);
    }

    #[test]
    fn modules_of_other_functions_are_other_files() {
        let one = |functions: &[&str]| {
            let mut modules = Modules::new(Windows::Ten);
            for function in functions {
                modules
                    .function(None, &format!("ndis.sys!{function}"))
                    .unwrap();
            }
            let ndis = modules.iter().last().unwrap();
            (
                ndis.base,
                ndis.pdb_guid,
                ndis.time_date_stamp,
                ndis.checksum,
            )
        };
        let same = one(&["ab", "c"]);
        assert_eq!(one(&["ab", "c", "ab"]), same);
        for functions in [&["ab"][..], &["c", "ab"], &["a", "bc"], &["ab", "c", "d"]] {
            let other = one(functions);
            assert_eq!(other.0, same.0);
            assert!(other.1 != same.1 && other.2 != same.2, "{functions:?}");
        }
    }

    #[test]
    fn modules_do_not_overlap() {
        let mut rng = Rng(7);
        for windows in [Windows::Seven, Windows::Eleven25H2] {
            let mut modules = Modules::new(windows);
            for _ in 0..1_000 {
                let suffix = ["sys", "dll", "exe"][rng.below(3)];
                let file = format!("{:x}.{suffix}", rng.bits());
                modules.map(Some(40), &file).unwrap();
            }
            let mut places: Vec<_> = modules
                .iter()
                .map(|m| (m.base, m.base + u64::from(m.size)))
                .collect();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            for module in modules.iter() {
                assert_eq!(module.base >> 63 == 1, module.is_kernel);
                assert_eq!(
                    module.is_kernel,
                    module.file.ends_with(".sys") || module.file == "ntoskrnl.exe"
                );
            }
        }
    }

    #[test]
    fn wrong_frames_are_told() {
        let mut modules = Modules::new(Windows::Ten);
        for text in ["ndis.sys", "!f", "ndis.sys!"] {
            let error = FrameError::NotAFrame(text.into());
            assert_eq!(modules.frame(None, text), Err(error));
        }
        for process in [None, Some(0), Some(4)] {
            let error = FrameError::UserCodeInKernel("user32.dll".into());
            assert_eq!(modules.frame(process, "user32.dll!f"), Err(error));
        }
        let many =
            (0..20_000).try_for_each(|i| modules.frame(None, &format!("x.sys!{i}")).map(|_| ()));
        assert!(matches!(many, Err(FrameError::TooManyFunctions { .. })));
    }

    #[test]
    fn equal_stacks_are_one_and_long_ones_are_cut() {
        let mut modules = Modules::new(Windows::Ten);
        let first = modules.stack(&[1, 2]);
        assert_ne!(modules.stack(&[2, 1]), first);
        assert_eq!(modules.stack(&[1, 2]), first);
        let long = modules.stack(&[5; 300]);
        assert_eq!(modules.addresses(long).len(), 192 * 8);
    }
}
