//! Which modules the CPUs were executing.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tables::Tables;

use super::largest;
use super::names::Names;

/// Modules by samples, idle threads left out.
#[derive(Debug, Serialize)]
pub(crate) struct Modules {
    /// Samples of threads other than the idle ones.
    pub(crate) samples: u64,
    /// Samples at addresses that no known image covers.
    pub(crate) unknown: u64,
    /// The modules with most samples.
    pub(crate) modules: Vec<Module>,
}

/// A module's share.
#[derive(Debug, Serialize)]
pub(crate) struct Module {
    /// Its file name.
    pub(crate) module: String,
    /// Samples in it.
    pub(crate) samples: u64,
}

pub(super) fn read(tables: &Tables, names: &Names<'_>) -> Option<Modules> {
    if tables.samples.is_empty() || tables.images.is_empty() {
        return None;
    }
    let mut rows: FxHashMap<Option<usize>, u64> = FxHashMap::default();
    for samples in &tables.samples {
        for (row, thread) in samples
            .thread_id
            .iter()
            .enumerate()
            .filter(|(_, t)| **t != 0)
        {
            let (time, address) = (samples.time_ns[row], samples.address[row]);
            let process = names.process_of(*thread, time).unwrap_or(0);
            let image = names.image(process, address, time);
            *rows.entry(image).or_default() += u64::from(samples.count[row].max(1));
        }
    }
    let samples = rows.values().sum();
    let mut unknown = 0;
    let mut by_name: HashMap<&str, u64> = HashMap::new();
    for (image, count) in rows {
        match image.and_then(|row| names.module(row)) {
            Some(name) => *by_name.entry(name).or_default() += count,
            None => unknown += count,
        }
    }
    let modules = by_name
        .into_iter()
        .map(|(m, samples)| Module {
            module: m.to_owned(),
            samples,
        })
        .collect();
    let order = |m: &Module| (m.samples, std::cmp::Reverse(m.module.clone()));
    Some(Modules {
        samples,
        unknown,
        modules: largest(modules, order),
    })
}
