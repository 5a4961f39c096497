//! Layout of submission queue entries for the NT system calls.
//!
//! Microsoft does not document the layout. This module uses the layout of Windows 11 22H2 and later
//! (`_NT_IORING_SQE` in the kernel's public symbols). An entry has 64 bytes, which are stored here
//! as eight 64-bit words.
//!
//! | byte offset | content |
//! |---|---|
//! | 0 | operation code; flags of the entry at 4 |
//! | 8 | user data |
//! | 16 | flags of file and buffer; flags of the operation at 20 |
//! | 24 | file: handle or index |
//! | 32 | buffer: address, or index and offset; in a cancellation the operation to cancel |
//! | 40 | offset in the file |
//! | 48 | length; key at 52 |
//! | 56 | unused |
//!
//! Entries that register files or buffers have flags at offsets 20 and 24, the number of rows at 28
//! and the address of the rows at 32.

use crate::entry::{Entry, FileRef, MemoryRef, Table, Transfer};

/// Encoded submission queue entry: eight 64-bit words.
pub(crate) type Sqe = [u64; 8];

const REGISTERED_FILE: u64 = 1;
const REGISTERED_BUFFER: u64 = 2;

/// Encodes an entry for the kernel.
pub(crate) fn encode(entry: &Entry, token: u64) -> Sqe {
    let mut words = [0; 8];
    words[0] = u64::from(entry.operation() as u32);
    words[1] = token;
    match *entry {
        Entry::Nop => {}
        Entry::Read(transfer) | Entry::Write(transfer) => encode_transfer(&mut words, &transfer),
        Entry::Flush(file, mode) => {
            encode_file(&mut words, file);
            words[2] |= u64::from(mode as u32) << 32;
        }
        Entry::Cancel(file, target) => {
            encode_file(&mut words, file);
            words[4] = target;
        }
        Entry::RegisterFiles(table) | Entry::RegisterBuffers(table) => {
            encode_table(&mut words, table);
        }
    }
    words
}

fn encode_transfer(words: &mut Sqe, transfer: &Transfer) {
    encode_file(words, transfer.file);
    words[4] = match transfer.memory {
        MemoryRef::Raw(address) => address as u64,
        MemoryRef::Registered(index) => {
            words[2] |= REGISTERED_BUFFER;
            u64::from(index)
        }
    };
    words[5] = transfer.offset;
    words[6] = u64::from(transfer.length);
}

fn encode_file(words: &mut Sqe, file: FileRef) {
    words[3] = match file {
        FileRef::Raw(handle) => handle as u64,
        FileRef::Registered(index) => {
            words[2] |= REGISTERED_FILE;
            u64::from(index)
        }
    };
}

fn encode_table(words: &mut Sqe, table: Table) {
    words[3] = u64::from(table.count) << 32;
    words[4] = table.address as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlushMode;

    /// Returns a 64-byte entry that is zero except for the given fields. Each field has a byte
    /// offset, as in the kernel's public symbols, and a value.
    fn bytes(fields: &[(usize, &[u8])]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (at, field) in fields {
            bytes[*at..at + field.len()].copy_from_slice(field);
        }
        bytes
    }

    fn encoded(entry: &Entry) -> [u8; 64] {
        let words = encode(entry, 0x1122_3344_5566_7788);
        let mut bytes = [0; 64];
        for (at, word) in words.iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    const TOKEN: (usize, &[u8]) = (0x8, &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);

    #[test]
    fn a_read_has_its_fields_where_the_symbols_say() {
        let read = Entry::Read(Transfer {
            file: FileRef::Raw(0x0A0B),
            memory: MemoryRef::Raw(0x7FF0_1000),
            length: 4096,
            offset: 0x1_0000_0000,
        });
        let expected = bytes(&[
            (0x0, &[1]),
            TOKEN,
            (0x18, &[0x0B, 0x0A]),
            (0x20, &[0x00, 0x10, 0xF0, 0x7F]),
            (0x28, &[0, 0, 0, 0, 1]),
            (0x30, &[0x00, 0x10]),
        ]);
        assert_eq!(encoded(&read), expected);
    }

    #[test]
    fn a_write_of_registered_things_has_indices_and_flags() {
        let write = Entry::Write(Transfer {
            file: FileRef::Registered(3),
            memory: MemoryRef::Registered(5),
            length: 1,
            offset: 2,
        });
        let expected = bytes(&[
            (0x0, &[5]),
            TOKEN,
            (0x10, &[3]),
            (0x18, &[3]),
            (0x20, &[5]),
            (0x28, &[2]),
            (0x30, &[1]),
        ]);
        assert_eq!(encoded(&write), expected);
    }

    #[test]
    fn flush_cancel_and_registrations_have_their_own_fields() {
        assert_eq!(
            encoded(&Entry::Flush(FileRef::Raw(7), FlushMode::NoSync)),
            bytes(&[(0x0, &[6]), TOKEN, (0x14, &[3]), (0x18, &[7])])
        );
        assert_eq!(
            encoded(&Entry::Cancel(FileRef::Registered(7), 0x99)),
            bytes(&[
                (0x0, &[4]),
                TOKEN,
                (0x10, &[1]),
                (0x18, &[7]),
                (0x20, &[0x99])
            ])
        );
        let table = Table {
            address: 0x5000,
            count: 128,
        };
        for (entry, operation) in [
            (Entry::RegisterFiles(table), 2),
            (Entry::RegisterBuffers(table), 3),
        ] {
            let expected = bytes(&[
                (0x0, &[operation]),
                TOKEN,
                (0x1c, &[128]),
                (0x20, &[0x00, 0x50]),
            ]);
            assert_eq!(encoded(&entry), expected);
        }
        assert_eq!(encoded(&Entry::Nop), bytes(&[TOKEN]));
    }
}
