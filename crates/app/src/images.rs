//! The images of a trace, but for the columns that nothing here asks for.

use tables::{Images, ImagesView, StoredTable};

use crate::cli::Failure;

/// What is kept of images: where they were mapped when, and what leads to their symbols.
const COLUMNS: [&str; 12] = [
    "first_seen_ns",
    "load_ns",
    "unload_ns",
    "process_id",
    "base_address",
    "size_bytes",
    "path",
    "original_file_name",
    "time_date_stamp",
    "pdb_guid",
    "pdb_age",
    "pdb_path",
];

/// Reads the table `images`.
pub(crate) fn read(table: &StoredTable) -> Result<Images, Failure> {
    let mut images = Images::default();
    for chunk in 0..table.chunks().len() {
        add(
            &mut images,
            &ImagesView::new(&table.read(chunk, &COLUMNS)?)?,
        );
    }
    Ok(images)
}

fn add(images: &mut Images, view: &ImagesView<'_>) {
    images.first_seen_ns.extend(view.first_seen_ns);
    images.base_address.extend(view.base_address);
    images.size_bytes.extend(view.size_bytes);
    for row in 0..view.len() {
        images.load_ns.push(view.load_ns.get(row));
        images.unload_ns.push(view.unload_ns.get(row));
        images.process_id.push(view.process_id.get(row));
        images.path.push(view.path.get(row));
        let original = view.original_file_name.get(row);
        images.original_file_name.push(original);
        images.time_date_stamp.push(view.time_date_stamp.get(row));
        images.pdb_guid.push(view.pdb_guid.get(row));
        images.pdb_age.push(view.pdb_age.get(row));
        images.pdb_path.push(view.pdb_path.get(row));
    }
}
