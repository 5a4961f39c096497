//! Explorer, which executes the requests of views on one trace.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tables::{Functions, Identities, Store, Table};

use crate::butterfly::{ButterflyAnswer, ButterflyRequest};
use crate::cache::ColumnCache;
use crate::context::Context;
use crate::overview::OverviewAnswer;
use crate::rows::{RowsAnswer, RowsRequest};
use crate::stacks::FrameNames;
use crate::trace::Trace;
use crate::{
    ExploreError, FlameAnswer, FlameRequest, HeatAnswer, HeatRequest, HistogramAnswer,
    HistogramRequest, LanesAnswer, LanesRequest, PivotAnswer, PivotRequest, Preset, Progress,
    TableInfo, TimelineAnswer, TimelineRequest,
};
use crate::{
    butterfly, catalogue, flame, heat, histogram, lanes, overview, pivot, presets, rows, timeline,
};

/// Executor of requests on one trace. Any number of threads can use it.
///
/// The first request that needs a table builds the table. Each request has a flag that cancels it. Do not
/// call the methods on a thread of rayon's pool: requests wait for each other, and this can block the pool.
pub struct Explorer {
    trace: Trace,
    cache: ColumnCache,
    frame_names: FrameNames,
}

impl Explorer {
    /// Default memory limit for decoded columns, in bytes.
    pub const MEMORY_BYTES: usize = 1_500_000_000;

    /// Creates an explorer of one trace. `functions` returns names of functions. Without it, addresses are
    /// shown as module and offset. `memory_bytes` limits the memory of decoded columns.
    pub fn new(
        store: Arc<Store>,
        functions: Option<Arc<dyn Functions>>,
        memory_bytes: usize,
    ) -> Explorer {
        Explorer {
            trace: Trace::new(store, functions),
            cache: ColumnCache::new(memory_bytes),
            frame_names: FrameNames::default(),
        }
    }

    /// Returns all tables that views can show, including tables that are not built yet.
    ///
    /// # Errors
    /// Returns an error if a built table cannot be read.
    pub fn tables(&self) -> Result<Vec<TableInfo>, ExploreError> {
        let tables = catalogue::tables().iter();
        let is_linux = self.trace.store.info().is_linux();
        tables
            .map(|def| {
                let stored = self.trace.store.made(def.table)?;
                Ok(def.info(stored.as_ref(), is_linux))
            })
            .collect()
    }

    /// Returns all tables that views of any trace can show, with advice for traces of Windows.
    pub fn catalogue() -> Vec<TableInfo> {
        let tables = catalogue::tables().iter();
        tables.map(|def| def.info(None, false)).collect()
    }

    /// Returns the progress while a request builds tables; otherwise `None`.
    pub fn progress(&self) -> Option<Progress> {
        self.trace.progress()
    }

    /// Returns the views that are part of the program.
    pub fn presets(&self) -> Vec<Preset> {
        presets::shipped().to_vec()
    }

    /// Returns the preset with a name, and builds its table. Returns `None` if there is no such preset, or its table has
    /// no rows.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read, or if the request is cancelled.
    pub fn recorded(
        &self,
        name: &str,
        cancel: &AtomicBool,
    ) -> Result<Option<Preset>, ExploreError> {
        let preset = presets::shipped().iter().find(|preset| preset.name == name);
        let Some(preset) = preset else {
            return Ok(None);
        };
        let table = self.context(cancel).open(&preset.view.table)?;
        Ok((table.stored.rows() > 0).then(|| preset.clone()))
    }

    /// Builds the tables with these names in as few passes over the trace as possible. If `tables` is empty,
    /// builds all tables that views can show.
    ///
    /// # Errors
    /// Returns an error if there is no table with one of the names, or if the trace cannot be read.
    pub fn prepare(&self, tables: &[&str], cancel: &AtomicBool) -> Result<(), ExploreError> {
        let named = tables.iter().map(|name| Ok(catalogue::table(name)?.table));
        let mut wanted: Vec<Table> = named.collect::<Result<_, ExploreError>>()?;
        if wanted.is_empty() {
            wanted.extend(catalogue::tables().iter().map(|def| def.table));
        }
        wanted.extend(Identities::TABLES);
        self.trace.make(&wanted, cancel)
    }

    /// Returns the values for each time bucket and group.
    ///
    /// # Errors
    /// Returns an error if the request is invalid or cancelled, or if the table cannot be read.
    pub fn timeline(
        &self,
        request: &TimelineRequest,
        cancel: &AtomicBool,
    ) -> Result<TimelineAnswer, ExploreError> {
        timeline::answer(self.context(cancel), request)
    }

    /// Returns the groups in one level of a view's tree.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn pivot(
        &self,
        request: &PivotRequest,
        cancel: &AtomicBool,
    ) -> Result<PivotAnswer, ExploreError> {
        pivot::answer(self.context(cancel), request, false)
    }

    /// Returns the groups in one level of a view's tree. If the request has a time range, durations (such as waits) are
    /// cut to it, as in a timeline. A row is then selected if the row or one of its durations overlaps the range.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn pivot_cut(
        &self,
        request: &PivotRequest,
        cancel: &AtomicBool,
    ) -> Result<PivotAnswer, ExploreError> {
        pivot::answer(self.context(cancel), request, true)
    }

    /// Returns single rows.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn rows(
        &self,
        request: &RowsRequest,
        cancel: &AtomicBool,
    ) -> Result<RowsAnswer, ExploreError> {
        rows::answer(self.context(cancel), request)
    }

    /// Returns a call tree, computed from stacks and their weights.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn flame(
        &self,
        request: &FlameRequest,
        cancel: &AtomicBool,
    ) -> Result<FlameAnswer, ExploreError> {
        flame::answer(self.context(cancel), &self.frame_names, request)
    }

    /// Returns functions by weight, or the callers and callees of one function.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn butterfly(
        &self,
        request: &ButterflyRequest,
        cancel: &AtomicBool,
    ) -> Result<ButterflyAnswer, ExploreError> {
        butterfly::answer(self.context(cancel), &self.frame_names, request)
    }

    /// Returns the distribution of values over time.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn heat(
        &self,
        request: &HeatRequest,
        cancel: &AtomicBool,
    ) -> Result<HeatAnswer, ExploreError> {
        heat::answer(self.context(cancel), request)
    }

    /// Returns the distribution of values in each group.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn histogram(
        &self,
        request: &HistogramRequest,
        cancel: &AtomicBool,
    ) -> Result<HistogramAnswer, ExploreError> {
        histogram::answer(self.context(cancel), request)
    }

    /// Returns the threads that ran on each CPU.
    ///
    /// # Errors
    /// See [`Explorer::timeline`].
    pub fn lanes(
        &self,
        request: &LanesRequest,
        cancel: &AtomicBool,
    ) -> Result<LanesAnswer, ExploreError> {
        lanes::answer(self.context(cancel), request)
    }

    /// Returns the graphs of the overview. They depend on the tables that have rows.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or if the request is cancelled.
    pub fn overview(&self, cancel: &AtomicBool) -> Result<OverviewAnswer, ExploreError> {
        overview::answer(self.context(cancel))
    }

    /// Returns the graphs of the overview whose tables are already built. This method builds no tables.
    ///
    /// # Errors
    /// Returns an error if a built table cannot be read.
    pub fn overview_so_far(&self) -> Result<OverviewAnswer, ExploreError> {
        overview::so_far(&self.trace.store)
    }

    fn context<'a>(&'a self, cancel: &'a AtomicBool) -> Context<'a> {
        Context {
            trace: &self.trace,
            cache: &self.cache,
            cancel,
        }
    }
}
