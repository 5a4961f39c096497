//! The recorder of input begins and ends; whether its events reach a session takes a real Windows.
#![allow(clippy::print_stderr, reason = "what is left out is said")]

use record::input::{Recorder, RecorderError};

#[cfg(windows)]
#[test]
fn it_begins_and_ends_where_there_is_a_desktop() {
    match Recorder::start(false) {
        Ok(recorder) => recorder.stop(),
        Err(RecorderError::Refused(why)) => eprintln!("left out: {why}"),
        Err(RecorderError::NotWindows) => panic!("this is Windows"),
    }
}

#[cfg(not(windows))]
#[test]
fn elsewhere_it_says_that_there_is_none() {
    let refused = Recorder::start(true);
    assert!(matches!(refused, Err(RecorderError::NotWindows)));
}
