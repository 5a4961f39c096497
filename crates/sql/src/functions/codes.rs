//! SQL functions that return names of codes, and hexadecimal numbers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{ArrayRef, StringViewArray};
use arrow_schema::DataType;

use super::{About, Body};

pub(super) static ABOUT: &[About] = &[
    About {
        name: "hex",
        arguments: &[("number", DataType::UInt64)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Number, usually an address, in hexadecimal: `0xfffff80312345678`.",
        looks_up: None,
    },
    About {
        name: "wait_reason",
        arguments: &[("code", DataType::UInt8)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Name of a wait reason: `WrQueue`, `WrPreempted`, …; the number if it has no name.",
        looks_up: None,
    },
    About {
        name: "thread_state",
        arguments: &[("code", DataType::UInt8)],
        optional: 0,
        returns: || DataType::Utf8View,
        meaning: "Name of a thread state: `Ready`, `Waiting`, …; the number if it has no name.",
        looks_up: None,
    },
];

pub(super) fn body(name: &str) -> Option<Body> {
    Some(match name {
        "hex" => Box::new(|arguments| {
            let numbers = arguments[0].as_primitive::<UInt64Type>().iter();
            let text = numbers.map(|number| number.map(|number| format!("{number:#x}")));
            Ok(Arc::new(text.collect::<StringViewArray>()))
        }),
        "wait_reason" => Box::new(|arguments| Ok(named(arguments, tables::wait_reason))),
        "thread_state" => Box::new(|arguments| Ok(named(arguments, tables::thread_state))),
        _ => return None,
    })
}

/// Converts codes to names. If a code has no name, its decimal number is used.
fn named(arguments: &[ArrayRef], name: impl Fn(u8) -> Option<&'static str>) -> ArrayRef {
    let texts: Vec<String> = (0..=u8::MAX)
        .map(|code| name(code).map_or_else(|| code.to_string(), str::to_owned))
        .collect();
    let codes = arguments[0].as_primitive::<UInt8Type>().iter();
    let names = codes.map(|code| code.map(|code| texts[usize::from(code)].as_str()));
    Arc::new(names.collect::<StringViewArray>())
}
