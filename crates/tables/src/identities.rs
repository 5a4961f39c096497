//! Names of the processes, threads and images that rows refer to.

use crate::{Images, ImagesView, Options, ProcessesView, Store, StoreError, Table, ThreadsView};

/// Processes, threads and images of a trace. Each of them is identified by its row in `processes`, `threads`
/// or `images`.
#[derive(Debug, Default)]
pub struct Identities {
    processes: Vec<(u32, Option<Box<str>>)>,
    /// Ids of the parents of the processes. A parent that is not known is 0.
    parents: Vec<u32>,
    threads: Vec<(u32, Option<Box<str>>)>,
    /// Images of the trace. Only the columns that locate the images and their symbols were read.
    pub images: Images,
}

/// Id and name of a process. Each value is `None` if it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'n> {
    /// Id of the process.
    pub id: Option<u32>,
    /// File name of the image.
    pub name: Option<&'n str>,
}

impl Identities {
    /// Tables from which the names are read.
    pub const TABLES: [Table; 3] = [Table::Processes, Table::Threads, Table::Images];

    /// Reads the tables. Makes the tables that do not exist yet.
    ///
    /// # Errors
    /// See [`Store::table`] and [`StoredTable::read`](crate::StoredTable::read).
    pub fn read(store: &Store, options: Options<'_>) -> Result<Identities, StoreError> {
        store.make(&Identities::TABLES, options)?;
        let table = |table| store.table(table, options);
        let mut names = Identities {
            processes: Vec::new(),
            parents: Vec::new(),
            threads: Vec::new(),
            images: Images::default(),
        };
        let processes = table(Table::Processes)?;
        for group in 0..processes.chunks().len() {
            let batch = processes.read(group, &["process_id", "parent_id", "image_name"])?;
            let view = ProcessesView::new(&batch)?;
            let named = |(row, id): (usize, &u32)| (*id, view.image_name.get(row).map(Box::from));
            let rows = view.process_id.iter().enumerate();
            names.processes.extend(rows.map(named));
            names.parents.extend_from_slice(view.parent_id);
        }
        let threads = table(Table::Threads)?;
        for group in 0..threads.chunks().len() {
            let batch = threads.read(group, &["thread_id", "name"])?;
            let view = ThreadsView::new(&batch)?;
            let named = |(row, id): (usize, &u32)| (*id, view.name.get(row).map(Box::from));
            let rows = view.thread_id.iter().enumerate();
            names.threads.extend(rows.map(named));
        }
        let images = table(Table::Images)?;
        for group in 0..images.chunks().len() {
            let batch = images.read(group, &IMAGE_COLUMNS)?;
            add_images(&mut names.images, &ImagesView::new(&batch)?);
        }
        Ok(names)
    }

    /// Returns the number of rows of `processes`.
    pub fn process_rows(&self) -> usize {
        self.processes.len()
    }

    /// Returns all processes, in the order of their rows.
    pub fn processes(&self) -> impl Iterator<Item = Process<'_>> {
        (0..)
            .zip(&self.processes)
            .map(|(row, _)| self.process(Some(row), None))
    }

    /// Returns the process of a row. If the row is unknown, returns the process with the given id. On every
    /// machine, process 0 is `Idle` and process 4 is `System`.
    pub fn process(&self, row: Option<u32>, id: Option<u32>) -> Process<'_> {
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

    /// Returns the id of the parent of the process in a row of `processes`. A parent that is not known is 0.
    pub fn parent_id(&self, row: u32) -> Option<u32> {
        self.parents.get(row as usize).copied()
    }

    /// Returns true if the process in a row of `processes` is a thread of the kernel of Linux: `kthreadd`, which has the
    /// id 2, or a child of it.
    pub fn is_kernel_thread(&self, row: u32) -> bool {
        let process = self.processes.get(row as usize);
        process.is_some_and(|(id, _)| *id == 2) || self.parent_id(row) == Some(2)
    }

    /// Returns the number of rows of `threads`.
    pub fn thread_rows(&self) -> usize {
        self.threads.len()
    }

    /// Returns the id of the thread in a row of `threads`.
    pub fn thread_id(&self, row: u32) -> Option<u32> {
        self.threads.get(row as usize).map(|(id, _)| *id)
    }

    /// Returns the name of the thread in a row of `threads`.
    pub fn thread_name(&self, row: u32) -> Option<&str> {
        self.threads.get(row as usize)?.1.as_deref()
    }

    /// Returns the file name of the image in a row of `images`. Returns `None` if the row or the name is
    /// unknown.
    pub fn module(&self, image: Option<u32>) -> Option<&str> {
        let row = image? as usize;
        module_name(
            self.images.path.get(row),
            self.images.original_file_name.get(row),
        )
    }
}

/// Returns the file name in the path of an image. If the path is unknown, returns the file name at link time.
pub fn module_name<'i>(path: Option<&'i str>, original: Option<&'i str>) -> Option<&'i str> {
    path.or(original).map(file_name)
}

/// Returns true if the path of an image of Linux stands for memory without a file on a disk. Programs put code there that
/// they generate while they run.
pub fn is_generated(path: &str) -> bool {
    const STARTS: [&str; 6] = [
        "//anon",
        "[anon",
        "/memfd:",
        "/dev/zero",
        "[heap]",
        "[stack",
    ];
    STARTS.iter().any(|start| path.starts_with(start))
}

/// Returns the last component of a Windows path.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

/// Columns that locate images and their symbols.
const IMAGE_COLUMNS: [&str; 13] = [
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
    "build_id",
];

fn add_images(images: &mut Images, view: &ImagesView<'_>) {
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
        images.build_id.push(view.build_id.get(row));
    }
}
