//! Names of threads and places of code that the file does not store as records.

use crate::bytes::Order;
use crate::chunk::{Chunk, Part};
use crate::record::{self, kind};

/// Records of facts that a file stores in another form: lists of thread names and of kernel symbols (trace-cmd), or names
/// in each line (text). perf stores the same facts as records, so the converted facts can be read in the same way.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) bytes: Vec<u8>,
    count: u32,
}

/// Path of the kernel's code, and the symbol at its start.
pub(crate) const KERNEL: &str = "[kernel.kallsyms]_stext";

/// Process id of facts about the kernel, and of facts about a thread whose process is unknown.
pub(crate) const NO_PROCESS: u32 = u32::MAX;

impl Facts {
    fn add(&mut self, kind: u32, order: Order, (process, thread): (u32, u32), contents: &[&[u8]]) {
        record::write(&mut self.bytes, kind, order, |body| {
            body.extend(order.of_u32(process));
            body.extend(order.of_u32(thread));
            contents
                .iter()
                .for_each(|part| body.extend_from_slice(part));
        });
        self.count += 1;
    }

    pub(crate) fn add_name(&mut self, order: Order, thread_id: u32, name: &str) {
        let contents = [name.as_bytes(), b"\0"];
        self.add(kind::COMM, order, (NO_PROCESS, thread_id), &contents);
    }

    /// Adds a file that is mapped into a process: its first address, the number of bytes and the offset in the file.
    pub(crate) fn add_mapping(
        &mut self,
        order: Order,
        process_id: u32,
        place: [u64; 3],
        path: &str,
    ) {
        let place = place.map(|number| order.of_u64(number)).concat();
        let contents = [&place[..], path.as_bytes(), b"\0"];
        self.add(kind::MMAP, order, (process_id, process_id), &contents);
    }

    /// Returns the chunk of the records; `None` if there are none.
    pub(crate) fn chunk(&self) -> Option<Chunk> {
        (self.count > 0).then_some(Chunk {
            cpu: None,
            offset: 0,
            bytes: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
            records: self.count,
            first_ns: None,
            last_ns: None,
            part: Part::Facts,
        })
    }

    /// Adds the names of threads. A line has the id of a thread and its name.
    pub(crate) fn add_names(&mut self, lines: &str, order: Order) {
        for line in lines.lines() {
            if let Some((id, name)) = line.trim_start().split_once(' ')
                && let Ok(thread_id) = id.parse()
            {
                self.add_name(order, thread_id, name);
            }
        }
    }

    /// Adds the address range of the kernel's code, which the kernel's symbols show.
    pub(crate) fn add_kernel(&mut self, symbols: &[u8], order: Order) {
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
            self.add_mapping(order, NO_PROCESS, [start, end - start, start], KERNEL);
        }
    }
}
