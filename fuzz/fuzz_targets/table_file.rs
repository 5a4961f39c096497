//! Reads any bytes as a table file: as its footer, and as a column chunk. Both have valid
//! checksums.
#![no_main]

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use libfuzzer_sys::fuzz_target;
use store::{TableFile, TableSpec};

const MAGIC: [u8; 8] = *b"\x89laglab\n";

fuzz_target!(|data: &[u8]| {
    let (text, item) = (DataType::Utf8, Field::new("item", DataType::UInt64, true));
    for data_type in [DataType::Int64, text, DataType::List(item.into())] {
        let fields = vec![
            Field::new("time_ns", DataType::Int64, false),
            Field::new("value", data_type, true),
        ];
        let spec = TableSpec {
            name: "fuzz",
            schema: Arc::new(Schema::new(fields)),
            sorted_by: "time_ns",
        };
        read(&[], data, &spec);
        // The writer knows the version and the fingerprint of the columns.
        let writer = store::TableWriter::new(Vec::new(), spec.clone(), None);
        let Ok(empty) = writer.finish(None::<&()>) else {
            return;
        };
        let at = empty.len() - 20;
        let mut footer: serde_json::Value =
            serde_json::from_slice(&empty[..at]).expect("the writer wrote it");
        let checksum = crc32fast::hash(data);
        let chunk = |packing: serde_json::Value| {
            serde_json::json!({
                "offset": 0, "length": data.len(), "checksum": checksum, "packing": packing,
            })
        };
        for packing in [serde_json::json!("Plain"), serde_json::json!({"Above": 7})] {
            footer["row_groups"] = serde_json::json!([{
                "rows": 3, "first": 0, "last": 9,
                "columns": [chunk(serde_json::json!({"All": 1})), chunk(packing)],
            }]);
            let footer = serde_json::to_vec(&footer).expect("it is JSON");
            read(data, &footer, &spec);
        }
    }
});

fn read(body: &[u8], footer: &[u8], spec: &TableSpec) {
    let length = (footer.len() as u64).to_le_bytes();
    let checksum = crc32fast::hash(footer).to_le_bytes();
    let bytes = [body, footer, &length, &checksum, &MAGIC].concat();
    let Ok(file) = TableFile::open(Box::new(bytes), spec.clone(), None) else {
        return;
    };
    for group in 0..file.row_groups().len() {
        for columns in [&[0][..], &[1], &[0, 1]] {
            let _ = file.read(group, columns);
        }
    }
}
