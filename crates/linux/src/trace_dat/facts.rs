//! Names of threads and places of code in a recording of trace-cmd.

use crate::bytes::Order;
use crate::record::{self, kind};

/// Records that are made from the lists of thread names and kernel symbols in the file. perf stores the same facts as
/// records, so the converted facts can be read in the same way.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) bytes: Vec<u8>,
    pub(super) count: u32,
}

impl Facts {
    fn add(&mut self, kind: u32, order: Order, thread_id: u32, contents: &[u8]) {
        record::write(&mut self.bytes, kind, order, |body| {
            body.extend(order.of_u32(u32::MAX));
            body.extend(order.of_u32(thread_id));
            body.extend_from_slice(contents);
        });
        self.count += 1;
    }

    /// Adds the names of threads. A line has the id of a thread and its name.
    pub(super) fn add_names(&mut self, lines: &str, order: Order) {
        for line in lines.lines() {
            if let Some((id, name)) = line.trim_start().split_once(' ')
                && let Ok(thread_id) = id.parse()
            {
                self.add(
                    kind::COMM,
                    order,
                    thread_id,
                    &[name.as_bytes(), b"\0"].concat(),
                );
            }
        }
    }

    /// Adds the address range of the kernel's code, which the kernel's symbols show.
    pub(super) fn add_kernel(&mut self, symbols: &[u8], order: Order) {
        let address = |name: &[u8]| {
            let mut lines = symbols.split(|byte| *byte == b'\n');
            let line =
                lines.find(|line| line.strip_suffix(name).is_some_and(|it| it.ends_with(b" ")))?;
            let digits = line.split(|byte| *byte == b' ').next()?;
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let Some((start, end)) = address(b"_stext").zip(address(b"_etext")) else {
            return;
        };
        if start != 0 && start < end {
            let place = [start, end - start, start].map(|number| order.of_u64(number));
            let contents = [&place.concat()[..], b"[kernel.kallsyms]_stext\0"].concat();
            self.add(kind::MMAP, order, u32::MAX, &contents);
        }
    }
}
