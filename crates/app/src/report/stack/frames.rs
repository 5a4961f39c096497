//! The places that addresses of stacks are in, each known by a small number.

use rustc_hash::FxHashMap;
use tables::ImageTracker;

use crate::report::Recording;
use crate::report::place::{By, Places};

/// Finds places.
pub(super) struct Frames<'t> {
    pub(super) names: Places<'t>,
    images: ImageTracker,
    /// By image and, where functions are told apart, address.
    known: FxHashMap<(Option<u32>, u64), u32>,
    by_name: FxHashMap<Option<String>, u32>,
    places: Vec<Option<String>>,
    stack: Vec<u32>,
}

impl<'t> Frames<'t> {
    /// Finds places of a trace.
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

    /// How many places there are so far.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// What a place is called, if that is known.
    pub(super) fn name(&self, place: u32) -> Option<&str> {
        self.places[place as usize].as_deref()
    }
}
