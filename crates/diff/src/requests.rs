//! Sums of disk requests, by disk and by file.

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{DiskIoView, StoreError, Table};

use crate::Kind;
use crate::sums::{Key, Sums};

/// Kinds of disk requests in the column `kind`.
const REQUESTS: [&str; 3] = ["read", "write", "flush"];

/// Adds disk requests to the sums.
pub(crate) fn add(reader: &Reader<'_>, sums: &mut Sums) -> Result<(), StoreError> {
    let table = reader.table(Table::DiskIo)?;
    let mut disks = FxHashMap::default();
    let columns = ["time_ns", "service_ns", "kind", "disk", "path"];
    for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let requests = DiskIoView::new(&batch)?;
        for row in 0..requests.len() {
            let kind = requests.kind.get(row);
            let kind = kind.and_then(|kind| REQUESTS.into_iter().find(|known| *known == kind));
            let block = sums.blocks.at(requests.time_ns[row]);
            let known = kind.zip(requests.service_ns.get(row)).zip(block);
            let Some(((kind, ns), block)) = known else {
                continue;
            };
            let disk = requests.disk[row];
            let slot = *disks.entry((disk, kind)).or_insert_with(|| {
                let name = format!("disk {disk}: {kind}");
                sums.slot(Kind::Disk, Some(&name), Key::Disk(disk, kind))
            });
            sums.blocks_mut(Kind::Disk, slot)[block].add(1.0, ns as f64);
            let file = requests.path.get(row).map(without_user_and_numbers);
            let slot = sums.slot(Kind::File, file.as_deref(), Key::Name);
            sums.blocks_mut(Kind::File, slot)[block].add(1.0, ns as f64);
        }
    }
    Ok(())
}

/// Part of a path, in lower case. The name of the user follows it.
const USER: &str = r"\users\";

/// Returns a path without the parts that differ between machines and between starts. The path is in lower
/// case, the name of the user is replaced by `*`, and each number is replaced by `#`. [`FILE_SQL`] computes
/// the same in SQL.
pub(crate) fn without_user_and_numbers(path: &str) -> String {
    let path = path.to_lowercase();
    let user = path.find(USER).map(|at| at + USER.len());
    let path = match user.and_then(|from| Some((from, from + path[from..].find('\\')?))) {
        Some((from, to)) if from < to => format!("{}*{}", &path[..from], &path[to..]),
        _ => path,
    };
    let mut short = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter.is_ascii_digit() {
            true if short.ends_with('#') => {}
            true => short.push('#'),
            false => short.push(letter),
        }
    }
    short
}

/// SQL expression that computes [`without_user_and_numbers`] of the column `path`.
pub(crate) const FILE_SQL: &str = r"regexp_replace(regexp_replace(lower(path), '(\\users\\)[^\\]+(\\)', '\1*\2'), '[0-9]+', '#', 'g')";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_two_users_are_one_file() {
        for (path, short) in [
            (r"C:\Users\Ann\a.txt", r"c:\users\*\a.txt"),
            (r"C:\Windows\Temp\tmp4711.17", r"c:\windows\temp\tmp#.#"),
            (r"C:\Users\file", r"c:\users\file"),
            ("", ""),
        ] {
            assert_eq!(without_user_and_numbers(path), short);
        }
    }
}
