//! Who and what the rows of tables speak of.

use tables::{Images, ImagesView, ProcessesView, Table};

use crate::cli::{Failure, TraceTables};
use crate::module_name::module_name;

/// Processes and images by their rows in `processes` and `images`.
pub(crate) struct Names {
    processes: Vec<(u32, Option<Box<str>>)>,
    /// The images, but for the columns that nothing here asks for.
    pub(crate) images: Images,
}

/// What is kept of images: where they were mapped when, and what leads to their symbols.
const IMAGE_COLUMNS: [&str; 12] = [
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

/// A process, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process<'n> {
    pub(crate) id: Option<u32>,
    pub(crate) name: Option<&'n str>,
}

impl Names {
    /// Reads the two tables.
    pub(crate) fn read(tables: &TraceTables) -> Result<Names, Failure> {
        let mut names = Names {
            processes: Vec::new(),
            images: Images::default(),
        };
        let processes = tables.table(Table::Processes)?;
        for chunk in 0..processes.chunks().len() {
            let batch = processes.read(chunk, &["process_id", "image_name"])?;
            let view = ProcessesView::new(&batch)?;
            names.processes.extend(
                view.process_id
                    .iter()
                    .zip(0..)
                    .map(|(id, row)| (*id, view.image_name.get(row).map(Box::from))),
            );
        }
        let images = tables.table(Table::Images)?;
        for chunk in 0..images.chunks().len() {
            names.add_images(&ImagesView::new(&images.read(chunk, &IMAGE_COLUMNS)?)?);
        }
        Ok(names)
    }

    /// All processes, in the order of their rows.
    pub(crate) fn processes(&self) -> impl Iterator<Item = Process<'_>> {
        (0..)
            .zip(&self.processes)
            .map(|(row, _)| self.process(Some(row), None))
    }

    /// The process of a row, or of which only the id is known. The ids 0 and 4 are `Idle` and
    /// `System` on every machine.
    pub(crate) fn process(&self, row: Option<u32>, id: Option<u32>) -> Process<'_> {
        let known = row.and_then(|row| self.processes.get(row as usize));
        let id = known.map(|(id, _)| *id).or(id);
        let always = match id {
            Some(0) => {
                return Process {
                    id,
                    name: Some("Idle"),
                };
            }
            Some(4) => Some("System"),
            _ => None,
        };
        let name = known.and_then(|(_, name)| name.as_deref()).or(always);
        Process { id, name }
    }

    /// File name of the module of a row.
    pub(crate) fn module(&self, image: Option<u32>) -> Option<&str> {
        let row = image? as usize;
        module_name(
            self.images.path.get(row),
            self.images.original_file_name.get(row),
        )
    }

    fn add_images(&mut self, view: &ImagesView<'_>) {
        let images = &mut self.images;
        images.first_seen_ns.extend(view.first_seen_ns);
        images.base_address.extend(view.base_address);
        images.size_bytes.extend(view.size_bytes);
        for row in 0..view.len() {
            images.load_ns.push(view.load_ns.get(row));
            images.unload_ns.push(view.unload_ns.get(row));
            images.process_id.push(view.process_id.get(row));
            images.path.push(view.path.get(row));
            images
                .original_file_name
                .push(view.original_file_name.get(row));
            images.time_date_stamp.push(view.time_date_stamp.get(row));
            images.pdb_guid.push(view.pdb_guid.get(row));
            images.pdb_age.push(view.pdb_age.get(row));
            images.pdb_path.push(view.pdb_path.get(row));
        }
    }
}
