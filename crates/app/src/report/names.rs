//! Who and what the rows of tables speak of.

use tables::{ImagesView, ProcessesView, Table};

use super::By;
use crate::cli::{Failure, TraceTables};
use crate::module_name::module_name;

/// Processes and images by their rows in `processes` and `images`.
pub(crate) struct Names {
    processes: Vec<(u32, Option<Box<str>>)>,
    images: Vec<Image>,
}

struct Image {
    module: Option<Box<str>>,
    base: u64,
}

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
            images: Vec::new(),
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
            let batch = images.read(chunk, &["base_address", "path", "original_file_name"])?;
            let view = ImagesView::new(&batch)?;
            let bases = view.base_address.iter().zip(0..);
            names.images.extend(
                bases.map(|(base, row)| Image {
                    module: module_name(view.path.get(row), view.original_file_name.get(row))
                        .map(Box::from),
                    base: *base,
                }),
            );
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
    fn module(&self, image: Option<u32>) -> Option<&str> {
        self.images.get(image? as usize)?.module.as_deref()
    }

    /// The module or function that an address is in, if it is known.
    pub(crate) fn place(&self, by: By, image: Option<u32>, address: u64) -> Option<String> {
        match by {
            By::Module => self.module(image).map(str::to_owned),
            By::Function => Some(self.function(image, address)),
        }
    }

    /// The function at an address, as `module!function`; without symbols the address within the
    /// module, or the address.
    fn function(&self, image: Option<u32>, address: u64) -> String {
        let image = image.and_then(|image| self.images.get(image as usize));
        let known = image
            .and_then(|image| Some((image.module.as_deref()?, address.checked_sub(image.base)?)));
        match known {
            Some((module, offset)) => format!("{module}+{offset:#x}"),
            None => format!("{address:#x}"),
        }
    }
}
