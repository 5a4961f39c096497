//! Decoder of stored columns to dense ids and numbers. It decodes chunks in parallel.

use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, DoubtfulRuns, StoreError, StoredTable};
use views::{NULL, NULL_ID};

use crate::ExploreError;
use crate::catalogue::{ColumnDef, Lasts, Source, TableDef};
use crate::decoded_columns::{Keys, Measures};
use crate::names::{Interner, Names};
use crate::trace::{Trace, check};

/// Decodes a key to dense ids.
pub(crate) fn keys(
    trace: &Trace,
    def: &TableDef,
    table: &StoredTable,
    column: &ColumnDef,
    cancel: &AtomicBool,
) -> Result<Keys, ExploreError> {
    match column.source {
        Source::Number(name) => numbers(table, name, |number| number.to_string(), cancel),
        Source::Code(name, code) => numbers(table, name, code.name(), cancel),
        Source::Flag(name) => flags(table, name, cancel),
        Source::Address(name) => addresses(table, name, cancel),
        Source::Text(name) => texts(table, name, cancel),
        Source::Process { row, id } => {
            let identities = trace.identities(cancel)?;
            let rows = 0..identities.process_rows() as u32;
            let label = |row| identities.process_label(Some(row)).unwrap_or_default();
            let mut labels: Vec<Box<str>> = rows.map(|row| label(row).into()).collect();
            labels.push("Idle (0)".into());
            by_row(table, row, id, labels, cancel)
        }
        Source::ProcessName { row, id } => {
            let identities = trace.identities(cancel)?;
            let rows = 0..identities.process_rows() as u32;
            let name = |row| identities.process(Some(row), None).name;
            let mut names: Vec<Option<&str>> = rows.map(name).collect();
            names.push(Some("Idle"));
            by_name(table, row, id, &names, cancel)
        }
        Source::Thread { row, id } => {
            let identities = trace.identities(cancel)?;
            let rows = 0..identities.thread_rows() as u32;
            let label = |row| {
                let id = identities.thread_id(row).unwrap_or_default();
                match identities.thread_name(row) {
                    Some(name) => format!("{name} ({id})"),
                    None => id.to_string(),
                }
            };
            let mut labels: Vec<Box<str>> = rows.map(|row| label(row).into()).collect();
            labels.push("idle".into());
            by_row(table, row, id, labels, cancel)
        }
        Source::ThreadName(row) => {
            let identities = trace.identities(cancel)?;
            let rows = 0..identities.thread_rows() as u32;
            let mut names: Vec<Option<&str>> =
                rows.map(|row| identities.thread_name(row)).collect();
            names.push(None);
            by_name(table, row, None, &names, cancel)
        }
        Source::Module(row) => {
            let identities = trace.identities(cancel)?;
            let rows = 0..identities.images.len() as u32;
            let mut names: Vec<Option<&str>> =
                rows.map(|row| identities.module_label(Some(row))).collect();
            names.push(None);
            by_name(table, row, None, &names, cancel)
        }
        Source::InView => Err(def.wrong_kind(column, "is not a key")),
        Source::Doubtful => doubtful(trace, table, cancel),
        Source::Function {
            image,
            address,
            offset,
        } => functions(trace, table, image, address, offset, cancel),
    }
}

/// Decodes a stored column to numbers.
pub(crate) fn stored_numbers(
    table: &StoredTable,
    name: &str,
    cancel: &AtomicBool,
) -> Result<Measures, ExploreError> {
    let chunks = each_chunk(table, &[name], cancel, |columns| {
        integers(columns[0], saturated)
    })?;
    Ok(Measures::new(chunks))
}

/// Decodes the starts of rows.
pub(crate) fn starts(
    table: &StoredTable,
    lasts: &Lasts,
    cancel: &AtomicBool,
) -> Result<Measures, ExploreError> {
    let always = NULL + 1;
    ends_of(table, [lasts.start, lasts.end], always, lasts, cancel)
}

/// Decodes the ends of rows.
pub(crate) fn ends(
    table: &StoredTable,
    lasts: &Lasts,
    cancel: &AtomicBool,
) -> Result<Measures, ExploreError> {
    ends_of(table, [lasts.end, lasts.start], i64::MAX, lasts, cancel)
}

/// Decodes the starts or the ends of rows from the column `wanted`. In lifetimes, an unknown value becomes
/// `boundless`. In other tables, it becomes the value of the column `other`, so that the row has length 0.
fn ends_of(
    table: &StoredTable,
    [wanted, other]: [&str; 2],
    boundless: i64,
    lasts: &Lasts,
    cancel: &AtomicBool,
) -> Result<Measures, ExploreError> {
    let chunks = each_chunk(table, &[wanted, other], cancel, |columns| {
        let mut times = integers(columns[0], saturated);
        if columns[0].null_count() > 0 {
            let others = integers(columns[1], saturated);
            for (time, other) in times.iter_mut().zip(others) {
                if *time == NULL {
                    *time = if lasts.is_life { boundless } else { other };
                }
            }
        }
        times
    })?;
    Ok(Measures::new(chunks))
}

/// Tests the texts of a chunk. The result is false for unknown texts.
pub(crate) fn text_passes(
    table: &StoredTable,
    chunk: usize,
    column: &str,
    test: &dyn Fn(&str) -> bool,
) -> Result<Vec<bool>, ExploreError> {
    let batch = table.read(chunk, &[column])?;
    let array = batch.column_by_name(column);
    let texts = array.and_then(|array| array.as_string_opt::<i32>());
    Ok(match texts {
        Some(texts) => texts.iter().map(|text| text.is_some_and(test)).collect(),
        None => vec![false; batch.num_rows()],
    })
}

/// Reads columns of each chunk, and converts each chunk with `make`.
fn each_chunk<T: Send>(
    table: &StoredTable,
    names: &[&str],
    cancel: &AtomicBool,
    make: impl Fn(&[&ArrayRef]) -> T + Sync,
) -> Result<Vec<T>, ExploreError> {
    let chunks = 0..table.chunks().len();
    chunks
        .into_par_iter()
        .map(|chunk| {
            check(cancel)?;
            let batch = table.read(chunk, names)?;
            let columns: Vec<&ArrayRef> = names
                .iter()
                .map(|name| batch.column_by_name(name).expect("the column is read"))
                .collect();
            Ok(make(&columns))
        })
        .collect()
}

/// Converts integers to i64. Unknown values become [`NULL`]. `wide` converts unsigned 64-bit numbers.
fn integers(array: &ArrayRef, wide: fn(u64) -> i64) -> Vec<i64> {
    fn convert<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        number: impl Fn(T::Native) -> i64,
    ) -> Vec<i64> {
        let array = array.as_primitive::<T>();
        let values = array.values().iter();
        match array.nulls() {
            None => values.map(|value| number(*value)).collect(),
            Some(nulls) => values
                .zip(nulls.iter())
                .map(|(value, known)| if known { number(*value) } else { NULL })
                .collect(),
        }
    }
    use arrow_schema::DataType;
    match array.data_type() {
        DataType::Int8 => convert::<Int8Type>(array, i64::from),
        DataType::Int16 => convert::<Int16Type>(array, i64::from),
        DataType::Int32 => convert::<Int32Type>(array, i64::from),
        DataType::Int64 => convert::<Int64Type>(array, |number| number),
        DataType::UInt8 => convert::<UInt8Type>(array, i64::from),
        DataType::UInt16 => convert::<UInt16Type>(array, i64::from),
        DataType::UInt32 => convert::<UInt32Type>(array, i64::from),
        DataType::UInt64 => convert::<UInt64Type>(array, wide),
        _ => vec![NULL; array.len()],
    }
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Decodes a key whose values are numbers. The dense ids have the order of the numbers.
fn numbers(
    table: &StoredTable,
    name: &str,
    label: fn(i64) -> String,
    cancel: &AtomicBool,
) -> Result<Keys, ExploreError> {
    let chunks = each_chunk(table, &[name], cancel, |columns| {
        integers(columns[0], saturated)
    })?;
    let (rising, chunks) = dense(chunks);
    Ok(Keys {
        chunks,
        names: Names::numbers(rising, label),
    })
}

/// Decodes a key whose values are addresses. The dense ids have the order of the addresses.
fn addresses(table: &StoredTable, name: &str, cancel: &AtomicBool) -> Result<Keys, ExploreError> {
    let chunks = each_chunk(table, &[name], cancel, |columns| {
        integers(columns[0], u64::cast_signed)
    })?;
    let (places, mut chunks) = dense(chunks);
    // These ids have the order of signed numbers, so the upper half of all addresses comes first.
    let negative = places.partition_point(|address| *address < 0) as u32;
    let all = places.len() as u32;
    chunks.par_iter_mut().flatten().for_each(|place| {
        if *place != NULL_ID {
            *place = (*place + all - negative) % all;
        }
    });
    let (negative, positive) = places.split_at(negative as usize);
    let rising = positive.iter().chain(negative);
    Ok(Keys {
        chunks,
        names: Names::addresses(rising.map(|address| address.cast_unsigned()).collect()),
    })
}

/// Returns the distinct numbers in ascending order, and for each number its index among the distinct
/// numbers.
fn dense(chunks: Vec<Vec<i64>>) -> (Vec<i64>, Vec<Vec<u32>>) {
    let distinct = |numbers: &Vec<i64>| {
        let mut last = NULL;
        let mut changes: Vec<i64> = Vec::new();
        for number in numbers {
            if *number != last && *number != NULL {
                changes.push(*number);
            }
            last = *number;
        }
        changes.sort_unstable();
        changes.dedup();
        changes
    };
    let merge = |mut all: Vec<i64>, mut more: Vec<i64>| {
        all.append(&mut more);
        all.sort_unstable();
        all.dedup();
        all
    };
    let rising: Vec<i64> = chunks.par_iter().map(distinct).reduce(Vec::new, merge);
    let (least, greatest) = match (rising.first(), rising.last()) {
        (Some(least), Some(greatest)) => (*least, *greatest),
        _ => (0, 0),
    };
    const DIRECT: i64 = 1 << 20;
    let span = greatest.saturating_sub(least);
    let chunks = if span < DIRECT {
        let mut places = vec![NULL_ID; span as usize + 1];
        for (place, number) in (0..).zip(&rising) {
            places[(number - least) as usize] = place;
        }
        let place = |number: i64| match number {
            NULL => NULL_ID,
            number => places[(number - least) as usize],
        };
        map(chunks, place)
    } else {
        let places: FxHashMap<i64, u32> = rising.iter().copied().zip(0..).collect();
        map(chunks, |number| {
            places.get(&number).copied().unwrap_or(NULL_ID)
        })
    };
    (rising, chunks)
}

fn map<T: Send>(chunks: Vec<Vec<T>>, place: impl Fn(T) -> u32 + Sync) -> Vec<Vec<u32>> {
    let map = |chunk: Vec<T>| chunk.into_iter().map(&place).collect();
    chunks.into_par_iter().map(map).collect()
}

fn flags(table: &StoredTable, name: &str, cancel: &AtomicBool) -> Result<Keys, ExploreError> {
    let chunks = each_chunk(table, &[name], cancel, |columns| {
        let flags = columns[0].as_boolean();
        let id = |flag: Option<bool>| flag.map_or(NULL_ID, u32::from);
        flags.iter().map(id).collect()
    })?;
    Ok(Keys {
        chunks,
        names: flag_names(),
    })
}

fn flag_names() -> Names {
    Names::texts(vec!["false".into(), "true".into()])
}

/// Decodes the key that states whether a run is doubtful.
fn doubtful(trace: &Trace, table: &StoredTable, cancel: &AtomicBool) -> Result<Keys, ExploreError> {
    let runs = trace.doubtful_runs(cancel)?;
    let chunks = 0..table.chunks().len();
    let chunks: Result<Vec<Vec<u32>>, ExploreError> = chunks
        .into_par_iter()
        .map(|chunk| {
            check(cancel)?;
            let batch = table.read(chunk, &DoubtfulRuns::COLUMNS)?;
            let view = CpuRunsView::new(&batch).map_err(StoreError::from)?;
            let is = |row| u32::from(runs.is(&view, row));
            Ok((0..view.len()).map(is).collect())
        })
        .collect();
    Ok(Keys {
        chunks: chunks?,
        names: flag_names(),
    })
}

/// Decodes a key whose values are texts. The dense ids have the order in which the texts first occur.
fn texts(table: &StoredTable, name: &str, cancel: &AtomicBool) -> Result<Keys, ExploreError> {
    let parts = each_chunk(table, &[name], cancel, |columns| own_texts(columns[0]))?;
    Ok(joined(parts))
}

/// Ids of the rows in a chunk, and the texts of these ids.
type Part = (Vec<u32>, Vec<Box<str>>);

fn own_texts(array: &ArrayRef) -> Part {
    if let Some(named) = array.as_dictionary_opt::<Int8Type>() {
        let names = named.values().as_string_opt::<i32>();
        let texts = names.into_iter().flatten();
        let texts: Vec<Box<str>> = texts.map(|text| text.unwrap_or_default().into()).collect();
        let id = |code: Option<i8>| {
            let code = code.and_then(|code| u32::try_from(code).ok());
            code.filter(|code| (*code as usize) < texts.len())
                .unwrap_or(NULL_ID)
        };
        return (named.keys().iter().map(id).collect(), texts);
    }
    let mut interner = Interner::default();
    let ids = match array.as_string_opt::<i32>() {
        Some(texts) => texts
            .iter()
            .map(|text| text.map_or(NULL_ID, |text| interner.id(text)))
            .collect(),
        None => vec![NULL_ID; array.len()],
    };
    (ids, interner.finish())
}

/// Combines chunks, each with its own ids, to one column. Texts that occur in no row are dropped.
fn joined(parts: Vec<Part>) -> Keys {
    let mut all = Interner::default();
    let mut places: Vec<Vec<u32>> = Vec::with_capacity(parts.len());
    for (ids, texts) in &parts {
        let mut new_ids = vec![NULL_ID; texts.len()];
        let mut left = texts.len();
        for id in ids {
            if let Some(place) = new_ids.get_mut(*id as usize)
                && *place == NULL_ID
            {
                *place = all.id(&texts[*id as usize]);
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        places.push(new_ids);
    }
    let chunks = parts
        .into_par_iter()
        .zip(places)
        .map(|((ids, _), new_ids)| {
            let place = |id: u32| new_ids.get(id as usize).copied().unwrap_or(NULL_ID);
            ids.into_iter().map(place).collect()
        })
        .collect();
    Keys {
        chunks,
        names: Names::texts(all.finish()),
    }
}

/// Decodes a key whose values are row numbers of another table. A row is idle if it lacks a row number and
/// its id is 0. The last label belongs to idle rows.
fn by_row(
    table: &StoredTable,
    row: &str,
    id: Option<&str>,
    labels: Vec<Box<str>>,
    cancel: &AtomicBool,
) -> Result<Keys, ExploreError> {
    let chunks = rows_of(table, row, id, labels.len(), cancel)?;
    Ok(Keys {
        chunks,
        names: Names::texts(labels),
    })
}

/// Decodes a key whose values are names, which are stored as row numbers of another table. Equal names get
/// the same id.
fn by_name(
    table: &StoredTable,
    row: &str,
    id: Option<&str>,
    names: &[Option<&str>],
    cancel: &AtomicBool,
) -> Result<Keys, ExploreError> {
    let chunks = rows_of(table, row, id, names.len(), cancel)?;
    let mut interner = Interner::default();
    let ids: Vec<u32> = names
        .iter()
        .map(|name| name.map_or(NULL_ID, |name| interner.id(name)))
        .collect();
    let chunks = map(chunks, |row| {
        ids.get(row as usize).copied().unwrap_or(NULL_ID)
    });
    Ok(Keys {
        chunks,
        names: Names::texts(interner.finish()),
    })
}

/// Decodes row numbers of another table. The value `len - 1` means an idle row.
fn rows_of(
    table: &StoredTable,
    row: &str,
    id: Option<&str>,
    len: usize,
    cancel: &AtomicBool,
) -> Result<Vec<Vec<u32>>, ExploreError> {
    let names: Vec<&str> = [Some(row), id].into_iter().flatten().collect();
    let idle = len as u32 - 1;
    each_chunk(table, &names, cancel, |columns| {
        let rows = columns[0].as_primitive::<UInt32Type>();
        let mut rows: Vec<u32> = rows
            .iter()
            .map(|row| row.filter(|row| *row < idle).unwrap_or(NULL_ID))
            .collect();
        if let Some(ids) = columns.get(1)
            && columns[0].null_count() > 0
        {
            let ids = ids.as_primitive::<UInt32Type>();
            for (row, id) in rows.iter_mut().zip(ids) {
                if *row == NULL_ID && id == Some(0) {
                    *row = idle;
                }
            }
        }
        rows
    })
}

/// Decodes a key whose values are functions at addresses. Each address is looked up once.
fn functions(
    trace: &Trace,
    table: &StoredTable,
    image: &str,
    address: &str,
    offset: bool,
    cancel: &AtomicBool,
) -> Result<Keys, ExploreError> {
    let identities = trace.identities(cancel)?;
    type Places = (Vec<u32>, Vec<(Option<u32>, u64)>);
    let parts: Vec<Places> = each_chunk(table, &[image, address], cancel, |columns| {
        let images = columns[0].as_primitive::<UInt32Type>();
        let addresses = columns[1].as_primitive::<UInt64Type>();
        let mut known: FxHashMap<(Option<u32>, u64), u32> = FxHashMap::default();
        let mut places = Vec::new();
        let ids = images.iter().zip(addresses).map(|(image, address)| {
            let Some(address) = address else {
                return NULL_ID;
            };
            *known.entry((image, address)).or_insert_with(|| {
                places.push((image, address));
                places.len() as u32 - 1
            })
        });
        (ids.collect(), places)
    })?;
    let mut named: FxHashMap<(Option<u32>, u64), Box<str>> = FxHashMap::default();
    let functions = trace.functions.as_deref();
    let mut texts: Vec<Part> = Vec::with_capacity(parts.len());
    for (ids, places) in parts {
        let mut labels = Vec::with_capacity(places.len());
        for (image, address) in places {
            // The first lookup in a module may load its symbols, which takes long. So check for cancellation
            // first.
            check(cancel)?;
            let label = named.entry((image, address)).or_insert_with(|| {
                let symbol = identities.symbol(functions, image, address);
                if offset {
                    symbol.into()
                } else {
                    without_offset(&symbol).into()
                }
            });
            labels.push(label.clone());
        }
        texts.push((ids, labels));
    }
    Ok(joined(texts))
}

/// Removes the offset from a symbol, for example from `ntoskrnl.exe!KeSetEvent+0x1f`, which becomes
/// `ntoskrnl.exe!KeSetEvent`.
pub(crate) fn without_offset(symbol: &str) -> &str {
    let Some((name, offset)) = symbol.rsplit_once("+0x") else {
        return symbol;
    };
    let is_offset = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_offset { name } else { symbol }
}
