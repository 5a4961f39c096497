//! Batch files, run by Wine's command interpreter with programs that stand in for the recorders: what
//! these are called with, in what order, and what is left behind. Elsewhere they cannot be run.
#![allow(clippy::print_stderr, reason = "what is left out is said")]

#[cfg(not(windows))]
#[test]
fn scripts_run_where_there_is_a_command_interpreter() {
    eprintln!("left out: batch files are run on Windows and under Wine only");
}

#[cfg(windows)]
mod on_windows {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use record::{Investigation, Kit, Machine};
    use tempfile::TempDir;

    /// A kit in a folder whose name has a space, beside stand-ins for what it runs.
    struct Bench {
        folder: TempDir,
        kit: Kit,
    }

    impl Bench {
        fn new(investigation: Investigation, machine: Machine) -> Bench {
            let folder = tempfile::Builder::new().prefix("a kit ").tempdir().unwrap();
            let kit = Kit::new(investigation, machine);
            for file in kit.files() {
                fs::write(folder.path().join(file.name), file.text).unwrap();
            }
            let this = std::env::current_exe().unwrap();
            let built = this.parent().and_then(Path::parent).unwrap();
            let stand_in = built.join("examples").join("stand-in.exe");
            for program in ["wpr", "xperf", "timeout", "reg", "netsh"] {
                let copy = folder.path().join(format!("{program}.exe"));
                fs::copy(&stand_in, copy).unwrap();
            }
            Bench { folder, kit }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Runs a script of the kit; gives what the stand-ins were called with. The interpreter looks
        /// for programs in the present folder first, which is the kit's.
        fn run(&self, script: &str, arguments: &[&str], fails: &str) -> (Output, Vec<String>) {
            let log = self.path("log");
            let _ = fs::remove_file(&log);
            let output = Command::new("cmd.exe")
                .args(["/d", "/c", script])
                .args(arguments)
                .current_dir(self.folder.path())
                .env("STAND_IN_LOG", &log)
                .env("STAND_IN_FAILS", fails)
                .output()
                .unwrap();
            let log = fs::read_to_string(&log).unwrap_or_default();
            (output, log.lines().map(str::to_owned).collect())
        }

        /// A path of the kit's folder as scripts see it, in brackets.
        fn bracketed(&self, name: &str) -> String {
            format!("[{}]", self.path(name).display())
        }
    }

    /// The programs and their first arguments.
    fn verbs(log: &[String]) -> Vec<String> {
        let words = log.iter().map(|line| line.split(' ').take(2));
        words
            .map(|words| words.collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_timed_recording_starts_waits_stops_and_keeps_settings() {
        let bench = Bench::new(Investigation::Dpc, Machine::ORDINARY);
        let (output, log) = bench.run("record.cmd", &["3", "after resume"], "");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            verbs(&log)[..3],
            ["wpr [-start]", "timeout [/t]", "wpr [-stop]"]
        );
        let profile = bench.bracketed("laglab-dpc.wprp!laglab-dpc");
        let temporary = bench.bracketed("temp");
        assert_eq!(
            log[0],
            format!("wpr [-start] {profile} [-filemode] [-recordtempto] {temporary}")
        );
        assert_eq!(log[1], "timeout [/t] [3] [/nobreak]");
        let trace = bench.bracketed("laglab-dpc-1.etl");
        assert_eq!(log[2], format!("wpr [-stop] {trace} [after resume]"));
        assert_eq!(log.len(), 3 + record::SETTINGS.len());
        let notes = fs::read_to_string(bench.path("laglab-dpc-1.etl.notes.txt")).unwrap();
        assert!(notes.contains("after resume"), "{notes}");
        // The next recording takes the next number.
        let (_, log) = bench.run("record.cmd", &["stop"], "");
        assert!(log[0].contains("laglab-dpc-2.etl"), "{log:?}");
    }

    #[test]
    fn a_start_that_fails_is_not_waited_for() {
        let bench = Bench::new(Investigation::Dpc, Machine::ORDINARY);
        let (output, log) = bench.run("record.cmd", &["3"], "-start");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(verbs(&log), ["wpr [-start]"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("elevated"));
        assert!(!bench.path(r"temp\wpr-runs").exists());
    }

    /// Somebody else's recording is left alone: only what this file started, and nobody stopped, is
    /// ended by the next.
    #[test]
    fn only_its_own_recording_is_ended_by_a_new_one() {
        let bench = Bench::new(Investigation::Dpc, Machine::ORDINARY);
        bench.run("record.cmd", &["start"], "");
        assert!(bench.path(r"temp\wpr-runs").exists());
        let (_, log) = bench.run("record.cmd", &["2"], "");
        assert_eq!(
            verbs(&log)[..4],
            [
                "wpr [-cancel]",
                "wpr [-start]",
                "timeout [/t]",
                "wpr [-stop]"
            ]
        );
        assert!(!bench.path(r"temp\wpr-runs").exists());
        let (_, log) = bench.run("record.cmd", &["02"], "");
        assert_eq!(verbs(&log)[0], "wpr [-start]");
        assert_eq!(log[1], "timeout [/t] [2] [/nobreak]");
    }

    #[test]
    fn where_timeout_does_not_wait_ping_does() {
        let bench = Bench::new(Investigation::Cpu, Machine::ORDINARY);
        fs::copy(bench.path("timeout.exe"), bench.path("ping.exe")).unwrap();
        let (_, log) = bench.run("record.cmd", &["3"], "/t");
        assert_eq!(log[2], "ping [-n] [4] [127.0.0.1]");
        assert!(log[3].starts_with("wpr [-stop]"), "{log:?}");
    }

    #[test]
    fn single_steps_do_what_they_say() {
        let bench = Bench::new(Investigation::Rank, Machine::ORDINARY);
        let profile = bench.bracketed("laglab-rank.wprp!laglab-rank");
        let lines = |arguments: &[&str]| {
            let (output, log) = bench.run("record.cmd", arguments, "");
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            log
        };
        assert_eq!(lines(&["circular"]), [format!("wpr [-start] {profile}")]);
        assert_eq!(lines(&["mark", "now"]), ["wpr [-marker] [now]"]);
        let saved = lines(&["save", "frozen"]);
        assert!(saved[0].starts_with("wpr [-stop]") && saved[0].ends_with("[frozen]"));
        // What surrounds the trace is kept before it goes on, which may fail.
        assert_eq!(saved.len(), 2 + record::SETTINGS.len());
        assert_eq!(saved.last().unwrap(), &format!("wpr [-start] {profile}"));
        assert_eq!(lines(&["cancel"]), ["wpr [-cancel]"]);
        let boot = lines(&["boot"]);
        assert!(boot[0].starts_with(&format!(
            "wpr [-boottrace] [-addboot] {profile} [-filemode]"
        )));
        assert!(lines(&["boot-stop"])[0].starts_with("wpr [-boottrace] [-stopboot]"));
        assert_eq!(lines(&["boot-cancel"]), ["wpr [-boottrace] [-cancelboot]"]);
        let (output, log) = bench.run("record.cmd", &["2x"], "");
        assert_eq!((output.status.code(), log.len()), (Some(2), 0));
    }

    #[test]
    fn packets_are_captured_beside_the_rest() {
        let bench = Bench::new(Investigation::Dscp, Machine::ORDINARY);
        let (output, log) = bench.run("record.cmd", &["1"], "");
        assert!(output.status.success(), "{output:?}");
        let verbs = verbs(&log);
        let of_netsh = verbs.iter().filter(|verb| verb.starts_with("netsh"));
        assert_eq!(of_netsh.count(), 2, "{log:?}");
        assert!(log[0].contains("[capture=yes]"), "{log:?}");
        // What netsh was not started for by this kit, it does not stop.
        let (_, log) = bench.run("record.cmd", &["1"], "trace");
        let of_netsh = log.iter().filter(|line| line.starts_with("netsh"));
        assert_eq!(of_netsh.count(), 1, "{log:?}");
    }

    #[test]
    fn a_start_that_fails_leaves_nothing_running() {
        let bench = Bench::new(Investigation::Dscp, Machine::ORDINARY);
        let (output, log) = bench.run("record.cmd", &["start"], "-start");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            verbs(&log),
            ["netsh [trace]", "wpr [-start]", "netsh [trace]"]
        );
        assert_eq!(log[2], "netsh [trace] [stop]");
        let bench = Bench::new(Investigation::Timer, Machine::ORDINARY);
        // The kernel's session starts, that of the providers does not.
        let (output, log) = bench.run("record-xperf.cmd", &["start"], "-start laglab");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(log.len(), 3, "{log:?}");
        assert_eq!(log[2], "xperf [-stop] [NT Kernel Logger]");
        // Where somebody else has the kernel's session, it is left to them.
        let (_, log) = bench.run("record-xperf.cmd", &["start"], "-start NT Kernel Logger");
        assert_eq!(log.len(), 1, "{log:?}");
    }

    #[test]
    fn xperf_is_started_and_merged() {
        let bench = Bench::new(Investigation::Timer, Machine::ORDINARY);
        let (output, log) = bench.run("record-xperf.cmd", &["1"], "");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            verbs(&log)[..5],
            [
                "xperf [-start]",
                "xperf [-start]",
                "timeout [/t]",
                "xperf [-stop]",
                "xperf [-merge]"
            ]
        );
        assert!(log[0].starts_with("xperf [-start] [NT Kernel Logger] [-on] [PROC_THREAD+"));
        assert!(
            log[4].contains(&bench.bracketed(r"temp\kernel.etl")),
            "{log:?}"
        );
        assert!(log[4].ends_with("[-compress]"));
        assert_eq!(bench.kit.investigation, Investigation::Timer);
        // Where traces cannot be compressed they are merged as they are.
        let (_, log) = bench.run("record-xperf.cmd", &["stop"], "-merge");
        assert!(log[1].ends_with("[-compress]"), "{log:?}");
        assert!(log[2].starts_with("xperf [-merge]"), "{log:?}");
        assert!(!log[2].contains("compress"), "{log:?}");
    }
}
