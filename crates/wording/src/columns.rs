//! Text in aligned columns.

use std::io::{self, Write};

/// Alignment of the cells in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left-aligned, for text.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// Maximum number of characters to which cells are aligned. One long cell would make all rows as long.
const MAX_ALIGNED: usize = 1000;

/// Rows whose cells are aligned when they are written. If there are headings, they are the first row.
pub struct Columns {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Creates an empty table. `sides` has the alignment of each column.
    pub fn new(sides: &[Side]) -> Columns {
        Columns {
            sides: sides.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| crate::Printable(&cell.into()).to_string())
                .collect(),
        );
    }

    /// Writes all rows, indented by two spaces. Cells of up to 1000 characters are aligned.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = vec![0; self.sides.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in &self.rows {
            let mut line = String::from(" ");
            for ((cell, side), width) in row.iter().zip(&self.sides).zip(&widths) {
                let room = (*width).min(MAX_ALIGNED);
                let blanks = " ".repeat(room.saturating_sub(cell.chars().count()));
                line += &match side {
                    Side::Left => format!(" {cell}{blanks} "),
                    Side::Right => format!(" {blanks}{cell} "),
                };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut columns = Columns::new(&[Side::Right, Side::Left]);
        columns.row(["1", "one"]);
        columns.row(["100", "é"]);
        let mut out = Vec::new();
        columns.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "    1  one\n  100  é\n");
    }

    /// Checks a cell that is longer than widths in formats may be.
    #[test]
    fn long_cells_are_written() {
        let long = "x".repeat(1 << 17);
        let mut columns = Columns::new(&[Side::Right]);
        columns.row(["1"]);
        columns.row([&*long]);
        let mut out = Vec::new();
        columns.write(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lengths: Vec<usize> = out.lines().map(str::len).collect();
        assert_eq!(lengths, [2 + MAX_ALIGNED, 2 + long.len()]);
    }
}
