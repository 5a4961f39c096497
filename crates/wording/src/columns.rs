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

    /// Writes all rows, indented by two spaces.
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
                line.push_str(&match side {
                    Side::Left => format!(" {cell:<width$} "),
                    Side::Right => format!(" {cell:>width$} "),
                });
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
}
