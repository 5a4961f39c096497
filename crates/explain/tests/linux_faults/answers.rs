//! Late answers of programs that the tests cause on this machine.

use std::path::Path;

use explain::Severity;

use super::recorded::{
    BUSY, explain_all, first_about, is_near, names, numbers, program, recorded, whole,
    with_all_events,
};

/// Start of a program whose sockets are files.
const FILES: &str = r#"#!/usr/bin/python3
import socket
FAMILY = socket.AF_UNIX
def place(name): return name + ".socket"
"#;

/// Start of a program whose sockets are ports of this machine.
const PORTS: &str = r#"#!/usr/bin/python3
import socket
FAMILY = socket.AF_INET
def place(name): return ("127.0.0.1", 47000 + len(name))
"#;

/// Program that answers requests at a socket. Its arguments are its name, the time in milliseconds for which it computes
/// before the answer with number 15, and the name of the program that it asks itself, if any.
const ANSWERS: &str = r#"
import os, socket, sys, time
def computes(ns):
    end = time.monotonic_ns() + ns
    while time.monotonic_ns() < end: pass
name, slow_ms = sys.argv[1], int(sys.argv[2])
server = socket.socket(FAMILY)
server.bind(place(name))
server.listen()
other = None
if len(sys.argv) > 3:
    other = socket.socket(FAMILY)
    other.connect(place(sys.argv[3]))
client, _ = server.accept()
number = 0
while request := client.recv(1):
    if other: other.send(request); other.recv(1)
    number += 1
    computes(slow_ms * 1000000 if number == 15 else 1000000)
    client.send(b"x")
"#;

/// Program that asks another one 20 times. It prints the time of each answer in nanoseconds.
const ASKS: &str = r#"
import socket, sys, time
other = socket.socket(FAMILY)
other.connect(place(sys.argv[1]))
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

/// Records a script in which the program `client` asks, and checks that the late answer is the first finding about it.
/// `computes` is the name of the program that computes.
fn check(folder: &Path, script: &str, computes: &str) {
    let recording = recorded(folder, script);
    let Some(recording) = whole(recording, || longest_ns(folder).is_some()) else {
        return;
    };
    let explanation = explain_all(&recording);
    let first = first_about(&explanation, "client");
    assert_eq!(first.theory, "late-answers", "{}", first.sentence);
    assert_eq!(first.severity, Severity::Warning, "{}", first.sentence);
    assert!(names(first, computes), "{}", first.sentence);
    let sentence = first.sentence.to_string();
    let cause = sentence.split_once(". ").unwrap().1;
    assert!(
        cause.contains(&format!("of {computes} (")) && cause.contains("ran for"),
        "{sentence}"
    );
    is_near(first.delay_ns(), longest_ns(folder).unwrap(), 1);
}

/// Causes a late answer over two programs and checks its explanation. `start` is the start of each program.
fn check_chain(start: &str) {
    with_all_events(|folder| {
        for (name, text) in [("back", ANSWERS), ("front", ANSWERS), ("client", ASKS)] {
            program(folder.path(), name, &[start, text].concat());
        }
        let script = format!(
            "{BUSY}; nice -n -20 ./back back 300 & sleep 0.3; nice -n -20 ./front front 1 back & sleep 0.3; \
             nice -n -20 ./client front > times.txt; kill $B"
        );
        check(folder.path(), &script, "back");
    });
}

#[test]
pub(super) fn a_program_that_computes_answers_late_over_two_others() {
    check_chain(FILES);
}

#[test]
pub(super) fn packets_to_this_machine_are_followed_to_the_program_that_computes() {
    check_chain(PORTS);
}

/// Program that answers requests at a socket. Between them, it computes for half a second, once.
const LOOPS: &str = r#"
import select, socket, sys, time
server = socket.socket(FAMILY)
server.bind(place(sys.argv[1]))
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
        program(folder.path(), "server", &[FILES, LOOPS].concat());
        program(folder.path(), "client", &[FILES, ASKS].concat());
        let script = format!(
            "{BUSY}; nice -n -20 ./server server & sleep 0.3; nice -n -20 ./client server > times.txt; kill $B"
        );
        check(folder.path(), &script, "server");
    });
}
