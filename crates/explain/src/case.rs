//! The inputs that every theory reads.

use std::ops::Deref;
use std::sync::Arc;

use tables::StoreError;

use crate::{Reader, Scope, Survey};

/// Inputs of the theories for one trace. A case dereferences to its [`Reader`], and theories use this reader to read
/// tables.
pub struct Case<'a> {
    reader: Reader<'a>,
    /// Sums over the trace that several theories share.
    pub survey: Arc<Survey>,
    /// Threads, processes and time range that the user asks about.
    pub scope: Scope,
}

impl<'a> Case<'a> {
    /// Creates a case, and computes the survey of the trace.
    pub(crate) fn read(reader: Reader<'a>, scope: Scope) -> Result<Case<'a>, StoreError> {
        let survey = Arc::new(Survey::read(&reader, &scope)?);
        Ok(Case {
            reader,
            survey,
            scope,
        })
    }

    /// Creates a case with the survey of a trace that was explained before.
    pub(crate) fn of_survey(reader: Reader<'a>, survey: Arc<Survey>) -> Case<'a> {
        Case {
            reader,
            survey,
            scope: Scope::default(),
        }
    }
}

impl<'a> Deref for Case<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Reader<'a> {
        &self.reader
    }
}
