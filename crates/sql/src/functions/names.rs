//! What row numbers and addresses stand for.

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

/// Names of addresses, from debugging information.
pub trait Symbols: fmt::Debug + Send + Sync {
    /// The function at an address, `nt!KiSwapContext+0x76` as a rule; nothing if it is not known.
    /// `image_row` is the row of its image in `images` of the trace, which is the n-th of the
    /// session.
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
        meaning: "Name that a thread was given.",
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
        meaning: "The function at an address; `module+0x1234` where symbols are not known, and the \
                  address itself where the image is not.",
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
    DataFusionError::Internal("names were not loaded for the statement".to_owned())
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
                    let module = match images.modules.is_valid(index) {
                        true => images.modules.value(index),
                        false => "?",
                    };
                    let offset = address.wrapping_sub(images.bases[index]);
                    format!("{module}+{offset:#x}")
                })
        }));
    }
    Ok(Arc::new(names.finish()))
}
