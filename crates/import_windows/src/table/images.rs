//! `images`: programs, libraries and drivers mapped into processes.

use std::collections::HashMap;

use events::ids::class::IMAGE_ID;
use events::ids::hook;
use events::kernel::{Class, Image, ImageId, PdbId};
use tables::import::{UnreadableEvents, Volumes};
use tables::{Images, Table};

use crate::event_buffer::BufferedEvent;
use crate::register::Reads;

/// Events from which the rows are made.
pub(crate) const READS: Reads = Reads {
    hooks: &[
        hook::PROCESS_LOAD_IMAGE..=hook::PROCESS_LOAD_IMAGE,
        hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END,
        hook::IMAGE_LOAD..=hook::IMAGE_LOAD,
    ],
    classes: &[IMAGE_ID],
    ..Reads::NOTHING
};

/// A mapped image.
struct Row<'a> {
    first_seen_ns: i64,
    load_ns: Option<i64>,
    unload_ns: Option<i64>,
    process_id: Option<u32>,
    image: Image<'a>,
}

/// Identities of images by process and base address. Each identity belongs to an image event. The time of the
/// identity is the time of this event.
type ByPlace<T> = HashMap<(u32, u64), Vec<(i64, T)>>;

/// Returns the first identity whose time is within the lifetime of an image.
fn find<'i, T>(ids: &'i ByPlace<T>, row: &Row<'_>) -> Option<&'i T> {
    let ids = ids.get(&(row.process_id?, row.image.base))?;
    let from = row.load_ns.unwrap_or(i64::MIN).min(row.first_seen_ns);
    let (time, id) = ids.get(ids.partition_point(|(time, _)| *time < from))?;
    (*time <= row.unload_ns.unwrap_or(i64::MAX)).then_some(id)
}

/// Version resource of an image.
#[derive(Default)]
struct Version {
    file_version: Option<String>,
    product_version: Option<String>,
    product_name: Option<String>,
    company_name: Option<String>,
    file_description: Option<String>,
}

/// Content of the image-id events.
#[derive(Default)]
struct Identities<'a> {
    files: ByPlace<ImageId<'a>>,
    pdbs: ByPlace<PdbId<'a>>,
    /// Version resources, by link time and size of the image.
    versions: HashMap<(u32, u64), Version>,
}

impl<'a> Identities<'a> {
    fn read(ids: &[BufferedEvent<'a>], unreadable: &mut UnreadableEvents) -> Self {
        const FILE: u8 = 0;
        const RSDS: u8 = 36;
        const FILE_VERSION: u8 = 64;
        let mut identities = Identities::default();
        for event in ids {
            let (payload, version, width) = (event.payload, event.version, event.pointer_size);
            let time = event.time_ns;
            let read = match event.opcode() {
                FILE => ImageId::read(payload, version, width).map(|id| {
                    let of_place = identities
                        .files
                        .entry((id.process_id, id.base))
                        .or_default();
                    of_place.push((time, id));
                }),
                RSDS => PdbId::read(payload, version, width).map(|id| {
                    let of_place = identities.pdbs.entry((id.process_id, id.base)).or_default();
                    of_place.push((time, id));
                }),
                FILE_VERSION => file_version(event).map(|(key, version)| {
                    identities.versions.entry(key).or_insert(version);
                }),
                _ => Some(()),
            };
            if read.is_none() {
                unreadable.add(Table::Images, event.place);
            }
        }
        identities
    }
}

/// Reads a FileVersion event. Returns the link time and the size of the image, and the version resource of
/// the image.
fn file_version(event: &BufferedEvent<'_>) -> Option<((u32, u64), Version)> {
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

/// Reads image events in time order.
fn read_rows<'a>(events: &[BufferedEvent<'a>], unreadable: &mut UnreadableEvents) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    // Row of each image that is currently mapped, by process and base address.
    let mut mapped: HashMap<(Option<u32>, u64), usize> = HashMap::new();
    for event in events {
        let (payload, version, width) = (event.payload, event.version, event.pointer_size);
        let is_load = matches!(event.id, hook::IMAGE_LOAD | hook::PROCESS_LOAD_IMAGE);
        let Some(image) = Image::read(payload, version, width) else {
            unreadable.add(Table::Images, event.place);
            continue;
        };
        let process_id = image.process_id.or(event.process_id);
        let key = (process_id, image.base);
        let present = mapped.get(&key).copied().filter(|_| !is_load);
        let row = present.unwrap_or_else(|| {
            rows.push(Row {
                first_seen_ns: event.time_ns,
                load_ns: is_load.then_some(event.time_ns),
                unload_ns: None,
                process_id,
                image,
            });
            mapped.insert(key, rows.len() - 1);
            rows.len() - 1
        });
        if event.id == hook::IMAGE_UNLOAD {
            rows[row].unload_ns = Some(event.time_ns);
            mapped.remove(&key);
        }
    }
    rows
}

/// Makes the table from image events and image-id events in time order.
pub(crate) fn build(
    events: &[BufferedEvent<'_>],
    volumes: &Volumes,
    unreadable: &mut UnreadableEvents,
) -> Images {
    let (events, ids): (Vec<_>, Vec<_>) = events
        .iter()
        .copied()
        .partition(|event| event.hook.is_some());
    let rows = read_rows(&events, unreadable);
    let ids = Identities::read(&ids, unreadable);
    let mut images = Images::default();
    for row in &rows {
        push(&mut images, row, &ids, volumes);
    }
    images
}

fn push(images: &mut Images, row: &Row<'_>, ids: &Identities<'_>, volumes: &Volumes) {
    let image = &row.image;
    let file = find(&ids.files, row);
    let pdb = find(&ids.pdbs, row);
    // If the header of the image is paged out, the kernel sets the link time to 0.
    let stamp = image.time_date_stamp.filter(|stamp| *stamp != 0);
    let stamp = stamp.or(file.map(|file| file.time_date_stamp));
    let version = stamp.and_then(|stamp| ids.versions.get(&(stamp, image.size)));
    let nt_path = image.file_name.to_string();
    let nt_path = Some(nt_path.as_str()).filter(|path| !path.is_empty());
    images.first_seen_ns.push(row.first_seen_ns);
    images.load_ns.push(row.load_ns);
    images.unload_ns.push(row.unload_ns);
    images.process_id.push(row.process_id);
    images.base_address.push(image.base);
    images.size_bytes.push(image.size);
    images
        .path
        .push(nt_path.map(|path| volumes.to_dos(path)).as_deref());
    images.nt_path.push(nt_path);
    images.time_date_stamp.push(stamp);
    images.checksum.push(image.checksum);
    images.default_base.push(image.default_base);
    images.signature_level.push(image.signature_level);
    images.signature_type.push(image.signature_type);
    let name = file.map(|file| file.original_file_name.to_string());
    images
        .original_file_name
        .push(name.as_deref().filter(|name| !name.is_empty()));
    images
        .pdb_guid
        .push(pdb.map(|pdb| pdb.guid.to_string()).as_deref());
    images.pdb_age.push(pdb.map(|pdb| pdb.age));
    images
        .pdb_path
        .push(pdb.map(|pdb| pdb.path.to_str()).as_deref());
    images.build_id.push(None);
    let text = |field: fn(&Version) -> &Option<String>| version.and_then(|v| field(v).as_deref());
    images.file_version.push(text(|v| &v.file_version));
    images.product_version.push(text(|v| &v.product_version));
    images.product_name.push(text(|v| &v.product_name));
    images.company_name.push(text(|v| &v.company_name));
    images.file_description.push(text(|v| &v.file_description));
}
