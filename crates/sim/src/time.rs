//! Time in the model: whole ticks of the trace's clock since the trace began.

/// A moment, or a length of time, in ticks of the trace's clock. Moments count from the trace's
/// beginning.
pub(crate) type Time = u64;
