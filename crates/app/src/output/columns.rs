//! Aligned columns.

use std::io::{self, Write};

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows whose cells are aligned when written. The first row holds the headings, if there are any.
pub(crate) struct Columns {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Columns with these sides.
    pub(crate) fn new(sides: &[Side]) -> Columns {
        Columns {
            sides: sides.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| super::Printable(&cell.into()).to_string())
                .collect(),
        );
    }

    /// Writes all rows, indented by two spaces.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
