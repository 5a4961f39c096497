//! Writer of the file format of PDBs. A file consists of pages, and the pages contain several streams.

use etl::write::Payload;

const PAGE: usize = 4096;

/// Number of the page with the active map of free pages. A file has two such maps. In every 4096 pages, the
/// second page belongs to the first map and the third page to the second map.
const FREE_MAP: u32 = 1;

/// Pages of the file. They are allocated in sequence.
struct Pages {
    bytes: Vec<u8>,
}

impl Pages {
    fn count(&self) -> u32 {
        (self.bytes.len() / PAGE) as u32
    }

    /// Stores bytes in new pages. Returns the numbers of these pages.
    fn put(&mut self, bytes: &[u8]) -> Vec<u32> {
        let mut pages = Vec::new();
        for part in bytes.chunks(PAGE) {
            pages.push(self.count());
            self.bytes.extend_from_slice(part);
            self.bytes
                .resize(self.bytes.len().next_multiple_of(PAGE), 0);
            self.leave_out_maps();
        }
        pages
    }

    fn leave_out_maps(&mut self) {
        while matches!(self.count() as usize % PAGE, 1 | 2) {
            self.bytes.resize(self.bytes.len() + PAGE, 0);
        }
    }
}

/// Returns a file that contains these streams.
pub(super) fn container(streams: &[Payload]) -> Vec<u8> {
    let mut pages = Pages {
        bytes: vec![0; PAGE],
    };
    pages.leave_out_maps();
    let mut directory = Payload::new();
    directory.u32(streams.len() as u32);
    for stream in streams {
        directory.u32(stream.len() as u32);
    }
    for stream in streams {
        numbers(&mut directory, &pages.put(stream));
    }
    let mut directory_pages = Payload::new();
    numbers(&mut directory_pages, &pages.put(&directory));
    let directory_at = pages.put(&directory_pages);

    let mut head = Payload::new();
    head.bytes(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    head.u32(PAGE as u32).u32(FREE_MAP).u32(pages.count());
    head.u32(directory.len() as u32).u32(0);
    numbers(&mut head, &directory_at);

    // In a map of free pages, the bit of a used page is 0 (not free). A map has one page in every 4096 pages.
    // All pages of a map form one bit set. This bit set has eight times as many bits as the file has pages.
    // So only the first pages of the map have bits of existing pages.
    let count = pages.count() as usize;
    let mut file = pages.bytes;
    file[..head.len()].copy_from_slice(&head);
    for (interval, map) in file.chunks_mut(PAGE * PAGE).enumerate() {
        for which in [1, 2] {
            for (at, byte) in map[which * PAGE..][..PAGE].iter_mut().enumerate() {
                let first = (interval * PAGE + at) * 8;
                let used = count.saturating_sub(first).min(8);
                *byte = (0xFFu16 << used) as u8;
            }
        }
    }
    file
}

fn numbers(bytes: &mut Payload, pages: &[u32]) {
    for page in pages {
        bytes.u32(*page);
    }
}
