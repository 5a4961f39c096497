//! `images`: programs, libraries and drivers mapped into processes.

use std::collections::HashMap;

use etl::Guid;
use events::kernel::{Class, Image, ImageId, PdbId};

use crate::Table;
use crate::column::{Nullable, Text};
use crate::kept::KeptEvent;
use crate::schema::table;
use crate::unreadable::UnreadableEvents;
use crate::volumes::Volumes;

table! {
    /// One row per image mapped into a process, or into the kernel (`process_id` 0).
    ///
    /// An image that was there when the trace began has no `load_ns`, one that outlived it no
    /// `unload_ns`. Identities for symbols and file versions are in traces that were merged on the
    /// machine that recorded them.
    Images, ImagesView = "images" sorted by first_seen_ns {
        /// When an event first told of the image.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// When it was mapped; unknown if before the trace.
        load_ns: Nullable<i64> = "Image Load: header time",
        /// When it was unmapped; unknown if after the trace.
        unload_ns: Nullable<i64> = "Image Unload: header time",
        /// Its process; 0 for the kernel's modules. Unknown in version 0 without a header process.
        process_id: Nullable<u32> = "ProcessId",
        /// Where it is mapped.
        base_address: Vec<u64> = "ImageBase",
        /// Its size in memory.
        size_bytes: Vec<u64> = "ImageSize",
        /// Its file, with a drive letter where the trace maps its volume to one.
        path: Text = "FileName; SysConfigEx VolumeMapping" wpa "Image Path",
        /// Its file as the kernel names it.
        nt_path: Text = "FileName",
        /// Link time of its file, or a hash where builds are reproducible.
        time_date_stamp: Nullable<u32> = "TimeDateStamp; ImageId: TimeDateStamp",
        /// Checksum of its file.
        checksum: Nullable<u32> = "ImageChecksum",
        /// Where its file asks to be mapped.
        default_base: Nullable<u64> = "DefaultBase",
        /// Signing level: 0 unchecked, 1 unsigned, 2 enterprise, 4 Authenticode, 6 store,
        /// 8 antimalware, 12 Windows, 14 Windows TCB. Since version 3 (Windows 8.1).
        signature_level: Nullable<u8> = "SignatureLevel",
        /// Where its signature was found: 0 nowhere, 1 embedded, 2 cached, 3 catalog cached,
        /// 4 catalog uncached, 5 catalog hint, 6 package catalog. Since version 3.
        signature_type: Nullable<u8> = "SignatureType",
        /// The name its file was linked with.
        original_file_name: Text = "ImageId: OriginalFileName",
        /// Identity of the PDB that describes it.
        pdb_guid: Text = "DbgIdRSDS: GuidSig",
        /// How often that PDB was rewritten.
        pdb_age: Nullable<u32> = "DbgIdRSDS: Age",
        /// Path of the PDB as the linker knew it.
        pdb_path: Text = "DbgIdRSDS: PdbFileName",
        /// Version of its file.
        file_version: Text = "FileVersion: FileVersion",
        /// Version of its product.
        product_version: Text = "FileVersion: ProductVersion",
        /// Its product.
        product_name: Text = "FileVersion: ProductName",
        /// Who made it.
        company_name: Text = "FileVersion: CompanyName",
        /// What it is for.
        file_description: Text = "FileVersion: FileDescription",
    }
}

/// Class of the events that say which file and PDB an image is, and of what version.
pub(crate) const IMAGE_ID: Guid = Guid::new(
    0xb3e6_75d7,
    0x2554,
    0x4f18,
    [0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde],
);

/// An image as known so far.
struct Row<'a> {
    first_seen_ns: i64,
    load_ns: Option<i64>,
    unload_ns: Option<i64>,
    process_id: Option<u32>,
    image: Image<'a>,
}

/// Identities of an image by its process and base, each with the time of the image event that it
/// was written for.
type ByPlace<T> = HashMap<(u32, u64), Vec<(i64, T)>>;

/// The identity that was written for one of the events of an image's lifetime.
fn within<'i, T>(ids: &'i ByPlace<T>, row: &Row<'_>) -> Option<&'i T> {
    let ids = ids.get(&(row.process_id?, row.image.base))?;
    let from = row.load_ns.unwrap_or(i64::MIN).min(row.first_seen_ns);
    let (time, id) = ids.get(ids.partition_point(|(time, _)| *time < from))?;
    (*time <= row.unload_ns.unwrap_or(i64::MAX)).then_some(id)
}

/// What an image's version resource says.
#[derive(Default)]
struct Version {
    file_version: Option<String>,
    product_version: Option<String>,
    product_name: Option<String>,
    company_name: Option<String>,
    file_description: Option<String>,
}

/// What the image-id events say.
#[derive(Default)]
struct Identities<'a> {
    files: ByPlace<ImageId<'a>>,
    pdbs: ByPlace<PdbId<'a>>,
    /// By link time and size of the image.
    versions: HashMap<(u32, u64), Version>,
}

impl<'a> Identities<'a> {
    fn read(ids: &[KeptEvent<'a>], unreadable: &mut UnreadableEvents) -> Self {
        const FILE: u8 = 0;
        const RSDS: u8 = 36;
        const FILE_VERSION: u8 = 64;
        let mut found = Identities::default();
        for event in ids {
            let (payload, version, width) = (event.payload, event.version, event.pointer_size);
            let time = event.time_ns;
            let read = match event.opcode() {
                FILE => ImageId::read(payload, version, width).map(|id| {
                    let of_place = found.files.entry((id.process_id, id.base)).or_default();
                    of_place.push((time, id));
                }),
                RSDS => PdbId::read(payload, version, width).map(|id| {
                    let of_place = found.pdbs.entry((id.process_id, id.base)).or_default();
                    of_place.push((time, id));
                }),
                FILE_VERSION => file_version(event).map(|(key, version)| {
                    found.versions.entry(key).or_insert(version);
                }),
                _ => Some(()),
            };
            if read.is_none() {
                unreadable.add(Table::Images, event.place);
            }
        }
        found
    }
}

/// Reads a FileVersion event: the link time and size of the image, and its version resource.
fn file_version(event: &KeptEvent<'_>) -> Option<((u32, u64), Version)> {
    let schema = Class::of_guid(IMAGE_ID)?.layout(event.opcode(), event.version)?;
    let fields = events::decode(&schema.fields, event.payload, event.pointer_size);
    let number = |name| fields.get(name)?.as_u64();
    let text = |name| {
        let text = fields.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let stamp = u32::try_from(number("TimeDateStamp")?).ok()?;
    Some((
        (stamp, number("ImageSize")?),
        Version {
            file_version: text("FileVersion"),
            product_version: text("ProductVersion"),
            product_name: text("ProductName"),
            company_name: text("CompanyName"),
            file_description: text("FileDescription"),
        },
    ))
}

impl Images {
    /// Builds the table from image events and image-id events, both in time order.
    pub(crate) fn build(
        events: &[KeptEvent<'_>],
        ids: &[KeptEvent<'_>],
        volumes: &Volumes,
        unreadable: &mut UnreadableEvents,
    ) -> Images {
        const UNLOAD: u8 = 2;
        const LOAD: u8 = 10;
        let mut rows: Vec<Row<'_>> = Vec::new();
        // The row of each image that is mapped.
        let mut mapped: HashMap<(Option<u32>, u64), usize> = HashMap::new();
        for event in events {
            let (payload, version, width) = (event.payload, event.version, event.pointer_size);
            let Some(image) = Image::read(payload, version, width) else {
                unreadable.add(Table::Images, event.place);
                continue;
            };
            let process_id = image.process_id.or(event.process_id);
            let key = (process_id, image.base);
            let present = mapped.get(&key).copied().filter(|_| event.opcode() != LOAD);
            let row = present.unwrap_or_else(|| {
                rows.push(Row {
                    first_seen_ns: event.time_ns,
                    load_ns: (event.opcode() == LOAD).then_some(event.time_ns),
                    unload_ns: None,
                    process_id,
                    image,
                });
                mapped.insert(key, rows.len() - 1);
                rows.len() - 1
            });
            if event.opcode() == UNLOAD {
                rows[row].unload_ns = Some(event.time_ns);
                mapped.remove(&key);
            }
        }
        let ids = Identities::read(ids, unreadable);
        let mut images = Images::default();
        for row in &rows {
            images.push(row, &ids, volumes);
        }
        images
    }

    fn push(&mut self, row: &Row<'_>, ids: &Identities<'_>, volumes: &Volumes) {
        let image = &row.image;
        let file = within(&ids.files, row);
        let pdb = within(&ids.pdbs, row);
        // The kernel leaves the link time 0 for images whose header is paged out.
        let stamp = image.time_date_stamp.filter(|stamp| *stamp != 0);
        let stamp = stamp.or(file.map(|file| file.time_date_stamp));
        let version = stamp.and_then(|stamp| ids.versions.get(&(stamp, image.size)));
        let nt_path = image.file_name.to_string();
        let nt_path = Some(nt_path.as_str()).filter(|path| !path.is_empty());
        self.first_seen_ns.push(row.first_seen_ns);
        self.load_ns.push(row.load_ns);
        self.unload_ns.push(row.unload_ns);
        self.process_id.push(row.process_id);
        self.base_address.push(image.base);
        self.size_bytes.push(image.size);
        self.path
            .push(nt_path.map(|path| volumes.to_dos(path)).as_deref());
        self.nt_path.push(nt_path);
        self.time_date_stamp.push(stamp);
        self.checksum.push(image.checksum);
        self.default_base.push(image.default_base);
        self.signature_level.push(image.signature_level);
        self.signature_type.push(image.signature_type);
        let name = file.map(|file| file.original_file_name.to_string());
        self.original_file_name
            .push(name.as_deref().filter(|name| !name.is_empty()));
        self.pdb_guid
            .push(pdb.map(|pdb| pdb.guid.to_string()).as_deref());
        self.pdb_age.push(pdb.map(|pdb| pdb.age));
        self.pdb_path
            .push(pdb.map(|pdb| pdb.path.to_str()).as_deref());
        let text = |of: fn(&Version) -> &Option<String>| version.and_then(|v| of(v).as_deref());
        self.file_version.push(text(|v| &v.file_version));
        self.product_version.push(text(|v| &v.product_version));
        self.product_name.push(text(|v| &v.product_name));
        self.company_name.push(text(|v| &v.company_name));
        self.file_description.push(text(|v| &v.file_description));
    }
}
