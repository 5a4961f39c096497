//! Simulated traces for the tests of the explorer.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use explore::Explorer;
use sim::{Override, Scenario};
use tables::{Cache, Functions, Identities, Options, Store, Table};
use tempfile::TempDir;

/// Cancellation flag that is never set.
pub(crate) static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// A simulated trace and its explorer.
pub(crate) struct Explored {
    _folder: TempDir,
    pub(crate) store: Arc<Store>,
    pub(crate) explorer: Explorer,
    pub(crate) names: Identities,
}

/// Source of invented function names. A function is a 4 KiB page of an image.
struct Pages;

impl Functions for Pages {
    fn name(&self, image_row: u32, address: u64) -> Option<String> {
        Some(function(image_row, address) + &format!("+{:#x}", address % 4096))
    }

    fn function(&self, image_row: u32, address: u64) -> Option<String> {
        Some(function(image_row, address))
    }
}

/// Returns the invented function name of an address, without the offset.
pub(crate) fn function(image_row: u32, address: u64) -> String {
    format!("image{image_row}!page{:x}", address / 4096)
}

impl Explored {
    /// Simulates one of the supplied scenarios with changed settings.
    pub(crate) fn new(name: &str, settings: &[&str], memory_bytes: usize) -> Explored {
        let text = sim::shipped::text(name).expect("a scenario that ships");
        let named = |name: &str| sim::shipped::text(name).map(str::to_owned);
        let settings: Vec<Override> = settings
            .iter()
            .map(|setting| Override::parse(setting).expect("a setting"))
            .collect();
        let scenario = Scenario::read(name, text, &named, &settings).expect("a scenario");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("simulated.etl");
        let file = File::create(&path).expect("a file");
        sim::simulate(&scenario, Some(7), file, |_| true).expect("it runs");
        let store = Arc::new(imports::open_store(&[path], Cache::Off).expect("a trace"));
        let names = Identities::read(&store, Options::default()).expect("names");
        Explored {
            explorer: Explorer::new(store.clone(), Some(Arc::new(Pages)), memory_bytes),
            _folder: folder,
            store,
            names,
        }
    }

    /// Returns the trace of a busy machine. It has a hundred thousand events of nearly all kinds.
    pub(crate) fn busy() -> &'static Explored {
        static BUSY: OnceLock<Explored> = OnceLock::new();
        BUSY.get_or_init(|| Explored::new("load", &["events=100000"], Explorer::MEMORY_BYTES))
    }

    /// Returns all rows of a table.
    pub(crate) fn batches(&self, table: Table) -> Vec<RecordBatch> {
        let stored = self
            .store
            .table(table, Options::default())
            .expect("a table");
        let chunks = 0..stored.chunks().len();
        let read = |chunk| stored.read_all(chunk).expect("a chunk");
        chunks.map(read).collect()
    }

    /// Returns the label of the process of a run.
    pub(crate) fn process(&self, row: Option<u32>, id: Option<u32>) -> String {
        match (row, id) {
            (Some(row), _) => self.names.process_label(Some(row)).expect("a process"),
            (None, Some(0)) => "Idle (0)".to_owned(),
            (None, _) => "unknown".to_owned(),
        }
    }
}
