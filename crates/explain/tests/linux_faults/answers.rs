//! Late answers of programs that the tests cause on this machine.

use std::path::Path;

use explain::Severity;

use super::recorded::{
    BUSY, explain_all, first_about, is_about_linux, is_near, names, numbers, program, recorded,
    whole, with_all_events,
};

/// Program that answers requests at a socket. Its arguments are its name, the time in milliseconds for which it computes
/// before the answer with number 15, and the name of the program that it asks itself, if any.
const ANSWERS: &str = r#"#!/usr/bin/python3
import os, socket, sys, time
def computes(ns):
    end = time.monotonic_ns() + ns
    while time.monotonic_ns() < end: pass
name, slow_ms = sys.argv[1], int(sys.argv[2])
server = socket.socket(socket.AF_UNIX)
server.bind(name + ".socket")
server.listen()
other = None
if len(sys.argv) > 3:
    other = socket.socket(socket.AF_UNIX)
    other.connect(sys.argv[3] + ".socket")
client, _ = server.accept()
number = 0
while request := client.recv(1):
    if other: other.send(request); other.recv(1)
    number += 1
    computes(slow_ms * 1000000 if number == 15 else 1000000)
    client.send(b"x")
"#;

/// Program that asks another one 20 times. It prints the time of each answer in nanoseconds.
const ASKS: &str = r#"#!/usr/bin/python3
import socket, sys, time
other = socket.socket(socket.AF_UNIX)
other.connect(sys.argv[1] + ".socket")
for _ in range(20):
    time.sleep(0.01)
    start = time.monotonic_ns()
    other.send(b"x"); other.recv(1)
    print(time.monotonic_ns() - start, flush=True)
"#;

/// Returns the longest time of an answer that the asking program measured; `None` if one is missing.
fn longest_ns(folder: &Path) -> Option<i64> {
    let times = numbers(folder, "times.txt");
    (times.len() == 20).then(|| times.iter().map(|line| line[0]).max().unwrap())
}

#[test]
pub(super) fn a_program_that_computes_answers_late_over_two_others() {
    with_all_events(|folder| {
        for (name, text) in [("back", ANSWERS), ("front", ANSWERS), ("client", ASKS)] {
            program(folder.path(), name, text);
        }
        let script = format!(
            "{BUSY}; nice -n -20 ./back back 300 & sleep 0.3; nice -n -20 ./front front 1 back & sleep 0.3; \
             nice -n -20 ./client front > times.txt; kill $B"
        );
        let recording = recorded(folder.path(), &script);
        let Some(recording) = whole(recording, || longest_ns(folder.path()).is_some()) else {
            return;
        };
        let explanation = explain_all(&recording);
        is_about_linux(&explanation);
        let first = first_about(&explanation, "client");
        assert_eq!(first.theory, "late-answers", "{}", first.sentence);
        assert_eq!(first.severity, Severity::Warning, "{}", first.sentence);
        assert!(names(first, "back"), "{}", first.sentence);
        let sentence = first.sentence.to_string();
        let cause = sentence.split_once(". ").unwrap().1;
        assert!(
            cause.contains("of back (") && cause.contains("ran for"),
            "{sentence}"
        );
        is_near(first.delay_ns(), longest_ns(folder.path()).unwrap(), 1);
    });
}

/// Program that answers requests at a socket. Between them, it computes for half a second, once.
const LOOPS: &str = r#"#!/usr/bin/python3
import select, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1] + ".socket")
server.listen()
client, _ = server.accept()
number = 0
while True:
    if number == 10:
        number += 1
        end = time.monotonic_ns() + 500000000
        while time.monotonic_ns() < end: pass
    if select.select([client], [], [], 0.001)[0]:
        request = client.recv(1)
        if not request: break
        number += 1
        client.send(b"x")
"#;

#[test]
pub(super) fn a_program_computes_instead_of_answering() {
    with_all_events(|folder| {
        program(folder.path(), "server", LOOPS);
        program(folder.path(), "client", ASKS);
        let script = format!(
            "{BUSY}; nice -n -20 ./server server & sleep 0.3; nice -n -20 ./client server > times.txt; kill $B"
        );
        let recording = recorded(folder.path(), &script);
        let Some(recording) = whole(recording, || longest_ns(folder.path()).is_some()) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "client");
        assert_eq!(first.theory, "late-answers", "{}", first.sentence);
        assert_eq!(first.severity, Severity::Warning, "{}", first.sentence);
        let sentence = first.sentence.to_string();
        let cause = sentence.split_once(". ").unwrap().1;
        assert!(
            cause.contains("of server (") && cause.contains("ran for"),
            "{sentence}"
        );
        is_near(first.delay_ns(), longest_ns(folder.path()).unwrap(), 1);
    });
}
