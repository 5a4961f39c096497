//! Compiles drivers with their PDBs for the target of Microsoft's tools, with the Rust compiler and linker. No
//! Windows SDK is needed, because a driver needs no library.

use std::path::{Path, PathBuf};
use std::process::Command;

use etl::Guid;
use symbols::PdbId;

/// A driver's PDB, and the addresses of the driver's exports.
pub(crate) struct Driver {
    _folder: tempfile::TempDir,
    pub(crate) pdb: PathBuf,
    pub(crate) id: PdbId,
    /// Name and relative address of each function that the image exports.
    pub(crate) exports: Vec<(String, u32)>,
    /// Relative address of the end of the code.
    pub(crate) code_end: u32,
}

impl Driver {
    /// Compiles `tiny.rs`. If `full` is false, the PDB contains only public symbols.
    pub(crate) fn compile(full: bool) -> Driver {
        const TARGET: &str = "x86_64-pc-windows-msvc";
        let folder = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/tiny.rs");
        let mut rustc = Command::new("rustc");
        rustc
            .current_dir(folder.path())
            .args([
                "--edition",
                "2024",
                "--target",
                TARGET,
                "--crate-type",
                "bin",
            ])
            .args([
                "-C",
                "panic=abort",
                "-C",
                "opt-level=1",
                "-C",
                "linker=rust-lld",
            ])
            .args(["-C", "linker-flavor=lld-link", "-o", "tiny.sys", source])
            .args(["-C", if full { "debuginfo=2" } else { "debuginfo=0" }]);
        for argument in [
            "/DRIVER",
            "/ENTRY:DriverEntry",
            "/NODEFAULTLIB",
            "/SUBSYSTEM:NATIVE",
            "/PDBALTPATH:tiny.pdb",
            "/PDB:tiny.pdb",
            "/EXPORT:TinyDpcRoutine",
            "/EXPORT:DriverEntry",
            "/DEBUG",
            "/Brepro",
        ] {
            rustc.arg("-C").arg(format!("link-arg={argument}"));
        }
        let output = rustc.output().expect("rustc starts");
        assert!(
            output.status.success(),
            "rustc: {}\n`rustup target add {TARGET}` installs what it needs",
            String::from_utf8_lossy(&output.stderr)
        );
        let image = Image::read(&folder.path().join("tiny.sys"));
        Driver {
            pdb: folder.path().join("tiny.pdb"),
            id: image.pdb(),
            exports: image.exports(),
            code_end: image.sections[0].0 + image.sections[0].1,
            _folder: folder,
        }
    }

    /// Returns the address of an export.
    pub(crate) fn export(&self, name: &str) -> u32 {
        self.exports.iter().find(|(n, _)| n == name).unwrap().1
    }
}

/// Image of the driver in the PE32+ format. The tests compare the PDB with this image. The parser of the
/// image follows the specification.
struct Image {
    bytes: Vec<u8>,
    /// Relative address, size in memory and file offset for each section.
    sections: Vec<(u32, u32, u32)>,
    directories: usize,
}

impl Image {
    fn read(path: &Path) -> Image {
        let bytes = std::fs::read(path).unwrap();
        let mut image = Image {
            bytes,
            sections: Vec::new(),
            directories: 0,
        };
        let header = image.u32(0x3C) as usize;
        assert_eq!(image.u32(header), 0x4550);
        let optional = header + 24;
        image.directories = optional + 112;
        let table = optional + image.u16(header + 20);
        for at in (0..image.u16(header + 6)).map(|n| table + 40 * n) {
            let section = (image.u32(at + 12), image.u32(at + 8), image.u32(at + 20));
            image.sections.push(section);
        }
        image
    }

    fn u16(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes(
            self.bytes[at..at + 2].try_into().unwrap(),
        ))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    /// Returns the file offset for a relative address.
    fn place(&self, rva: u32) -> usize {
        let holds = |(start, size, _): &&(u32, u32, u32)| (*start..start + size).contains(&rva);
        let (start, _, file) = self.sections.iter().find(holds).unwrap();
        (rva - start + file) as usize
    }

    fn text(&self, at: usize) -> String {
        let bytes = self.bytes[at..].iter().take_while(|b| **b != 0);
        String::from_utf8(bytes.copied().collect()).unwrap()
    }

    fn pdb(&self) -> PdbId {
        const DEBUG: usize = 6;
        const CODE_VIEW: u32 = 2;
        let table = self.place(self.u32(self.directories + 8 * DEBUG));
        let count = self.u32(self.directories + 8 * DEBUG + 4) as usize / 28;
        let mut entries = (0..count).map(|n| table + 28 * n);
        let entry = entries.find(|at| self.u32(at + 12) == CODE_VIEW).unwrap();
        let rsds = self.u32(entry + 24) as usize;
        assert_eq!(&self.bytes[rsds..rsds + 4], b"RSDS");
        let guid = Guid::read(&self.bytes[rsds + 4..]).unwrap();
        PdbId::new(&self.text(rsds + 24), guid, self.u32(rsds + 20)).unwrap()
    }

    fn exports(&self) -> Vec<(String, u32)> {
        let table = self.place(self.u32(self.directories));
        let count = self.u32(table + 24) as usize;
        let at = |field: usize| self.place(self.u32(table + field));
        let (functions, names, ordinals) = (at(28), at(32), at(36));
        (0..count)
            .map(|n| {
                let name = self.text(self.place(self.u32(names + 4 * n)));
                let ordinal = self.u16(ordinals + 2 * n);
                (name, self.u32(functions + 4 * ordinal))
            })
            .collect()
    }
}
