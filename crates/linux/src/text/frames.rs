//! Call chains of a text. A text has the names of functions, but no list of mapped files, so this module makes the symbols
//! and the mapped files from the lines.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use crate::bytes::Order;
use crate::facts::{Facts, KERNEL, NO_PROCESS};

/// First address of the kernel. Programs have lower addresses.
const FIRST_OF_KERNEL: u64 = 1 << 63;

/// Address of the first function of the kernel whose address is not in the text. The kernel has no code there.
const NAMED: u64 = 0xFFFF_FFFE_0000_0000;

/// Distance of two functions whose addresses are not in the text.
const BETWEEN: u64 = 16;

/// Lowest bit of the number of a file in an address. perf prints most addresses of programs as offsets in a file. This number
/// makes them differ between files.
const FILE_BIT: u32 = 48;

/// Maximum number of files.
const MOST_FILES: u64 = (1 << (63 - FILE_BIT)) - 2;

/// Name of an unknown function or file.
const UNKNOWN: &str = "[unknown]";

/// Functions and files of the lines that were read.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Lines in the form of `/proc/kallsyms`.
    symbols: Vec<u8>,
    /// Addresses in `symbols`.
    starts: HashSet<u64>,
    /// Addresses of functions of the kernel whose addresses are not in the text.
    named: HashMap<String, u64>,
    files: HashMap<String, File>,
    /// Processes and the numbers of their files.
    mapped: HashSet<(u32, u64)>,
    /// Lowest and highest address of the kernel.
    kernel: Option<(u64, u64)>,
}

/// File with code of programs.
#[derive(Debug)]
struct File {
    number: u64,
    /// Highest address in the file.
    last: u64,
}

/// Line of a call chain.
struct Frame<'t> {
    /// `None` if the text has only the name of the function.
    address: Option<u64>,
    function: &'t str,
    /// Offset of the address in the function.
    offset: u64,
    file: &'t str,
}

impl<'t> Frame<'t> {
    /// Reads `ffffffff814281e8 schedule+0x38 ([kernel.kallsyms])` of perf, `=> schedule` of the kernel, or
    /// `=> schedule (ffffffff814281e8)` of trace-cmd.
    fn read(line: &'t str) -> Option<Frame<'t>> {
        let line = line.trim();
        let in_brackets = line.strip_suffix(')').and_then(|it| it.rsplit_once('('));
        let (before, bracket) = in_brackets.unwrap_or((line, UNKNOWN));
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let (address, function, file) = match before.trim().strip_prefix("=> ") {
            Some(function) => (hexadecimal(bracket), function, UNKNOWN),
            None => {
                let (address, function) = before.split_once(' ').unwrap_or((before, UNKNOWN));
                (Some(hexadecimal(address)?), function.trim(), bracket)
            }
        };
        // The kernel can print the offset and the size: `schedule+0x38/0x90`.
        let parts = function.rsplit_once("+0x");
        let parts = parts.and_then(|(name, offset)| {
            let offset = offset.split('/').next()?;
            Some((name, hexadecimal(offset)?))
        });
        let (function, offset) = parts.unwrap_or((function, 0));
        Some(Frame {
            address,
            function,
            offset,
            file,
        })
    }
}

impl Frames {
    /// Returns the address of a line of a call chain in a process. Returns `None` if the line is none of a call chain, or if
    /// it is a function that the compiler put into the next one.
    pub(super) fn address(&mut self, process_id: u32, line: &str) -> Option<u64> {
        let frame = Frame::read(line)?;
        if frame.file == "inlined" {
            return None;
        }
        let Some(address) = frame.address else {
            return self.address_of(frame.function)?.checked_add(frame.offset);
        };
        let address = if address >= FIRST_OF_KERNEL {
            self.extend_kernel(address);
            address
        } else {
            self.place_in_file(process_id, frame.file, address)?
        };
        // A symbol without a name ends the function before it.
        let known = if frame.function == UNKNOWN {
            ""
        } else {
            frame.function
        };
        self.add_symbol(address.saturating_sub(frame.offset), known);
        Some(address)
    }

    /// Returns an address of a function of the kernel whose address is not in the text.
    pub(super) fn address_of(&mut self, function: &str) -> Option<u64> {
        if let Some(address) = self.named.get(function) {
            return Some(*address);
        }
        let address = NAMED + BETWEEN * self.named.len() as u64;
        self.named.insert(function.to_owned(), address);
        self.extend_kernel(address);
        self.add_symbol(address, function);
        Some(address)
    }

    fn extend_kernel(&mut self, address: u64) {
        let (first, last) = self.kernel.get_or_insert((address, address));
        (*first, *last) = ((*first).min(address), (*last).max(address));
    }

    /// Adds a file and its address to those of a process. Returns an address that no other file has.
    fn place_in_file(&mut self, process_id: u32, file: &str, address: u64) -> Option<u64> {
        if file == UNKNOWN {
            return Some(address);
        }
        if !self.files.contains_key(file) {
            let number = self.files.len() as u64 + 1;
            if number > MOST_FILES {
                return Some(address);
            }
            self.files.insert(file.to_owned(), File { number, last: 0 });
        }
        let known = self.files.get_mut(file)?;
        let offset = address & ((1 << FILE_BIT) - 1);
        known.last = known.last.max(offset);
        self.mapped.insert((process_id, known.number));
        Some(known.number << FILE_BIT | offset)
    }

    fn add_symbol(&mut self, start: u64, function: &str) {
        if self.starts.insert(start) {
            // Writing to memory does not fail.
            let _ = writeln!(self.symbols, "{start:x} t {function}");
        }
    }

    /// Adds the mapped files to `facts`. Returns the functions, in the form of `/proc/kallsyms`.
    pub(super) fn finish(mut self, facts: &mut Facts) -> Vec<u8> {
        if let Some((first, last)) = self.kernel {
            // The symbol `_stext` must not replace the name of a function at the first address.
            let first = first.saturating_sub(1);
            let length = (last - first).saturating_add(1);
            facts.add_mapping(Order::Little, NO_PROCESS, [first, length, first], KERNEL);
            let _ = writeln!(self.symbols, "{first:x} T _stext");
        }
        let by_number: HashMap<u64, (&str, u64)> = (self.files.iter())
            .map(|(path, file)| (file.number, (&**path, file.last)))
            .collect();
        let mut mapped: Vec<(u32, u64)> = self.mapped.into_iter().collect();
        mapped.sort_unstable();
        for (process_id, number) in mapped {
            if let Some((path, last)) = by_number.get(&number) {
                let place = [number << FILE_BIT, last + 1, 0];
                facts.add_mapping(Order::Little, process_id, place, path);
            }
        }
        self.symbols
    }
}
