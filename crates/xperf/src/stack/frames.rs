//! Places on stacks.

use tables::ImageTracker;

use crate::Recording;
use crate::place::{By, Places};

/// Lookup of the place of each address on a stack.
pub(super) struct Frames<'t> {
    pub(super) places: Places<'t>,
    images: ImageTracker,
    stack: Vec<u32>,
}

impl<'t> Frames<'t> {
    /// Creates a lookup for a trace.
    pub(super) fn new(trace: &Recording, places: Places<'t>) -> Frames<'t> {
        Frames {
            images: ImageTracker::new(&trace.names.images),
            places,
            stack: Vec::new(),
        }
    }

    /// Returns the places of a stack, innermost first. If addresses are grouped by module, adjacent frames in
    /// the same module are one place.
    pub(super) fn stack(
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
            let place = self.places.place(image, *address);
            if self.places.by() == By::Function || self.stack.last() != Some(&place) {
                self.stack.push(place);
            }
        }
        &self.stack
    }
}
