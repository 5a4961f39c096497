//! Rows of the tables from which the facts about a trace are computed.

use arrow_array::RecordBatch;
use events::ids::provider::LAGLAB_SIMULATOR;
use tables::{
    CpusView, Damages, DamagesView, EventKindsView, Options, Recording, Store, StoreError,
    SystemConfig, SystemConfigView, Table, WrongType,
};

use crate::damage::{FaultReport, Losses};
use crate::info::{CpuActivity, CpuDrops};

/// Tables from which the facts are computed.
pub(crate) const TABLES: [Table; 4] = [
    Table::EventKinds,
    Table::Cpus,
    Table::SystemConfig,
    Table::Damages,
];

/// Rows of the tables from which the facts about a trace are computed.
#[derive(Debug, Default)]
pub(crate) struct FactRows {
    pub(crate) kinds: Vec<KindRow>,
    /// CPUs that logged events.
    pub(crate) cpus: Vec<CpuActivity>,
    pub(crate) last_dropped: Vec<CpuDrops>,
    pub(crate) config: Vec<ConfigValue>,
    pub(crate) losses: Losses,
}

/// A kind of event.
#[derive(Debug)]
pub(crate) struct KindRow {
    pub(crate) format: String,
    pub(crate) class: Option<String>,
    /// Name of the provider; of a tracepoint, its subsystem.
    pub(crate) provider: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) provider_guid: Option<String>,
    pub(crate) hook: Option<u16>,
    pub(crate) id: Option<u16>,
    /// Times of the first and the last event.
    pub(crate) times_ns: (i64, i64),
    pub(crate) count: u64,
    /// Number of stacks inside the events.
    pub(crate) stacks: u64,
}

/// One value of the machine's configuration.
#[derive(Debug)]
pub(crate) struct ConfigValue {
    pub(crate) item: String,
    /// Number of the instance, if there are several items of this name.
    pub(crate) number: u32,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) value_number: Option<u64>,
}

impl FactRows {
    /// Reads the tables of a store. Tables that do not exist yet are made first.
    pub(crate) fn read(store: &Store, options: Options<'_>) -> Result<FactRows, StoreError> {
        store.make(&TABLES, options)?;
        let mut rows = FactRows::default();
        for table in TABLES {
            let stored = store.table(table, options)?;
            for group in 0..stored.chunks().len() {
                rows.add(table, &stored.read_all(group)?)?;
            }
        }
        Ok(rows)
    }

    /// Reads the tables of a store. Returns `None` if one of them does not exist yet.
    pub(crate) fn made(store: &Store) -> Result<Option<FactRows>, StoreError> {
        let mut rows = FactRows::default();
        for table in TABLES {
            let Some(stored) = store.made(table)? else {
                return Ok(None);
            };
            for group in 0..stored.chunks().len() {
                rows.add(table, &stored.read_all(group)?)?;
            }
        }
        Ok(Some(rows))
    }

    /// Reads the events of a recording without storing tables.
    pub(crate) fn stream(
        recording: &dyn Recording,
        options: Options<'_>,
    ) -> Result<FactRows, StoreError> {
        let mut rows = FactRows::default();
        recording.rows(&TABLES, options, &mut |table, batch: RecordBatch| {
            Ok(rows.add(table, &batch)?)
        })?;
        Ok(rows)
    }

    /// Returns true if laglab's simulator made the trace. Such a trace has an event of the simulator's
    /// provider.
    pub(crate) fn is_simulated(&self) -> bool {
        let simulator = LAGLAB_SIMULATOR.to_string();
        let mut providers = self
            .kinds
            .iter()
            .filter_map(|kind| kind.provider_guid.as_deref());
        providers.any(|provider| provider == simulator)
    }

    /// Adds the rows of a table.
    pub(crate) fn add(&mut self, table: Table, batch: &RecordBatch) -> Result<(), WrongType> {
        match table {
            Table::EventKinds => self.add_kinds(&EventKindsView::new(batch)?),
            Table::Cpus => self.add_cpus(&CpusView::new(batch)?),
            Table::SystemConfig => self.add_config(&SystemConfigView::new(batch)?),
            Table::Damages => self.add_losses(&DamagesView::new(batch)?),
            _ => {}
        }
        Ok(())
    }

    fn add_kinds(&mut self, view: &EventKindsView<'_>) {
        self.kinds.extend((0..view.len()).map(|row| KindRow {
            format: view.format.get(row).unwrap_or_default().to_owned(),
            class: view.class.get(row).map(str::to_owned),
            provider: view.provider.get(row).map(str::to_owned),
            event: view.event.get(row).map(str::to_owned),
            provider_guid: view.provider_guid.get(row).map(str::to_owned),
            hook: view.hook.get(row),
            id: view.id.get(row),
            times_ns: (view.first_ns[row], view.last_ns[row]),
            count: view.count[row],
            stacks: view.stacks[row],
        }));
    }

    fn add_cpus(&mut self, view: &CpusView<'_>) {
        for row in 0..view.len() {
            let cpu = view.cpu[row];
            if let Some((first_ns, last_ns)) = view
                .first_event_ns
                .get(row)
                .zip(view.last_event_ns.get(row))
            {
                self.cpus.push(CpuActivity {
                    cpu,
                    events: view.events[row],
                    first_ns,
                    last_ns,
                    longest_silence_ns: view.longest_gap_ns.get(row).unwrap_or(0),
                    longest_silence_from_ns: view.longest_gap_start_ns.get(row).unwrap_or(first_ns),
                });
            }
            if let Some(last_ns) = view.last_dropped_ns.get(row) {
                self.last_dropped.push(CpuDrops {
                    cpu: cpu.into(),
                    last_ns,
                });
            }
        }
    }

    fn add_config(&mut self, view: &SystemConfigView<'_>) {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        self.config.extend((0..view.len()).map(|row| ConfigValue {
            item: text(view.item.get(row)),
            number: view.number[row],
            key: text(view.key.get(row)),
            value: text(view.value.get(row)),
            value_number: view.value_number.get(row),
        }));
    }

    fn add_losses(&mut self, view: &DamagesView<'_>) {
        for row in 0..view.len() {
            let kind = view.kind.get(row).unwrap_or_default();
            let count = view.count.get(row).unwrap_or(1);
            if kind == Damages::LOSS_EVENTS {
                self.losses.loss_events += count;
            }
            if kind == Damages::THROTTLED {
                self.losses.throttled += count;
            }
            if !Damages::is_fault(kind) {
                continue;
            }
            self.losses.faults.push((kind.to_owned(), count));
            if let Some(buffer_offset) = view.buffer_offset_bytes.get(row) {
                self.losses.places.push(FaultReport {
                    file: view.file.get(row).unwrap_or_default().to_owned(),
                    buffer_offset,
                    offset: view.record_offset_bytes.get(row),
                    kind: kind.to_owned(),
                    what: view.text.get(row).unwrap_or_default().to_owned(),
                });
            }
        }
    }

    /// Returns the number of events of all kinds.
    pub(crate) fn events(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Returns a text value of an item's first instance, unless it is blank.
    pub(crate) fn text(&self, item: &str, key: &str) -> Option<String> {
        let text = self.value(item, key)?.value.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a numeric value of an item's first instance.
    pub(crate) fn number(&self, item: &str, key: &str) -> Option<u64> {
        self.value(item, key)?.value_number
    }

    fn value(&self, item: &str, key: &str) -> Option<&ConfigValue> {
        let mut values = self.config.iter();
        values.find(|value| value.item == item && value.number == 0 && value.key == key)
    }

    /// Returns the names of the kinds of kernel events that sessions enabled.
    pub(crate) fn kernel_flags(&self) -> Vec<String> {
        let values = self.config.iter();
        values
            .filter(|value| value.item == SystemConfig::KERNEL_FLAGS)
            .map(|value| value.value.clone())
            .collect()
    }
}
