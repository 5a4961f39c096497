//! Tests of findings about threads of Linux that wait in a loop. The forged recordings are texts of samples, as
//! `perf script` prints them.

use std::fmt::Write;
use std::path::PathBuf;

use explain::{Explanation, Finding, Scope, Severity, Subject};
use session::{SymbolOptions, Symbolication};
use tables::{Cache, Identities, Options};

use crate::texts::{is_about_linux, text};

const YIELD: &str = "\tffffffff813cba41 do_sched_yield+0x71 ([kernel.kallsyms])\n\
    \tffffffff813d995a __x64_sys_sched_yield+0xa ([kernel.kallsyms])\n\
    \tffffffff8225aa01 do_syscall_64+0x71 ([kernel.kallsyms])\n\
    \t           ee017 __sched_yield+0x7 (/usr/lib/libc.so.6)\n";
const READ: &str = "\tffffffff816e0a41 vfs_read+0x71 ([kernel.kallsyms])\n\
    \tffffffff8225aa01 do_syscall_64+0x71 ([kernel.kallsyms])\n";

/// Returns the text of samples of a thread, one each millisecond, as long as there are stacks.
fn samples<'s>(stacks: impl Iterator<Item = &'s str>) -> String {
    let mut text = String::new();
    for (ms, stack) in stacks.enumerate() {
        writeln!(
            text,
            "spinner   100/100   [000]  {}.{:03}000:    1000000 cpu-clock: \n{stack}",
            10 + ms / 1000,
            ms % 1000
        )
        .unwrap();
    }
    text
}

fn explained(file: PathBuf) -> Explanation {
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let identities = Identities::read(&store, Options::default()).unwrap();
    let symbols =
        Symbolication::new(&SymbolOptions::default(), &store, &identities.images).unwrap();
    let scope = Scope::default();
    let explanation = explain::explain(&store, scope, Some(&symbols), Options::default()).unwrap();
    is_about_linux(&explanation);
    explanation
}

fn explained_text(text: &str) -> Explanation {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.txt");
    std::fs::write(&file, text).unwrap();
    explained(file)
}

fn spins(explanation: &Explanation) -> Vec<&Finding> {
    let findings = explanation.findings.iter();
    findings
        .filter(|finding| finding.theory == "busy-waiting")
        .collect()
}

fn judgement(explanation: &Explanation) -> explain::Judgement {
    let mut verdicts = explanation.theories.iter();
    let verdict = verdicts.find(|verdict| verdict.theory == "busy-waiting");
    verdict.unwrap().judgement
}

#[test]
fn a_thread_that_yields_in_a_loop_spins() {
    let stacks = (0..1_000).map(|at| if at % 4 == 0 { READ } else { YIELD });
    let explanation = explained_text(&samples(stacks));
    let found = spins(&explanation);
    assert_eq!(found.len(), 1, "{:#?}", explanation.theories);
    assert_eq!(found[0].severity, Severity::Warning);
    let sentence = found[0].sentence.to_string();
    assert!(
        sentence.starts_with("Thread 100 of ")
            && sentence
                .contains("spent 75.0 % of its CPU time in sched_yield: 750.0 ms (750 samples)"),
        "{sentence}"
    );
    assert!(text(found[0]).contains("condition variable"));
}

#[test]
fn a_thread_that_yields_now_and_then_does_not_spin() {
    let stacks = (0..1_000).map(|at| if at % 4 == 0 { YIELD } else { READ });
    let explanation = explained_text(&samples(stacks));
    assert_eq!(spins(&explanation), Vec::<&Finding>::new());
    assert_eq!(judgement(&explanation), explain::Judgement::Against);
}

#[test]
fn samples_without_stacks_cannot_show_that_a_thread_spins() {
    let explanation = explained_text(&samples((0..1_000).map(|_| "")));
    assert_eq!(judgement(&explanation), explain::Judgement::NotRecorded);
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_yields_until_time_passes_is_found() {
    const SOURCE: &str = "#include <sched.h>\n#include <time.h>\n\
        int main(void) {\n  struct timespec now, end; clock_gettime(CLOCK_MONOTONIC, &end); end.tv_sec += 2;\n\
        do { sched_yield(); clock_gettime(CLOCK_MONOTONIC, &now); } while (now.tv_sec < end.tv_sec || \
        now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec);\n}\n";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("yielder.c");
    std::fs::write(&source, SOURCE).unwrap();
    let mut cc = std::process::Command::new("cc");
    let cc = cc.args(["-O1", "-o"]).arg(folder.path().join("yielder"));
    assert!(cc.arg(&source).status().unwrap().success());
    let options = ["-g", "-F", "999"];
    let script = "./yielder; cat /proc/kallsyms > perf.data.proc";
    let recorded = testdata::perf::record(folder.path(), "cpu-clock", &options, script);
    let Some(file) = recorded else { return };
    let explanation = explained(file);
    let named = spins(&explanation).into_iter().any(|finding| {
        let mut subjects = finding.subjects.iter();
        subjects
            .any(|it| matches!(it, Subject::Process { name: Some(name), .. } if name == "yielder"))
    });
    assert!(named, "{:#?}", spins(&explanation));
}
