//! Tests that the input recorder starts and stops. Whether its events are logged in a session can only be
//! tested on real Windows.

use record::input::{Recorder, RecorderError};

#[cfg(windows)]
#[test]
fn recorder_starts_and_stops_on_a_desktop() {
    match Recorder::start(false) {
        Ok(recorder) => recorder.stop(),
        Err(error @ RecorderError::Refused { .. }) => testdata::skip(&error.to_string()),
        Err(RecorderError::NotWindows) => panic!("this is Windows"),
    }
}

#[cfg(not(windows))]
#[test]
fn recorder_is_refused_on_other_systems() {
    let refused = Recorder::start(true);
    assert!(matches!(refused, Err(RecorderError::NotWindows)));
}
