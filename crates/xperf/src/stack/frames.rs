//! Names of the modules or functions on stacks. A place is the number of a module or function. This number is its
//! index in the list of names.

use rustc_hash::FxHashMap;
use tables::ImageTracker;

use crate::Recording;
use crate::place::{By, Places};

/// Lookup of the place of each address on a stack.
pub(super) struct Frames<'t> {
    pub(super) names: Places<'t>,
    images: ImageTracker,
    /// Place for each image row. If addresses are grouped by function, the key also has the address.
    known: FxHashMap<(Option<u32>, u64), u32>,
    by_name: FxHashMap<Option<String>, u32>,
    places: Vec<Option<String>>,
    stack: Vec<u32>,
}

impl<'t> Frames<'t> {
    /// Creates a lookup for a trace.
    pub(super) fn new(trace: &Recording, names: Places<'t>) -> Frames<'t> {
        Frames {
            images: ImageTracker::new(&trace.names.images),
            names,
            known: FxHashMap::default(),
            by_name: FxHashMap::default(),
            places: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Returns the places of a stack, innermost first. If addresses are grouped by module, adjacent frames in
    /// the same module are one place.
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
            if self.names.by() == By::Function || self.stack.last() != Some(&place) {
                self.stack.push(place);
            }
        }
        &self.stack
    }

    fn place(&mut self, image: Option<u32>, address: u64) -> u32 {
        let key = (image, self.names.within(address));
        if let Some(place) = self.known.get(&key) {
            return *place;
        }
        let name = self.names.name(image, address);
        let places = &mut self.places;
        let place = *self.by_name.entry(name).or_insert_with_key(|name| {
            places.push(name.clone());
            (places.len() - 1) as u32
        });
        self.known.insert(key, place);
        place
    }

    /// Returns the number of places that are known so far.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns the name of a place, or `None` if it is unknown.
    pub(super) fn name(&self, place: u32) -> Option<&str> {
        self.places[place as usize].as_deref()
    }
}
