//! Who and what the rows of tables speak of.

use tables::{Images, ProcessesView, Table};

use crate::cli::{Failure, TraceTables};
use crate::images;
use crate::module_name::module_name;

/// Processes and images by their rows in `processes` and `images`.
pub(crate) struct Names {
    processes: Vec<(u32, Option<Box<str>>)>,
    /// The images, but for the columns that nothing here asks for.
    pub(crate) images: Images,
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
            images: images::read(&tables.table(Table::Images)?)?,
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
}
