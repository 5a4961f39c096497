//! All tests of the public interface in one program: linking many programs would take minutes.

mod interrupts;
mod io_limit;
mod late_answers;
mod linux_faults;
mod linux_waits;
mod simulations;
mod spinning;
mod stolen_time;
mod texts;
mod thresholds;
