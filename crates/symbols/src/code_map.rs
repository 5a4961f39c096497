//! Functions of code that a program generated while it ran.

use std::collections::BTreeMap;
use std::ops::Range;

/// Functions of a program that it generated while it ran, from the text of its file `perf-PID.map`. Source of the form:
/// `tools/perf/Documentation/jit-interface.txt` of Linux.
#[derive(Debug, Default)]
pub struct CodeMap {
    text: String,
    /// Functions by start: the end, and the place of the name in `text`.
    functions: BTreeMap<u64, (u64, Range<usize>)>,
}

impl CodeMap {
    /// Reads lines such as `7f723c005b80 100 JS:^fib /x.js:1:23`: the start and the size in hexadecimal digits, and the
    /// name. Ignores other lines. A program adds a line when it generates a function, and does not say when it removes
    /// one. So a function ends the life of earlier ones in the same memory. Reads at most `most` functions.
    pub fn parse(text: &[u8], most: usize) -> CodeMap {
        let mut map = CodeMap {
            text: String::from_utf8_lossy(text).into_owned(),
            functions: BTreeMap::new(),
        };
        let mut line_start = 0;
        for line in map.text.split_inclusive('\n') {
            let line_end = line_start + line.trim_end().len();
            if let Some((start, size, name)) = parse_line(line.trim_end())
                && let Some(end) = start.checked_add(size)
                && map.functions.len() < most
            {
                remove_overlapping(&mut map.functions, start..end);
                map.functions
                    .insert(start, (end, line_end - name.len()..line_end));
            }
            line_start += line.len();
        }
        map
    }

    /// Returns the number of functions.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Returns the function that contains an address, and the offset in the function.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then(|| (&self.text[name.clone()], address - start))
    }
}

/// Returns the start, the size and the name of a function.
fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.splitn(3, ' ');
    let mut number = || {
        let word = words.next()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?.trim_start();
    (size > 0 && !name.is_empty()).then_some((start, size, name))
}

fn remove_overlapping(functions: &mut BTreeMap<u64, (u64, Range<usize>)>, range: Range<u64>) {
    while let Some((start, (end, _))) = functions.range(..range.end).next_back()
        && *end > range.start
    {
        let start = *start;
        functions.remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read_and_others_ignored() {
        let text = b"7f00 100 JS:^fib /x.js:1:23\n0x8000 0x10 py::f:/a b.py\r\n\
            9000 0 empty\n9100 10\nzz 10 x\n\xFF\nffffffffffffffff 10 beyond\n9200 8 last";
        let map = CodeMap::parse(text, 9);
        assert_eq!(map.find(0x7FFF), Some(("JS:^fib /x.js:1:23", 0xFF)));
        assert_eq!(map.find(0x8000), Some(("py::f:/a b.py", 0)));
        assert_eq!(map.find(0x9207), Some(("last", 7)));
        for address in [0x7EFF, 0x8010, 0x9000, 0x9100, 0x9208, u64::MAX] {
            assert_eq!(map.find(address), None, "{address:x}");
        }
    }

    #[test]
    fn a_function_replaces_earlier_ones_in_the_same_memory() {
        let map = CodeMap::parse(b"100 100 old\n200 100 stays\n180 80 new\n80 90 newest\n", 9);
        assert_eq!(map.find(0x100), Some(("newest", 0x80)));
        assert_eq!(map.find(0x110), None);
        assert_eq!(map.find(0x180), Some(("new", 0)));
        assert_eq!(map.find(0x200), Some(("stays", 0)));
    }
}
