//! The places that addresses of stacks are in, each known by a small number.

use rustc_hash::FxHashMap;
use tables::{ImageTracker, Images, ImagesView, Table};

use crate::cli::Failure;
use crate::report::{By, Names, Recording};

/// Finds places.
pub(super) struct Frames<'t> {
    names: &'t Names,
    images: ImageTracker,
    by: By,
    /// By image and, where functions are told apart, address.
    known: FxHashMap<(Option<u32>, u64), u32>,
    by_name: FxHashMap<Option<String>, u32>,
    places: Vec<Option<String>>,
    stack: Vec<u32>,
}

impl<'t> Frames<'t> {
    /// Reads where images were mapped.
    pub(super) fn read(trace: &'t Recording, by: By) -> Result<Frames<'t>, Failure> {
        let table = trace.tables.table(Table::Images)?;
        let mut images = Images::default();
        let columns = [
            "first_seen_ns",
            "load_ns",
            "unload_ns",
            "process_id",
            "base_address",
            "size_bytes",
        ];
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &columns)?;
            let view = ImagesView::new(&batch)?;
            images.first_seen_ns.extend(view.first_seen_ns);
            images.base_address.extend(view.base_address);
            images.size_bytes.extend(view.size_bytes);
            for row in 0..view.len() {
                images.load_ns.push(view.load_ns.get(row));
                images.unload_ns.push(view.unload_ns.get(row));
                images.process_id.push(view.process_id.get(row));
            }
        }
        Ok(Frames {
            names: &trace.names,
            images: ImageTracker::new(&images),
            by,
            known: FxHashMap::default(),
            by_name: FxHashMap::default(),
            places: Vec::new(),
            stack: Vec::new(),
        })
    }

    /// The places of a stack, callee first. Where modules are told apart, calls within one are one
    /// place.
    pub(super) fn places(
        &mut self,
        addresses: &[u64],
        process_id: Option<u32>,
        time_ns: i64,
    ) -> &[u32] {
        self.stack.clear();
        for address in addresses {
            let row = self
                .images
                .lookup(process_id.unwrap_or(0), *address, time_ns);
            let image = row.and_then(|row| u32::try_from(row).ok());
            let place = self.place(image, *address);
            if self.by == By::Function || self.stack.last() != Some(&place) {
                self.stack.push(place);
            }
        }
        &self.stack
    }

    fn place(&mut self, image: Option<u32>, address: u64) -> u32 {
        let address = match self.by {
            By::Module => 0,
            By::Function => address,
        };
        if let Some(place) = self.known.get(&(image, address)) {
            return *place;
        }
        let name = self.names.place(self.by, image, address);
        let places = &mut self.places;
        let place = *self.by_name.entry(name).or_insert_with_key(|name| {
            places.push(name.clone());
            (places.len() - 1) as u32
        });
        self.known.insert((image, address), place);
        place
    }

    /// How many places there are so far.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// What a place is called, if that is known.
    pub(super) fn name(&self, place: u32) -> Option<&str> {
        self.places[place as usize].as_deref()
    }
}
