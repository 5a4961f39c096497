//! Registration of tables. A table states the data that is joined with its rows.

use crate::Table;
use crate::schema::Rows;
use crate::table::for_each_table;
use crate::table::rows::*;
use crate::trackers::Trackers;

/// A reader of events. It is a table, or it collects data that is joined with the rows of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A table.
    Table(Table),
    /// Paths of files by key.
    FileNames,
    /// Drive letters of volumes, by NT path.
    Volumes,
    /// Time between two samples of a CPU.
    SamplingInterval,
    /// Descriptions of events.
    Metadata,
}

impl Reader {
    const TABLES: usize = Table::ALL.len();
    /// Number of readers.
    pub const COUNT: usize = Reader::TABLES + 4;

    /// Returns the index of the reader, which is less than [`Reader::COUNT`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Reader::Table(table) => table as usize,
            Reader::FileNames => Reader::TABLES,
            Reader::Volumes => Reader::TABLES + 1,
            Reader::SamplingInterval => Reader::TABLES + 2,
            Reader::Metadata => Reader::TABLES + 3,
        }
    }

    const fn from_index(index: usize) -> Reader {
        match index {
            0..Reader::TABLES => Reader::Table(Table::ALL[index]),
            Reader::TABLES => Reader::FileNames,
            _ if index == Reader::TABLES + 1 => Reader::Volumes,
            _ if index == Reader::TABLES + 2 => Reader::SamplingInterval,
            _ => Reader::Metadata,
        }
    }

    /// Returns all readers.
    pub fn all() -> impl Iterator<Item = Reader> {
        (0..Reader::COUNT).map(Reader::from_index)
    }
}

/// A set of readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderSet(u64);

const _: () = assert!(Reader::COUNT <= u64::BITS as usize);

impl ReaderSet {
    /// Adds a reader.
    pub fn add(&mut self, reader: Reader) {
        self.0 |= 1 << reader.index();
    }

    /// Returns true if the set contains a reader.
    #[inline]
    pub fn has(self, reader: Reader) -> bool {
        self.0 >> reader.index() & 1 != 0
    }

    /// Returns true if the set contains the reader of a table.
    #[inline]
    pub fn has_table(self, table: Table) -> bool {
        self.has(Reader::Table(table))
    }

    /// Returns true if the set contains no reader.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the readers that both sets contain.
    #[inline]
    pub fn intersection(self, other: ReaderSet) -> ReaderSet {
        ReaderSet(self.0 & other.0)
    }

    /// Returns the readers in the order of their indices.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Reader> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(Reader::from_index(index))
        })
    }
}

/// Registration of a table.
pub trait Register {
    /// Readers whose data is joined with the rows of the table.
    const NEEDS: &'static [Reader] = &[];
    /// True if the headers of the recording contain all data of the table. In this case, no event is read for the
    /// table.
    const IS_IN_HEADERS: bool = false;
}

/// A table that is made from the events of time slices.
pub trait EventTable: Register + Rows {
    /// Data of one CPU stream until the end of the slice. It consists of rows, or of events from which rows
    /// are made.
    type Raw: Rows;

    /// State that is kept between consecutive slices.
    type State: Default + Send;

    /// Makes the rows of a slice, sorted. `raw` is the merged raw data of the slice.
    fn join(raw: &mut Self::Raw, state: &mut Self::State, trackers: &Trackers<'_>) -> Self;

    /// Makes the remaining rows at the end of the trace. `_last_ns` is the time of the last event.
    fn finish(_state: &mut Self::State, _last_ns: i64, _trackers: &Trackers<'_>) -> Self {
        Self::default()
    }
}

macro_rules! declare {
    ($($group:ident { $($module:ident: $table:ident,)+ })+) => {
        impl Table {
            /// Returns the readers whose data is joined with the rows of the table.
            pub fn needs(self) -> &'static [Reader] {
                match self {
                    $($(Table::$table => $table::NEEDS,)+)+
                }
            }

            /// Returns true if the headers of the recording contain all data of the table.
            pub fn is_in_headers(self) -> bool {
                match self {
                    $($(Table::$table => $table::IS_IN_HEADERS,)+)+
                }
            }
        }
    };
}

for_each_table!(declare);

impl Reader {
    /// Returns the readers that this reader needs. This reader uses their data to interpret events.
    pub fn needs(self) -> &'static [Reader] {
        match self {
            Reader::Table(table) => table.needs(),
            Reader::FileNames => &[Reader::Volumes],
            Reader::Volumes | Reader::SamplingInterval | Reader::Metadata => &[],
        }
    }

    /// Returns true if the reader needs the events of the recording.
    pub fn is_read(self) -> bool {
        match self {
            Reader::Table(table) => !table.is_in_headers(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added() {
        let mut set = ReaderSet::default();
        assert!(set.is_empty());
        let added = [
            Reader::Table(Table::ALL[0]),
            Reader::Table(*Table::ALL.last().unwrap()),
            Reader::FileNames,
            Reader::Metadata,
        ];
        added.iter().for_each(|reader| set.add(*reader));
        assert_eq!(set.iter().collect::<Vec<_>>(), added);
        for reader in Reader::all() {
            assert_eq!(set.has(reader), added.contains(&reader), "{reader:?}");
            assert_eq!(Reader::from_index(reader.index()), reader);
        }
    }
}
