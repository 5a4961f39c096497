//! The Reed–Solomon code that computes parity packets and recovers data packets.

use std::sync::OnceLock;

use super::field::{add_scaled, inverse, multiply, power_of_two};

/// Reed–Solomon code for groups of one size.
///
/// The code uses a matrix V. Row r of V holds the powers of xᵣ, where x₀ = 0 and xᵣ = 2^(r-1). The
/// generator matrix is V times the inverse of V's first `size` rows. The first `size` rows of the
/// generator reproduce the data, and its other rows yield the parity.
#[derive(Debug)]
pub struct Code {
    size: usize,
    /// Rows of the generator matrix that yield parity, one after the other, with `size` bytes each.
    parity_rows: Vec<u8>,
}

impl Code {
    /// Minimum number of data packets in a group.
    pub const MIN_SIZE: u32 = 2;
    /// Maximum number of data packets in a group.
    pub const MAX_SIZE: u32 = 128;
    /// Maximum number of data packets and parity packets of a group together.
    const MAX_ROWS: usize = 255;

    /// Returns the code for groups of `size` data packets. If `size` is not a power of two from 2
    /// to 128, returns `None`. Each of the seven codes is computed once.
    pub fn for_group_size(size: u32) -> Option<&'static Code> {
        static CODES: [OnceLock<Code>; 7] = [const { OnceLock::new() }; 7];
        let possible = size.is_power_of_two() && (Self::MIN_SIZE..=Self::MAX_SIZE).contains(&size);
        possible.then(|| {
            CODES[size.trailing_zeros() as usize - 1].get_or_init(|| Code::new(size as usize))
        })
    }

    fn new(size: usize) -> Code {
        let powers_of = |row: usize| {
            let x = if row == 0 { 0 } else { power_of_two(row - 1) };
            std::iter::successors(Some(1), move |power| Some(multiply(*power, x))).take(size)
        };
        let mut inverted: Vec<u8> = (0..size).flat_map(powers_of).collect();
        invert(&mut inverted, size).expect("distinct points make an invertible matrix");
        let mut parity_rows = vec![0; (Self::MAX_ROWS - size) * size];
        for (row, out) in (size..).zip(parity_rows.chunks_exact_mut(size)) {
            for (power, line) in powers_of(row).zip(inverted.chunks_exact(size)) {
                add_scaled(out, power, line);
            }
        }
        Code { size, parity_rows }
    }

    /// Returns the number of data packets per group.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of different parity packets per group.
    pub fn max_parity(&self) -> usize {
        Self::MAX_ROWS - self.size
    }

    /// Returns the factors by which the data packets are multiplied in parity packet `index`.
    ///
    /// # Panics
    /// Panics if `index` is too large.
    pub fn parity_row(&self, index: usize) -> &[u8] {
        &self.parity_rows[index * self.size..(index + 1) * self.size]
    }

    /// Computes parity packet `index` of a group. Data packets shorter than `length` bytes are
    /// padded with zeros. If `data` has fewer packets than the group, the missing packets count as
    /// zeros.
    ///
    /// # Panics
    /// Panics if `index` is too large, or if a data packet is longer than `length`.
    pub fn encode<'a>(
        &self,
        index: usize,
        data: impl IntoIterator<Item = &'a [u8]>,
        length: usize,
    ) -> Vec<u8> {
        let mut parity = vec![0; length];
        for (factor, data) in self.parity_row(index).iter().zip(data) {
            add_scaled(&mut parity, *factor, data);
        }
        parity
    }

    /// Recovers the missing packets of a group, in order. In `data`, a missing packet is `None`. `parity`
    /// contains the index and the bytes of each parity packet. Each recovered packet is as long as the
    /// parity. Returns `None` in four cases: there are fewer parity packets than missing packets, an index is
    /// too large or occurs twice, the parity packets differ in length, or a data packet is longer than the
    /// parity.
    pub fn recover(
        &self,
        data: &[Option<&[u8]>],
        parity: &[(usize, &[u8])],
    ) -> Option<Vec<Vec<u8>>> {
        let missing: Vec<usize> = (0..data.len()).filter(|at| data[*at].is_none()).collect();
        let parity = parity.get(..missing.len())?;
        let Some((_, first)) = parity.first() else {
            return Some(Vec::new());
        };
        let length = first.len();
        let fits = |bytes: &&[u8]| bytes.len() <= length;
        if data.len() > self.size
            || !data.iter().flatten().all(fits)
            || !parity
                .iter()
                .all(|(index, bytes)| *index < self.max_parity() && bytes.len() == length)
        {
            return None;
        }
        // Parity bytes from which the contribution of the known data packets was removed.
        let mut remainders = Vec::with_capacity(missing.len());
        let mut matrix = Vec::with_capacity(missing.len() * missing.len());
        for (index, bytes) in parity {
            let row = self.parity_row(*index);
            let mut remainder = bytes.to_vec();
            for (factor, data) in row.iter().zip(data) {
                if let Some(data) = data {
                    add_scaled(&mut remainder, *factor, data);
                }
            }
            remainders.push(remainder);
            matrix.extend(missing.iter().map(|at| row[*at]));
        }
        invert(&mut matrix, missing.len())?;
        let solve = |row: &[u8]| {
            let mut solved = vec![0; length];
            for (factor, remainder) in row.iter().zip(&remainders) {
                add_scaled(&mut solved, *factor, remainder);
            }
            solved
        };
        Some(matrix.chunks_exact(missing.len()).map(solve).collect())
    }
}

/// Inverts a square matrix, stored row by row, in place (Gauss–Jordan elimination). Returns `None`
/// if the matrix is singular.
fn invert(matrix: &mut [u8], size: usize) -> Option<()> {
    let mut rows: Vec<Vec<u8>> = matrix
        .chunks_exact(size)
        .enumerate()
        .map(|(at, row)| {
            let mut row = row.to_vec();
            row.resize(2 * size, 0);
            row[size + at] = 1;
            row
        })
        .collect();
    for column in 0..size {
        let pivot = (column..size).find(|row| rows[*row][column] != 0)?;
        rows.swap(column, pivot);
        let scale = inverse(rows[column][column]);
        let pivot: Vec<u8> = rows[column].iter().map(|x| multiply(*x, scale)).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            if at == column {
                row.copy_from_slice(&pivot);
            } else {
                let factor = row[column];
                add_scaled(row, factor, &pivot);
            }
        }
    }
    for (out, row) in matrix.chunks_exact_mut(size).zip(&rows) {
        out.copy_from_slice(&row[size..]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::Code;

    /// Group sizes with their first two parity packets of eight bytes, as big-endian numbers. An
    /// independent model that agrees with libpgm's encoder computed them. Byte j of data packet i
    /// is 37i + 11j + 1 modulo 256.
    const VECTORS: [(u32, u64, u64); 4] = [
        (2, 0x4f76_41e8_d3f2_1534, 0x9df8_bbab_ccb1_efba),
        (4, 0xabeb_7acd_57a1_2cae, 0xfef6_29d6_45d7_b58f),
        (8, 0xf3ee_d107_9823_efc7, 0x29a1_aafe_7f75_82f4),
        (16, 0x4fb7_47ce_0ee7_8590, 0x84c3_2579_4707_9ad1),
    ];

    #[test]
    fn known_parity_is_reproduced() {
        for (size, first, second) in VECTORS {
            let data: Vec<[u8; 8]> = (0..size as u8)
                .map(|i| std::array::from_fn(|j| i.wrapping_mul(37).wrapping_add(11 * j as u8 + 1)))
                .collect();
            let code = Code::for_group_size(size).unwrap();
            for (index, expected) in [first, second].into_iter().enumerate() {
                let parity = code.encode(index, data.iter().map(|d| &d[..]), 8);
                assert_eq!(
                    parity,
                    expected.to_be_bytes(),
                    "{size} packets, parity {index}"
                );
            }
        }
        let row = [0x77, 0x40, 0x38, 0x0e];
        assert_eq!(Code::for_group_size(4).unwrap().parity_row(0), row);
    }

    #[test]
    fn any_packets_can_be_replaced_by_any_parities() {
        let mut rng = Rng(5);
        for size in [2, 4, 8, 16, 32, 64, 128] {
            let code = Code::for_group_size(size).unwrap();
            for _ in 0..20 {
                let length = 1 + rng.below(100);
                let data: Vec<Vec<u8>> = (0..size)
                    .map(|_| (0..rng.below(length)).map(|_| rng.bits() as u8).collect())
                    .collect();
                let lost = rng.below(size as usize + 1).min(code.max_parity());
                let mut packets: Vec<Option<&[u8]>> = data.iter().map(|d| Some(&d[..])).collect();
                while packets.iter().filter(|packet| packet.is_none()).count() < lost {
                    packets[rng.below(size as usize)] = None;
                }
                let mut indices: Vec<usize> = (0..code.max_parity()).collect();
                let parity: Vec<(usize, Vec<u8>)> = (0..lost)
                    .map(|_| indices.swap_remove(rng.below(indices.len())))
                    .map(|index| {
                        let data = data.iter().map(|d| &d[..]);
                        (index, code.encode(index, data, length))
                    })
                    .collect();
                let parity: Vec<(usize, &[u8])> = parity
                    .iter()
                    .map(|(index, bytes)| (*index, &bytes[..]))
                    .collect();
                let recovered = code.recover(&packets, &parity).unwrap();
                let missing = (0..size as usize).filter(|at| packets[*at].is_none());
                for (at, mut recovered) in missing.zip(recovered) {
                    assert_eq!(recovered.len(), length);
                    assert!(recovered[data[at].len()..].iter().all(|byte| *byte == 0));
                    recovered.truncate(data[at].len());
                    assert_eq!(recovered, data[at]);
                }
            }
        }
    }

    #[test]
    fn contradictory_parity_recovers_nothing() {
        let code = Code::for_group_size(2).unwrap();
        let data = [Some(&b"ab"[..]), None];
        assert_eq!(code.recover(&data, &[]), None, "too few");
        assert_eq!(code.recover(&data, &[(0, b"x")]), None, "too short");
        assert_eq!(code.recover(&data, &[(253, b"xy")]), None, "no such parity");
        assert_eq!(
            code.recover(&[None, None], &[(1, b"xy"), (1, b"xy")]),
            None,
            "the same parity twice"
        );
        assert_eq!(Code::for_group_size(3).map(Code::size), None);
        assert_eq!(Code::for_group_size(256).map(Code::size), None);
    }
}
