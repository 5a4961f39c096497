//! Opens a trace and prepares its decoder for the comparison.

use etl::{Event, Trace};
use events::{Decoded, Decoder};
use files::{FileSource, Source};

/// A trace and a decoder that has already learned the metadata of the trace.
pub(crate) struct Decodable {
    pub(crate) trace: Trace,
    pub(crate) decoder: Decoder,
}

impl Decodable {
    /// Opens files below `../shared/data/etl` as one trace.
    pub(crate) fn open(files: &[&str]) -> Decodable {
        let sources = files.iter().map(|name| {
            let file = std::fs::File::open(testdata::path(&format!("etl/{name}"))).unwrap();
            let source: Box<dyn Source> = Box::new(FileSource::new(file).unwrap());
            ((*name).to_owned(), source)
        });
        let trace = Trace::from_sources(sources.collect()).unwrap();
        let mut decoder = Decoder::new();
        let mut events = trace.events();
        while let Some(event) = events.next() {
            decoder.learn(&event);
        }
        decoder.finish_learning();
        assert_eq!(decoder.faults(), [], "{files:?}");
        Decodable { trace, decoder }
    }

    /// Calls `visit` for all events in time order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Event<'_>, &Decoded<'_>)) {
        let mut events = self.trace.events();
        while let Some(event) = events.next() {
            visit(&event, &self.decoder.decode(&event));
        }
    }
}
