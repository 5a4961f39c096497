//! What a user sees and does while something takes long: progress on stderr, and Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Exit code of a program that Ctrl-C ended, by the convention of Unix shells (128 + SIGINT).
pub(crate) const INTERRUPTED_CODE: u8 = 130;

/// Nothing is shown of what takes less.
const PATIENCE: Duration = Duration::from_secs(1);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The work was stopped by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// Nothing is said of work that stops sooner after Ctrl-C.
const STOPS_SOON: Duration = Duration::from_millis(300);

/// Makes the first Ctrl-C stop the work cleanly and the second end the program at once, which the
/// user is told if the first takes its time.
pub(crate) fn install_interrupt() {
    // Without a handler Ctrl-C ends the program, which is no reason not to start it.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED_CODE.into());
        }
        // This is a thread of its own.
        std::thread::sleep(STOPS_SOON);
        if check().is_err() {
            crate::cli::say(
                "stopping when what is under way is finished, such as a sleep or a run; Ctrl-C again \
                 ends it at once, and what was not shown yet is lost",
            );
        }
    });
}

/// Lets the next work begin after the user stopped this one.
#[cfg(feature = "sql")]
pub(crate) fn forget() {
    INTERRUPTED.store(false, Ordering::Relaxed);
}

/// # Errors
/// If the user wants the work to stop.
pub(crate) fn check() -> Result<(), Interrupted> {
    match INTERRUPTED.load(Ordering::Relaxed) {
        true => Err(Interrupted),
        false => Ok(()),
    }
}

/// How far work is that somebody else asks about, from another thread.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Option<Reached>>);

/// How far a stretch of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// What is done: a present participle.
    pub(crate) what: &'static str,
    /// Bytes done.
    pub(crate) done: u64,
    /// Bytes to be done.
    pub(crate) of: u64,
}

impl Progress {
    /// Where the work is; nothing if none is under way.
    pub(crate) fn reached(&self) -> Option<Reached> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, reached: Option<Reached>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    }
}

/// Watches one stretch of work: how far it is, and whether it shall stop. Shared by its threads.
pub(crate) struct Watch {
    what: &'static str,
    total_bytes: u64,
    started: Instant,
    bar: OnceLock<ProgressBar>,
    quiet: bool,
    in_percent: bool,
    told: Option<Arc<Progress>>,
    done_bytes: std::sync::atomic::AtomicU64,
}

impl Watch {
    /// Watches `what` (a present participle: "reading"), which is done after `total_bytes`.
    pub(crate) fn new(what: &'static str, total_bytes: u64) -> Watch {
        Watch {
            what,
            total_bytes,
            started: Instant::now(),
            bar: OnceLock::new(),
            quiet: false,
            in_percent: false,
            told: None,
            done_bytes: 0.into(),
        }
    }

    /// Shows no progress: for output that itself is the progress.
    pub(crate) fn quiet(mut self) -> Watch {
        self.quiet = true;
        self
    }

    /// Tells somebody else about progress, and shows none.
    pub(crate) fn told_to(mut self, progress: Arc<Progress>) -> Watch {
        self.told = Some(progress);
        self.quiet()
    }

    /// Shows percent instead of bytes: for work whose bytes nobody knows beforehand.
    pub(crate) fn in_percent(mut self) -> Watch {
        self.in_percent = true;
        self
    }

    /// Notes that so many more bytes are done.
    ///
    /// # Errors
    /// If the user wants the work to stop.
    pub(crate) fn advance(&self, bytes: u64) -> Result<(), Interrupted> {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.reach(done)
    }

    /// Notes that so many bytes are done in all.
    ///
    /// # Errors
    /// If the user wants the work to stop.
    pub(crate) fn reach(&self, done: u64) -> Result<(), Interrupted> {
        check()?;
        if let Some(told) = &self.told {
            told.note(Some(Reached {
                what: self.what,
                done: done.min(self.total_bytes),
                of: self.total_bytes,
            }));
        }
        if !self.quiet && self.started.elapsed() > PATIENCE {
            self.bar
                .get_or_init(|| self.new_bar())
                .set_position(done.min(self.total_bytes));
        }
        Ok(())
    }

    fn new_bar(&self) -> ProgressBar {
        // Draws nothing if stderr is no terminal.
        let bar = ProgressBar::with_draw_target(
            Some(self.total_bytes),
            ProgressDrawTarget::stderr_with_hz(10),
        );
        let template = match self.in_percent {
            false => "{msg} {bar:30} {bytes}/{total_bytes}, {eta} left",
            true => "{msg} {bar:30} {percent} %, {eta} left",
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
        if let Some(told) = &self.told {
            told.note(None);
        }
    }
}
