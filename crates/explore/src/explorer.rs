//! What answers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use tables::{Functions, Identities, Store, Table};

use crate::columns::Columns;
use crate::selection::Ask;
use crate::stacks::Frames;
use crate::trace::Trace;
use crate::{
    ButterflyAnswer, ButterflyRequest, ExploreError, FlameAnswer, FlameRequest, HeatAnswer,
    HeatRequest, HistogramAnswer, HistogramRequest, LanesAnswer, LanesRequest, OverviewAnswer,
    PivotAnswer, PivotRequest, Preset, RowsAnswer, RowsRequest, TableInfo, TimelineAnswer,
    TimelineRequest,
};
use crate::{
    butterfly, catalogue, flame, heat, histogram, lanes, overview, pivot, presets, rows, timeline,
};

/// Answers requests about one trace, from any number of threads.
///
/// Tables are made when they are first asked about. Every request takes a flag that stops it. Do not
/// call from within rayon's pool: requests wait for each other there.
pub struct Explorer {
    trace: Trace,
    columns: Columns,
    frames: Frames,
}

/// How far the making of tables has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// What is being done.
    pub phase: &'static str,
    /// Bytes of the trace read so far.
    pub done: u64,
    /// Of how many.
    pub of: u64,
}

impl Explorer {
    /// Bytes of decoded columns that are kept, if the caller has no better idea.
    pub const MEMORY_BYTES: usize = 1_500_000_000;

    /// Answers about this trace. Without `functions` addresses are shown by module and offset;
    /// `memory_bytes` is what decoded columns may take.
    pub fn new(
        store: Arc<Store>,
        functions: Option<Arc<dyn Functions>>,
        memory_bytes: usize,
    ) -> Explorer {
        Explorer {
            trace: Trace::new(store, functions),
            columns: Columns::new(memory_bytes),
            frames: Frames::default(),
        }
    }

    /// The tables that can be looked at. Those not made yet say so.
    ///
    /// # Errors
    /// If a table that was made cannot be read.
    pub fn tables(&self) -> Result<Vec<TableInfo>, ExploreError> {
        let tables = catalogue::tables().iter();
        tables
            .map(|def| {
                let made = self.trace.store.made(def.table)?;
                Ok(def.info(made.as_ref()))
            })
            .collect()
    }

    /// How far the making of tables has come, while some request makes any.
    pub fn progress(&self) -> Option<Progress> {
        self.trace.progress()
    }

    /// The views that ship.
    pub fn presets(&self) -> Vec<Preset> {
        presets::shipped().to_vec()
    }

    /// Makes tables by their names, in as few passes over the trace as that takes; with none named
    /// all of those that can be looked at.
    ///
    /// # Errors
    /// If there is no such table, or the trace cannot be read.
    pub fn prepare(&self, tables: &[&str], cancel: &AtomicBool) -> Result<(), ExploreError> {
        let named = tables.iter().map(|name| Ok(catalogue::table(name)?.table));
        let mut wanted: Vec<Table> = named.collect::<Result<_, ExploreError>>()?;
        if wanted.is_empty() {
            wanted.extend(catalogue::tables().iter().map(|def| def.table));
        }
        wanted.extend(Identities::TABLES);
        self.trace.make(&wanted, cancel)
    }

    /// How much, per slice of time and group.
    ///
    /// # Errors
    /// If the request makes no sense, or the table cannot be read.
    pub fn timeline(
        &self,
        request: &TimelineRequest,
        cancel: &AtomicBool,
    ) -> Result<TimelineAnswer, ExploreError> {
        timeline::answer(self.ask(cancel), request)
    }

    /// The groups of one level.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn pivot(
        &self,
        request: &PivotRequest,
        cancel: &AtomicBool,
    ) -> Result<PivotAnswer, ExploreError> {
        pivot::answer(self.ask(cancel), request)
    }

    /// The rows themselves.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn rows(
        &self,
        request: &RowsRequest,
        cancel: &AtomicBool,
    ) -> Result<RowsAnswer, ExploreError> {
        rows::answer(self.ask(cancel), request)
    }

    /// Where the weight of stacks lies.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn flame(
        &self,
        request: &FlameRequest,
        cancel: &AtomicBool,
    ) -> Result<FlameAnswer, ExploreError> {
        flame::answer(self.ask(cancel), &self.frames, request)
    }

    /// Functions by weight, or the callers and callees of one.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn butterfly(
        &self,
        request: &ButterflyRequest,
        cancel: &AtomicBool,
    ) -> Result<ButterflyAnswer, ExploreError> {
        butterfly::answer(self.ask(cancel), &self.frames, request)
    }

    /// How values are spread over time.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn heat(
        &self,
        request: &HeatRequest,
        cancel: &AtomicBool,
    ) -> Result<HeatAnswer, ExploreError> {
        heat::answer(self.ask(cancel), request)
    }

    /// How values are spread, by group.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn histogram(
        &self,
        request: &HistogramRequest,
        cancel: &AtomicBool,
    ) -> Result<HistogramAnswer, ExploreError> {
        histogram::answer(self.ask(cancel), request)
    }

    /// Who ran on each CPU.
    ///
    /// # Errors
    /// As [`Explorer::timeline`].
    pub fn lanes(
        &self,
        request: &LanesRequest,
        cancel: &AtomicBool,
    ) -> Result<LanesAnswer, ExploreError> {
        lanes::answer(self.ask(cancel), request)
    }

    /// The strip of small graphs for the first look, by what the trace holds.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn overview(&self, cancel: &AtomicBool) -> Result<OverviewAnswer, ExploreError> {
        overview::answer(self.ask(cancel))
    }

    /// The graphs of that strip that can be drawn at once: makes no table, and knows nothing of those
    /// that are not made.
    ///
    /// # Errors
    /// If a table that was made cannot be read.
    pub fn overview_so_far(&self) -> Result<OverviewAnswer, ExploreError> {
        overview::so_far(&self.trace.store)
    }

    fn ask<'a>(&'a self, cancel: &'a AtomicBool) -> Ask<'a> {
        Ask {
            trace: &self.trace,
            columns: &self.columns,
            cancel,
        }
    }
}
