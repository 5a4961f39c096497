//! Tests that the rows of a table do not depend on the other requested tables. Tables are stored separately and joined
//! by row numbers.

use std::convert::Infallible;

use arrow_array::RecordBatch;
use etl::{FileSource, Source, Trace};
use tables::{Options, Table};

fn batches(trace: &Trace, wanted: &[Table], of: Table) -> Vec<RecordBatch> {
    let mut found = Vec::new();
    let give = &mut |table, batch| -> Result<(), Infallible> {
        if table == of {
            found.push(batch);
        }
        Ok(())
    };
    tables::stream(trace, wanted, Options::default(), give).expect("nothing stops it");
    found
}

#[test]
fn a_table_is_the_same_whatever_it_is_asked_for_with() {
    for name in [
        "etl/filtrace__etw.etl",
        "etl/perfview__diaghub__diaghub.kernel.1.etl",
    ] {
        let file = std::fs::File::open(testdata::path(name)).unwrap();
        let source: Box<dyn Source> = Box::new(FileSource::new(file).unwrap());
        let trace = Trace::from_sources(vec![(name.into(), source)]).unwrap();
        let mut rows = 0;
        for table in Table::ALL {
            let alone = batches(&trace, &[*table], *table);
            assert!(
                alone == batches(&trace, Table::ALL, *table),
                "{name}: {table}"
            );
            rows += alone.iter().map(RecordBatch::num_rows).sum::<usize>();
        }
        assert!(rows > 10_000, "{name}: {rows}");
    }
}
