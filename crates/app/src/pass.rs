//! One parallel pass over buffers, where the order of events does not matter.

use std::sync::atomic::{AtomicUsize, Ordering};

use etl::{BufferReader, Damage, Events, Trace};
use rayon::prelude::*;

use crate::watch::{Interrupted, Watch};

/// What a pass collects; each thread has its own.
pub(crate) trait Collect: Default + Send {
    /// Takes in the events of buffer number `buffer` of [`Trace::buffers`].
    fn buffer(&mut self, buffer: u32, events: Events<'_>);

    /// Joins what two threads collected.
    fn merge(&mut self, other: Self);
}

/// Reads all buffers once, on all threads, and gives what was collected and the damage met. The
/// memory in use is a few buffers per thread.
pub(crate) fn collect<C: Collect>(
    trace: &Trace,
    watch: &Watch,
) -> Result<(C, Damage), Interrupted> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut reader = BufferReader::new(trace);
        let mut collected = C::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(buffer) = trace.buffers().get(index) else {
                break;
            };
            collected.buffer(index as u32, reader.read(buffer));
            watch.advance(buffer.stored_size.into())?;
        }
        Ok((collected, reader.take_damage()))
    };
    (0..rayon::current_num_threads())
        .into_par_iter()
        .map(|_| worker())
        .reduce(
            || Ok((C::default(), Damage::default())),
            |a, b| {
                let ((mut collected, mut damage), (other, other_damage)) = (a?, b?);
                collected.merge(other);
                damage.merge(other_damage);
                Ok((collected, damage))
            },
        )
}
