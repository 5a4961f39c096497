//! Times of the user's input, as events that a recording picks up: UIforETW's idea for finding the
//! moment that somebody felt.
//!
//! While a [`Recorder`] lives, the TraceLogging provider `Laglab-Input` logs an event when a key is
//! pressed and when another window comes to the front. Which key it was is logged only where that was
//! asked for; what a window is called never is. Nothing is kept and nothing is sent: where no session
//! has the provider switched on, nothing happens at all.

#[cfg(windows)]
mod windows;

/// Id of the event of a key: one number, the virtual key code, which is 0 where it is not told.
pub const KEY_DOWN: u16 = 1;
/// Id of the event of a window that comes to the front: the id of its process.
pub const WINDOW_IN_FRONT: u16 = 2;

/// Logs input until it is stopped.
#[derive(Debug)]
pub struct Recorder {
    #[cfg(windows)]
    loops: windows::MessageLoop,
}

/// Why input is not logged.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// It is not Windows.
    #[error("times of input are recorded on Windows only")]
    NotWindows,
    /// Windows did not give what it takes.
    #[error("Windows does not tell of input: {0}. Is there a desktop, and not only a service?")]
    Refused(String),
}

impl Recorder {
    /// Begins to log; which keys it were, too, if that is asked for.
    ///
    /// # Errors
    /// If it is not Windows, or Windows refuses.
    #[cfg(windows)]
    pub fn start(with_keys: bool) -> Result<Recorder, RecorderError> {
        let loops = windows::MessageLoop::start(with_keys).map_err(RecorderError::Refused)?;
        Ok(Recorder { loops })
    }

    /// Begins to log; which keys it were, too, if that is asked for.
    ///
    /// # Errors
    /// If it is not Windows, or Windows refuses.
    #[cfg(not(windows))]
    pub fn start(_with_keys: bool) -> Result<Recorder, RecorderError> {
        Err(RecorderError::NotWindows)
    }

    /// Ends it.
    pub fn stop(self) {
        #[cfg(windows)]
        self.loops.stop();
    }
}
