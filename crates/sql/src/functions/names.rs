//! SQL functions that return names for row numbers and addresses.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::take;
use datafusion::error::{DataFusionError, Result};
use tables::Table;

use super::{About, Body};
use crate::lookups::{DenseRows, Lookups};

/// Source of the names of functions at addresses.
pub trait Symbols: fmt::Debug + Send + Sync {
    /// Returns the name of the function at an address, usually in the form `nt!KiSwapContext+0x76`, if it is
    /// known. `trace` is the index of the trace in the session. `image_row` is the row of the image in the
    /// table `images` of this trace.
    fn name(&self, trace: usize, image_row: u32, address: u64) -> Option<String>;
}

pub(super) static ABOUT: &[About] = &[
    About {
        name: "process",
        arguments: &[("process_row", DataType::UInt32)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Name and id of a process: `chrome.exe (144)`.",
        looks_up: Some(Table::Processes),
    },
    About {
        name: "process_name",
        arguments: &[("process_row", DataType::UInt32)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Name of a process: `chrome.exe`.",
        looks_up: Some(Table::Processes),
    },
    About {
        name: "thread_name",
        arguments: &[("thread_row", DataType::UInt32)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Name of a thread, as set by its program.",
        looks_up: Some(Table::Threads),
    },
    About {
        name: "module",
        arguments: &[("image_row", DataType::UInt32)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "File name of an image: `ntoskrnl.exe`.",
        looks_up: Some(Table::Images),
    },
    About {
        name: "symbol",
        arguments: &[
            ("image_row", DataType::UInt32),
            ("address", DataType::UInt64),
        ],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Function at an address; `module+0x1234` if its symbols are missing, and the address if \
                  its image is unknown.",
        looks_up: Some(Table::Images),
    },
];

pub(super) fn body(
    name: &str,
    lookups: &Arc<Lookups>,
    symbols: Option<&Arc<dyn Symbols>>,
) -> Option<Body> {
    let lookups = Arc::clone(lookups);
    let symbols = symbols.cloned();
    Some(match name {
        "process" => Box::new(move |arguments| {
            let names = lookups.processes().ok_or_else(not_loaded)?;
            by_row(arguments, &names.rows, &names.labels)
        }),
        "process_name" => Box::new(move |arguments| {
            let names = lookups.processes().ok_or_else(not_loaded)?;
            by_row(arguments, &names.rows, &names.names)
        }),
        "thread_name" => Box::new(move |arguments| {
            let names = lookups.threads().ok_or_else(not_loaded)?;
            by_row(arguments, &names.rows, &names.names)
        }),
        "module" => Box::new(move |arguments| {
            let names = lookups.images().ok_or_else(not_loaded)?;
            by_row(arguments, &names.rows, &names.modules)
        }),
        "symbol" => Box::new(move |arguments| symbol(&lookups, symbols.as_deref(), arguments)),
        _ => return None,
    })
}

fn not_loaded() -> DataFusionError {
    DataFusionError::Internal("the names for this statement are not loaded".to_owned())
}

fn by_row(arguments: &[ArrayRef], rows: &DenseRows, names: &StringViewArray) -> Result<ArrayRef> {
    let indices = rows.indices(arguments[0].as_primitive::<UInt32Type>());
    Ok(take(names, &indices, None)?)
}

fn symbol(
    lookups: &Lookups,
    symbols: Option<&dyn Symbols>,
    arguments: &[ArrayRef],
) -> Result<ArrayRef> {
    let images = lookups.images().ok_or_else(not_loaded)?;
    let rows = arguments[0].as_primitive::<UInt32Type>();
    let addresses = arguments[1].as_primitive::<UInt64Type>();
    let mut names = StringViewBuilder::with_capacity(addresses.len());
    for (row, address) in rows.iter().zip(addresses) {
        names.append_option(address.map(|address| {
            let image = row.and_then(|row| Some((row, images.rows.index(row)?)));
            let Some((row, index)) = image else {
                return format!("{address:#x}");
            };
            let (trace, own_row) = images.rows.split(row);
            symbols
                .and_then(|symbols| symbols.name(trace, own_row, address))
                .unwrap_or_else(|| {
                    let module = if images.modules.is_valid(index) {
                        images.modules.value(index)
                    } else {
                        "?"
                    };
                    let offset = address.wrapping_sub(images.bases[index]);
                    format!("{module}+{offset:#x}")
                })
        }));
    }
    Ok(Arc::new(names.finish()))
}
