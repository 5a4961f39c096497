//! The inputs that every theory reads.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use tables::StoreError;

use crate::chain::user_attention::UserAttention;
use crate::{Reader, Scope, Survey};

/// Inputs of the theories for one trace. A case dereferences to its [`Reader`], and theories use this reader to read
/// tables.
pub struct Case<'a> {
    reader: Reader<'a>,
    /// Sums over the trace that several theories share.
    pub survey: Arc<Survey>,
    /// Threads, processes and time range that the user asks about.
    pub scope: Scope,
    noticed: OnceLock<UserAttention>,
}

impl<'a> Case<'a> {
    /// Creates a case, and computes the survey of the trace.
    pub(crate) fn read(reader: Reader<'a>, scope: Scope) -> Result<Case<'a>, StoreError> {
        let survey = Arc::new(Survey::read(&reader, &scope)?);
        Ok(Case {
            reader,
            survey,
            scope,
            noticed: OnceLock::new(),
        })
    }

    /// Creates a case with the survey of a trace that was explained before.
    pub(crate) fn of_survey(reader: Reader<'a>, survey: Arc<Survey>) -> Case<'a> {
        Case {
            reader,
            survey,
            scope: Scope::default(),
            noticed: OnceLock::new(),
        }
    }

    /// Returns the facts that show whether users notice delays.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or the user cancelled.
    pub(crate) fn noticed(&self) -> Result<&UserAttention, StoreError> {
        if let Some(noticed) = self.noticed.get() {
            return Ok(noticed);
        }
        // Theories that ask at the same time may read it twice. An error must not be kept, as a later caller needs it.
        let noticed = UserAttention::read(self)?;
        Ok(self.noticed.get_or_init(|| noticed))
    }
}

impl<'a> Deref for Case<'a> {
    type Target = Reader<'a>;

    fn deref(&self) -> &Reader<'a> {
        &self.reader
    }
}
