//! Benchmark of an audit of two registry hives. The hives are as large as on a machine that was used for
//! years.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Outcome, process};

/// Measures `laglab tune audit` of the hives SYSTEM and SOFTWARE, which have 150 MB together.
pub(crate) fn audit(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<()> {
    let folder = scratch.join("hives");
    fs::create_dir_all(&folder)?;
    // A separate process makes the hives. Otherwise, their memory would also count for the programs that this process
    // starts.
    let status = Command::new(env::current_exe()?)
        .arg("make-hives")
        .arg(&folder)
        .status()?;
    if !status.success() {
        return Err("cannot make the hives".into());
    }
    let [system, software] = NAMES.map(|name| folder.join(name));
    let bytes = fs::metadata(&system)?.len() + fs::metadata(&software)?.len();
    let args = ["tune", "audit", "--json"].map(OsStr::new);
    let args: Vec<&OsStr> = args
        .into_iter()
        .chain([system.as_os_str(), software.as_os_str()])
        .collect();
    let run = process::median(laglab, &args, 5)?;
    let audit: serde_json::Value = serde_json::from_slice(&run.output)?;
    if audit["machine"]["build"] != BUILD {
        return Err("the audit did not read the hives: it reports another build".into());
    }
    writeln!(
        report,
        "\n## Audit of hives\n\nGenerated SYSTEM and SOFTWARE, median of 5 runs. Limits: 2 s and 300 MB.\n\n\
         | hives | time | peak memory | known settings | other values read |\n|---|---|---|---|---|\n\
         | {:.0} MB | {:.3} s | {:.0} MB | {} | {} |",
        bytes as f64 / 1e6,
        run.seconds,
        run.peak_bytes as f64 / 1e6,
        audit["findings"].as_array().map_or(0, Vec::len),
        audit["others"]
    )?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

const NAMES: [&str; 2] = ["SYSTEM", "SOFTWARE"];

/// Writes both hives into a folder.
pub(crate) fn make(folder: &Path) -> Outcome<()> {
    let [system_name, software_name] = NAMES;
    fs::write(folder.join(system_name), system())?;
    Ok(fs::write(folder.join(software_name), software())?)
}

/// Build of Windows in the hives.
const BUILD: u32 = 22631;

// With the following numbers of keys, both hives together have 150 MB.

/// Number of keys of driver ids in the hive SYSTEM.
const DRIVER_IDS: u32 = 70_000;

/// Number of keys of classes in the hive SOFTWARE.
const CLASSES: u32 = 60_000;

/// Number of keys of components in the hive SOFTWARE.
const COMPONENTS: u32 = 140_000;

/// Key of a hive that is being made.
#[derive(Default)]
struct Key {
    name: String,
    values: Vec<(String, u32, Vec<u8>)>,
    below: Vec<Key>,
}

fn key(name: impl Into<String>) -> Key {
    Key {
        name: name.into(),
        ..Key::default()
    }
}

impl Key {
    fn with(mut self, below: impl IntoIterator<Item = Key>) -> Key {
        self.below.extend(below);
        self
    }

    fn number(mut self, name: &str, number: u32) -> Key {
        let bytes = number.to_le_bytes().to_vec();
        self.values.push((name.to_owned(), 4, bytes));
        self
    }

    fn text(mut self, name: &str, text: &str) -> Key {
        let units = text.encode_utf16().chain([0]);
        let bytes = units.flat_map(u16::to_le_bytes).collect();
        self.values.push((name.to_owned(), 1, bytes));
        self
    }

    fn bytes(mut self, name: &str, count: usize) -> Key {
        let bytes = (0..count).map(|place| (place * 7 % 251) as u8).collect();
        self.values.push((name.to_owned(), 3, bytes));
        self
    }
}

/// Creates nested keys for the names in a path. `last` adds the content of the last key.
fn path(names: &str, last: impl FnOnce(Key) -> Key) -> Key {
    match names.split_once('\\') {
        Some((first, rest)) => key(first).with([path(rest, last)]),
        None => last(key(names)),
    }
}

fn guid(number: u32) -> String {
    format!(
        "{{{:08x}-8765-11d0-b7c3-{number:012x}}}",
        number.wrapping_mul(2_654_435_761)
    )
}

fn software() -> Vec<u8> {
    let classes = (0..CLASSES).map(|number| {
        key(guid(number)).text("", "A registered class").with([
            key("InprocServer32")
                .text(
                    "",
                    r"C:\Program Files\Common Files\Vendor\Product\module.dll",
                )
                .text("ThreadingModel", "Both"),
            key("ProgID").text("", "Vendor.Product.1"),
        ])
    });
    let types = (0..9000).map(|number| {
        key(format!(".ext{number:05}"))
            .text("", "Vendor.Document")
            .with([path(r"shell\open\command", |key| {
                key.text(
                    "",
                    "\"C:\\Program Files\\Vendor\\Product\\program.exe\" \"%1\"",
                )
            })])
    });
    let components = (0..COMPONENTS).map(|number| {
        key(format!(
            "{:032X}",
            u128::from(number) * 0x1234_5678_9ABC_DEF1
        ))
        .text(
            &format!("{number:032X}"),
            r"C:\Program Files\Vendor\Product\part.dll",
        )
    });
    let version = key("CurrentVersion")
        .text("CurrentBuildNumber", &BUILD.to_string())
        .text("EditionID", "Professional")
        .with([path(r"Multimedia\SystemProfile", |profile| {
            profile
                .number("SystemResponsiveness", 20)
                .number("NetworkThrottlingIndex", 10)
        })]);
    let blobs = (0..40).map(|number| key(format!("Cache{number:02}")).bytes("Blob", 300_000));
    let microsoft = key("Microsoft").with([
        path(
            r"Windows\CurrentVersion\Installer\UserData\S-1-5-18\Components",
            |all| all.with(components),
        ),
        key("Windows NT").with([version]),
        key("Caches").with(blobs),
    ]);
    hive(
        &key("ROOT").with([
            key("Classes")
                .with(types)
                .with([key("CLSID").with(classes)]),
            microsoft,
            key("Policies"),
        ]),
    )
}

fn system() -> Vec<u8> {
    let adapters = (0..40).map(|number| {
        let mut adapter = key(format!("{number:04}"))
            .text("DriverDesc", "An adapter")
            .text("*RSS", "1")
            .text("*InterruptModeration", "1");
        for number in 0..60 {
            adapter = adapter.text(&format!("VendorKeyword{number}"), "0");
        }
        adapter
    });
    let net = key("{4d36e972-e325-11ce-bfc1-08002be10318}").with(adapters);
    let classes = (0..90).map(|class| {
        let drivers =
            (0..30).map(|number| key(format!("{number:04}")).text("DriverDesc", "A device"));
        key(guid(class)).with(drivers)
    });
    let devices = |bus: &str, count: u32| {
        let devices = (0..count).map(|number| {
            let interrupts =
                "Device Parameters\\Interrupt Management\\MessageSignaledInterruptProperties";
            let instance = key(format!("3&11583659&0&{number:04X}"))
                .text(
                    "DeviceDesc",
                    "@machine.inf,%device%;A device of some vendor",
                )
                .bytes("ConfigFlags", 16)
                .with([
                    path(interrupts, |key| key.number("MSISupported", 1)),
                    key("Properties").with((0..12).map(|property| {
                        path(&format!("{}\\0002", guid(property)), |key| {
                            key.bytes("", 40)
                        })
                    })),
                ]);
            key(format!("VEN_8086&DEV_{number:04X}&SUBSYS_00000000&REV_01")).with([instance])
        });
        key(bus).with(devices)
    };
    let services = (0..900).map(|number| {
        key(format!("Service{number:04}"))
            .number("Start", 3)
            .number("Type", 1)
            .text("ImagePath", r"\SystemRoot\System32\drivers\service.sys")
            .with([key("Parameters").bytes("Wdf", 200)])
    });
    let interfaces = (0..40).map(|number| key(guid(number)).number("EnableDHCP", 1));
    let tcp = path(r"Tcpip\Parameters", |key_| {
        key_.text("Hostname", "BENCH")
            .with([key("Interfaces").with(interfaces)])
    });
    let drivers = (0..DRIVER_IDS).map(|number| {
        key(format!("PCI#VEN_10DE&DEV_{number:05X}"))
            .bytes("oem.inf_amd64_0123456789abcdef", 96)
            .bytes("other.inf_amd64_fedcba9876543210", 96)
    });
    let control = key("Control").with([
        path(r"ProductOptions", |key| key.text("ProductType", "WinNT")),
        path(r"ComputerName\ComputerName", |key| {
            key.text("ComputerName", "BENCH")
        }),
        path("PriorityControl", |key| {
            key.number("Win32PrioritySeparation", 2)
        }),
        path(r"Session Manager\kernel", |key| {
            key.bytes("ObUnsecureGlobalNames", 64)
        }),
        key("Class").with([net]).with(classes),
    ]);
    let set = key("ControlSet001").with([
        control,
        key("Enum").with([
            devices("PCI", 400),
            devices("USB", 900),
            devices("SWD", 1500),
        ]),
        key("Services").with(services).with([tcp]),
    ]);
    hive(&key("ROOT").with([
        key("Select").number("Current", 1),
        path(r"DriverDatabase\DeviceIds", |ids| ids.with(drivers)),
        set,
    ]))
}

/// Serialises a hive with this root key. The format is described in
/// <https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md>.
fn hive(root: &Key) -> Vec<u8> {
    let mut cells = Cells {
        bytes: vec![0; BASE],
        bin: BASE..BASE,
    };
    let root = cells.key(root);
    cells.end_bin();
    let mut bytes = cells.bytes;
    let size = (bytes.len() - BASE) as u32;
    for (at, number) in [
        (4, 1),
        (8, 1),
        (20, 1),
        (24, 5),
        (32, 1),
        (36, root),
        (40, size),
        (44, 1),
    ] {
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
    }
    bytes[..4].copy_from_slice(b"regf");
    let words = bytes[..508].as_chunks::<4>().0.iter();
    let checksum = words.fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
    bytes[508..512].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Size in bytes of the first block of a hive, and of the smallest bin.
const BASE: usize = 4096;
const NONE: u32 = u32::MAX;

/// Bins of a hive with their cells.
struct Cells {
    bytes: Vec<u8>,
    /// Start and end of the free part of the current bin. New cells are added there.
    bin: std::ops::Range<usize>,
}

impl Cells {
    /// Adds a cell with the data, and returns the offset of the cell.
    fn add(&mut self, data: &[u8]) -> u32 {
        let size = (data.len() + 4).next_multiple_of(8);
        if self.bin.len() < size {
            self.end_bin();
            let start = self.bytes.len();
            let length = (size + 32).next_multiple_of(BASE);
            self.bytes.resize(start + length, 0);
            let (offset, length) = ((start - BASE) as u32, length as u32);
            self.bytes[start..start + 4].copy_from_slice(b"hbin");
            self.bytes[start + 4..start + 8].copy_from_slice(&offset.to_le_bytes());
            self.bytes[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
            self.bin = start + 32..self.bytes.len();
        }
        let at = self.bin.start;
        self.bytes[at..at + 4].copy_from_slice(&(-(size as i32)).to_le_bytes());
        self.bytes[at + 4..at + 4 + data.len()].copy_from_slice(data);
        self.bin.start += size;
        (at - BASE) as u32
    }

    /// Turns the free part of the current bin into a free cell.
    fn end_bin(&mut self) {
        let left = self.bin.len() as u32;
        if left > 0 {
            self.bytes[self.bin.start..][..4].copy_from_slice(&left.to_le_bytes());
        }
        self.bin = 0..0;
    }

    fn key(&mut self, key: &Key) -> u32 {
        let mut below: Vec<(&str, u32)> = (key.below.iter())
            .map(|below| (below.name.as_str(), self.key(below)))
            .collect();
        below.sort_unstable();
        let list = self.list(&below);
        let values: Vec<u32> = (key.values.iter())
            .map(|(name, kind, data)| self.value(name, *kind, data))
            .collect();
        let values_at = if values.is_empty() {
            NONE
        } else {
            self.add(
                &values
                    .iter()
                    .copied()
                    .flat_map(u32::to_le_bytes)
                    .collect::<Vec<_>>(),
            )
        };
        let mut cell = vec![0; 76];
        cell[..4].copy_from_slice(b"nk\x20\0");
        let fields = [
            (20, below.len() as u32),
            (28, list),
            (32, NONE),
            (36, values.len() as u32),
            (40, values_at),
            (44, NONE),
            (48, NONE),
            (72, key.name.len() as u32),
        ];
        for (at, number) in fields {
            cell[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        cell.extend(key.name.as_bytes());
        self.add(&cell)
    }

    /// Adds a list of keys. For many keys, adds several lists and a list of these lists.
    fn list(&mut self, keys: &[(&str, u32)]) -> u32 {
        const MOST: usize = 500;
        let leaves: Vec<u32> = keys.chunks(MOST).map(|keys| self.leaf(keys)).collect();
        match leaves.as_slice() {
            [] => NONE,
            [only] => *only,
            several => {
                let mut cell = b"ri".to_vec();
                cell.extend((several.len() as u16).to_le_bytes());
                cell.extend(several.iter().copied().flat_map(u32::to_le_bytes));
                self.add(&cell)
            }
        }
    }

    fn leaf(&mut self, keys: &[(&str, u32)]) -> u32 {
        let mut cell = b"lh".to_vec();
        cell.extend((keys.len() as u16).to_le_bytes());
        for (name, offset) in keys {
            let letters = name
                .to_uppercase()
                .bytes()
                .map(u32::from)
                .collect::<Vec<_>>();
            let hash = letters.iter().fold(0_u32, |hash, letter| {
                hash.wrapping_mul(37).wrapping_add(*letter)
            });
            cell.extend(offset.to_le_bytes());
            cell.extend(hash.to_le_bytes());
        }
        self.add(&cell)
    }

    fn value(&mut self, name: &str, kind: u32, data: &[u8]) -> u32 {
        const SEGMENT: usize = 16344;
        let (size, at) = match data.len() {
            0..=4 => {
                let mut four = [0; 4];
                four[..data.len()].copy_from_slice(data);
                (data.len() as u32 | 1 << 31, u32::from_le_bytes(four))
            }
            length if length <= SEGMENT => (length as u32, self.add(data)),
            length => {
                let segments: Vec<u32> = data.chunks(SEGMENT).map(|part| self.add(part)).collect();
                let list: Vec<u8> = segments
                    .iter()
                    .copied()
                    .flat_map(u32::to_le_bytes)
                    .collect();
                let mut cell = b"db".to_vec();
                cell.extend((segments.len() as u16).to_le_bytes());
                cell.extend(self.add(&list).to_le_bytes());
                (length as u32, self.add(&cell))
            }
        };
        let mut cell = b"vk".to_vec();
        cell.extend((name.len() as u16).to_le_bytes());
        for number in [size, at, kind, u32::from(!name.is_empty())] {
            cell.extend(number.to_le_bytes());
        }
        cell.extend(name.as_bytes());
        self.add(&cell)
    }
}
