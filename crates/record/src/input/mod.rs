//! Recorder of the times of user input. It logs them as events, so that a trace shows the moment at which
//! the user noticed a delay. UIforETW does the same.
//!
//! While a [`Recorder`] exists, the TraceLogging provider `Laglab-Input` logs an event when a key is pressed
//! and when another window becomes the foreground window. The key code is logged only on request. Window
//! titles are never logged. Events are logged only while a session enables the provider.

#[cfg(windows)]
mod windows;

/// Id of the event for a pressed key. The event's field is the virtual key code, or 0 if key codes are not
/// logged.
pub const KEY_DOWN: u16 = 1;
/// Id of the event for a new foreground window. The event's field is the process id of the window.
pub const FOREGROUND_WINDOW: u16 = 2;

/// Recorder that logs user input until it is stopped.
#[derive(Debug)]
pub struct Recorder {
    #[cfg(windows)]
    loops: windows::MessageLoop,
}

/// Error of [`Recorder::start`].
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The system is not Windows.
    #[error("cannot log input: it can be logged on Windows only")]
    NotWindows,
    /// A function of Windows failed.
    #[error("cannot log input: {call} failed: {source}; run it on a desktop, not in a service")]
    Refused {
        /// Name of the function that failed.
        call: &'static str,
        /// Error that the function reported.
        source: std::io::Error,
    },
}

impl Recorder {
    /// Starts to log user input. Key codes are logged if `with_keys` is true.
    ///
    /// # Errors
    /// Returns an error if the system is not Windows, or if a function of Windows fails.
    #[cfg(windows)]
    pub fn start(with_keys: bool) -> Result<Recorder, RecorderError> {
        let loops = windows::MessageLoop::start(with_keys)?;
        Ok(Recorder { loops })
    }

    /// Starts to log user input. Key codes are logged if `with_keys` is true.
    ///
    /// # Errors
    /// Returns an error if the system is not Windows, or if a function of Windows fails.
    #[cfg(not(windows))]
    pub fn start(_with_keys: bool) -> Result<Recorder, RecorderError> {
        Err(RecorderError::NotWindows)
    }

    /// Stops logging.
    pub fn stop(self) {
        #[cfg(windows)]
        self.loops.stop();
    }
}
