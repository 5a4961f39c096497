//! Conditions under which samples were measured. The file with the samples also contains the conditions.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};

use crate::SamplesError;

/// Conditions of a measurement. A condition is `None` if the system did not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleConditions {
    /// Name of the computer.
    pub computer: Option<String>,
    /// Name of the CPU.
    pub cpu: Option<String>,
    /// Number of CPUs that the program could use.
    pub cpus: Option<u64>,
    /// Name and release of the operating system.
    pub system: Option<String>,
    /// Command line of the measurement.
    pub command: Option<String>,
    /// End of the measurement, in UTC.
    pub ended_utc: Option<String>,
    /// True if the measurement could end early, as soon as its comparisons were certain. Such a measurement tests its
    /// data several times.
    pub until_sure: bool,
}

/// Name of the entry in the schema's metadata that contains the conditions. The value of the entry is JSON.
const ENTRY: &str = "laglab.conditions";

impl SampleConditions {
    /// Adds the conditions to the metadata of a table of samples. Returns the table with the conditions.
    pub fn attach(&self, samples: &RecordBatch) -> RecordBatch {
        let mut schema = samples.schema().as_ref().clone();
        let json = serde_json::to_string(self);
        schema
            .metadata
            .extend(json.map(|json| (ENTRY.to_owned(), json)));
        // The fields of the schema are unchanged, so the schema fits the rows.
        let with = samples.clone().with_schema(Arc::new(schema));
        with.unwrap_or_else(|_| samples.clone())
    }

    /// Reads the conditions from a Parquet file. Returns `None` if the file does not state them.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if its conditions are damaged.
    pub fn read(file: &Path) -> Result<Option<SampleConditions>, SamplesError> {
        let not_samples = |what: String| SamplesError::NotSamples {
            file: file.to_owned(),
            what,
        };
        let opened = File::open(file).map_err(|source| SamplesError::Io {
            file: file.to_owned(),
            source,
        })?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened)
            .map_err(|error| not_samples(format!("it is a damaged Parquet file ({error})")))?;
        let text = builder.schema().metadata().get(ENTRY);
        let parsed = text.map(|text| serde_json::from_str(text)).transpose();
        parsed.map_err(|error| not_samples(format!("its conditions are damaged ({error})")))
    }
}
