//! Progress on stderr, and reaction to Ctrl-C, during long work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::{Amount, Observer, Task};

/// Exit code after Ctrl-C: 128 + SIGINT, the convention of Unix shells.
pub(crate) const INTERRUPTED_CODE: u8 = 130;

/// Time after which progress is shown. Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Error that ends work after the user pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// Time after Ctrl-C before a message is printed. Work that stops within this time prints none.
const STOPS_SOON: Duration = Duration::from_millis(300);

/// Installs the handler of Ctrl-C. The first Ctrl-C stops the work cleanly, and the second one ends the
/// program at once. If the work takes longer than [`STOPS_SOON`] to stop, a message explains this.
pub(crate) fn install_interrupt() {
    // The error is ignored, because without a handler Ctrl-C simply ends the program.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED_CODE.into());
        }
        // The handler runs in its own thread, so it may sleep.
        std::thread::sleep(STOPS_SOON);
        if check().is_err() {
            crate::output::say(
                "stopping after the current operation; press Ctrl-C again to end at once and lose \
                 the results that are not printed yet",
            );
        }
    });
}

/// Resets the flag that Ctrl-C set, so that the next work can start.
#[cfg(feature = "sql")]
pub(crate) fn forget() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// Returns the flag that Ctrl-C sets.
pub(crate) fn interrupted() -> &'static AtomicBool {
    &INTERRUPTED
}

/// Returns an error if work must stop.
///
/// # Errors
/// Returns [`Interrupted`] if the user pressed Ctrl-C.
pub(crate) fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        Err(Interrupted)
    } else {
        Ok(())
    }
}

/// Progress and cancellation of one piece of work. All threads of the work share it.
pub(crate) struct Watch {
    what: &'static str,
    total_bytes: u64,
    started: Instant,
    bar: OnceLock<ProgressBar>,
    quiet: bool,
    in_percent: bool,
    done_bytes: std::sync::atomic::AtomicU64,
}

impl Watch {
    /// Starts the progress of work on `total_bytes` bytes. `what` names the work as a present participle,
    /// such as "reading".
    pub(crate) fn new(what: &'static str, total_bytes: u64) -> Watch {
        Watch {
            what,
            total_bytes,
            started: Instant::now(),
            bar: OnceLock::new(),
            quiet: false,
            in_percent: false,
            done_bytes: 0.into(),
        }
    }

    /// Hides the progress bar, for work that shows progress by its output.
    pub(crate) fn quiet(mut self) -> Watch {
        self.quiet = true;
        self
    }

    /// Shows the progress in percent. The total may then have any unit.
    pub(crate) fn in_percent(mut self) -> Watch {
        self.in_percent = true;
        self
    }

    /// Adds `bytes` to the number of processed bytes.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the user pressed Ctrl-C.
    pub(crate) fn advance(&self, bytes: u64) -> Result<(), Interrupted> {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.reach(done)
    }

    /// Sets the number of processed bytes to `done`.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the user pressed Ctrl-C.
    pub(crate) fn reach(&self, done: u64) -> Result<(), Interrupted> {
        check()?;
        self.show(done);
        Ok(())
    }

    fn show(&self, done: u64) {
        if !self.quiet && self.started.elapsed() > PATIENCE {
            self.bar
                .get_or_init(|| self.new_bar())
                .set_position(done.min(self.total_bytes));
        }
    }

    fn new_bar(&self) -> ProgressBar {
        // If stderr is not a terminal, the bar draws nothing.
        let bar = ProgressBar::with_draw_target(
            Some(self.total_bytes),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let template = if self.in_percent {
            "{msg} {bar:30} {percent} %, {eta} left"
        } else {
            "{msg} {bar:30} {bytes}/{total_bytes}, {eta} left"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.with_message(self.what)
            .with_elapsed(self.started.elapsed())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Task for Watch {
    fn reach(&self, done: u64) {
        self.show(done);
    }
}

/// Observer that prints progress and warnings on stderr, and cancels work after Ctrl-C.
pub(crate) struct Terminal;

impl Observer for Terminal {
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task> {
        let watch = Watch::new(what, amount.total());
        Box::new(match amount {
            Amount::Bytes(_) => watch,
            Amount::Units(_) => watch.in_percent(),
        })
    }

    fn warn(&self, text: &str) {
        crate::output::say(text);
    }

    fn is_cancelled(&self) -> bool {
        check().is_err()
    }
}
