//! Tests that the rows of a table do not depend on the other requested tables. Tables are stored separately and joined
//! by row numbers.

use arrow_array::RecordBatch;
use tables::{Options, Recording, Table};

fn batches(recording: &dyn Recording, wanted: &[Table], of: Table) -> Vec<RecordBatch> {
    let mut found = Vec::new();
    let give = &mut |table, batch| {
        if table == of {
            found.push(batch);
        }
        Ok(())
    };
    let done = recording.rows(wanted, Options::default(), give);
    done.expect("nothing stops it");
    found
}

#[test]
fn a_table_is_the_same_whatever_it_is_asked_for_with() {
    for name in [
        "etl/filtrace__etw.etl",
        "etl/perfview__diaghub__diaghub.kernel.1.etl",
    ] {
        let recording = imports::open(&[testdata::path(name)]).unwrap();
        let mut rows = 0;
        for table in Table::ALL {
            let alone = batches(&*recording, &[*table], *table);
            assert!(
                alone == batches(&*recording, Table::ALL, *table),
                "{name}: {table}"
            );
            rows += alone.iter().map(RecordBatch::num_rows).sum::<usize>();
        }
        assert!(rows > 10_000, "{name}: {rows}");
    }
}
