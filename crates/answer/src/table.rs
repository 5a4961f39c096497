//! Rows as aligned columns, for users.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use wording::{Columns, Side, grouped};

use super::RowWriter;
use super::cells::{Style, is_number};

/// Number of rows that are aligned together. Longer answers are aligned page by page.
const PAGE: usize = 5_000;

/// Text for unknown values.
const UNKNOWN: &str = "NULL";

/// Limits on the displayed rows and characters.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Maximum number of shown rows. `None` for all rows.
    pub rows: Option<u64>,
    /// Maximum number of shown characters of a value. `None` for no limit.
    pub characters: Option<usize>,
}

/// Writer of rows as aligned columns under their names.
pub(super) struct Table<W: Write> {
    out: W,
    schema: SchemaRef,
    style: Style,
    shown: Shown,
    page: Columns,
    on_page: usize,
    row: Vec<String>,
    rows: u64,
}

impl<W: Write> Table<W> {
    pub(super) fn new(out: W, schema: &SchemaRef, shown: Shown) -> Table<W> {
        let mut page = empty_page(schema);
        page.row(schema.fields().iter().map(|field| field.name().as_str()));
        Table {
            out,
            schema: SchemaRef::clone(schema),
            style: Style::new(),
            shown,
            page,
            on_page: 0,
            row: Vec::new(),
            rows: 0,
        }
    }
}

fn empty_page(schema: &SchemaRef) -> Columns {
    let sides = schema.fields().iter().map(|field| {
        if is_number(field.data_type()) {
            Side::Right
        } else {
            Side::Left
        }
    });
    Columns::new(&sides.collect::<Vec<_>>())
}

impl<W: Write> RowWriter for Table<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        let left = self
            .shown
            .rows
            .map_or(u64::MAX, |most| most.saturating_sub(self.rows));
        self.rows += rows.num_rows() as u64;
        let shown = left.min(rows.num_rows() as u64) as usize;
        let mut cells = self.style.cells(rows, self.schema.fields())?;
        for row in 0..shown {
            for cell in &mut cells {
                let text = cell.text(row)?.unwrap_or_else(|| UNKNOWN.to_owned());
                self.row.push(cut(text, self.shown.characters));
            }
            self.page.row(self.row.drain(..));
            self.on_page += 1;
            if self.on_page == PAGE {
                let empty = empty_page(&self.schema);
                std::mem::replace(&mut self.page, empty).write(&mut self.out)?;
                self.on_page = 0;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.page.write(&mut self.out)?;
        let hidden = self
            .shown
            .rows
            .map_or(0, |most| self.rows.saturating_sub(most));
        if hidden > 0 {
            writeln!(
                self.out,
                "  … {} more rows; --all shows them",
                grouped(hidden)
            )?;
        }
        self.out.flush()
    }
}

/// Cuts a text after `most` characters.
fn cut(mut text: String, most: Option<usize>) -> String {
    if let Some((at, _)) = most.and_then(|most| text.char_indices().nth(most)) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;

    fn shown(rows: Option<u64>, characters: Option<usize>) -> String {
        let batch = RecordBatch::try_from_iter([
            (
                "n",
                Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MIN)])) as ArrayRef,
            ),
            (
                "text",
                Arc::new(StringArray::from(vec!["a", "longer", "\x1b[2J"])) as ArrayRef,
            ),
        ])
        .unwrap();
        let mut out = Vec::new();
        let mut table = Box::new(Table::new(
            &mut out,
            &batch.schema(),
            Shown { rows, characters },
        ));
        table.write(&batch).unwrap();
        table.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_stand_at_the_right_and_unknown_is_said() {
        assert_eq!(
            shown(None, None),
            "                     n  text\n\
             \x20                    1  a\n\
             \x20                 NULL  longer\n\
             \x20 -9223372036854775808  \\u{1b}[2J\n"
        );
    }

    #[test]
    fn what_is_left_out_is_said() {
        let text = shown(Some(1), Some(3));
        assert_eq!(
            text,
            "  n  text\n  1  a\n  … 2 more rows; --all shows them\n"
        );
        assert!(shown(Some(2), Some(3)).contains("lon…"));
    }
}
