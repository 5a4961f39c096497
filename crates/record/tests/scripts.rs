//! Tests that run batch files with fake recorders. The files run in the command interpreter of Windows or of
//! Wine. The tests check the commands that the files run, the order of the commands, and the files that they
//! leave.
#![cfg(windows)]

mod on_windows {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use record::{Investigation, Kit, Machine};
    use tempfile::TempDir;

    /// A kit in a folder that also contains the fake recorders. The name of the folder has a space.
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

        /// Runs a script and returns its output and the logged commands. The interpreter first searches for
        /// programs in the current folder, which is the folder of the kit.
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

        /// Returns the path of a file in the kit's folder, in brackets and as scripts write it.
        fn bracketed(&self, name: &str) -> String {
            format!("[{}]", self.path(name).display())
        }
    }

    /// Returns the program and the first argument of each logged command.
    fn verbs(log: &[String]) -> Vec<String> {
        let words = log.iter().map(|line| line.split(' ').take(2));
        words
            .map(|words| words.collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_timed_recording_starts_waits_stops_and_saves_settings() {
        let bench = Bench::new(Investigation::Dpc, Machine::TYPICAL);
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
        // The file name of the next recording contains the next number.
        let (_, log) = bench.run("record.cmd", &["stop"], "");
        assert!(log[0].contains("laglab-dpc-2.etl"), "{log:?}");
    }

    #[test]
    fn a_failed_start_ends_the_script() {
        let bench = Bench::new(Investigation::Dpc, Machine::TYPICAL);
        let (output, log) = bench.run("record.cmd", &["3"], "-start");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(verbs(&log), ["wpr [-start]"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("elevated"));
        assert!(!bench.path(r"temp\wpr-runs").exists());
    }

    /// A new recording ends only a recording that this kit started and that was not stopped. Recordings of
    /// other programs continue.
    #[test]
    fn a_new_recording_ends_only_its_own_predecessor() {
        let bench = Bench::new(Investigation::Dpc, Machine::TYPICAL);
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
    fn ping_replaces_a_failing_timeout() {
        let bench = Bench::new(Investigation::Cpu, Machine::TYPICAL);
        fs::copy(bench.path("timeout.exe"), bench.path("ping.exe")).unwrap();
        let (_, log) = bench.run("record.cmd", &["3"], "/t");
        assert_eq!(log[2], "ping [-n] [4] [127.0.0.1]");
        assert!(log[3].starts_with("wpr [-stop]"), "{log:?}");
    }

    #[test]
    fn single_steps_run_their_commands() {
        let bench = Bench::new(Investigation::Rank, Machine::TYPICAL);
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
        // Settings must be saved before recording starts again, because this start may fail.
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
    fn packets_are_captured_too() {
        let bench = Bench::new(Investigation::Dscp, Machine::TYPICAL);
        let (output, log) = bench.run("record.cmd", &["1"], "");
        assert!(output.status.success(), "{output:?}");
        let verbs = verbs(&log);
        let of_netsh = verbs.iter().filter(|verb| verb.starts_with("netsh"));
        assert_eq!(of_netsh.count(), 2, "{log:?}");
        assert!(log[0].contains("[capture=yes]"), "{log:?}");
        // The script stops the netsh capture only if this kit started it.
        let (_, log) = bench.run("record.cmd", &["1"], "trace");
        let of_netsh = log.iter().filter(|line| line.starts_with("netsh"));
        assert_eq!(of_netsh.count(), 1, "{log:?}");
    }

    #[test]
    fn a_failed_start_leaves_nothing_running() {
        let bench = Bench::new(Investigation::Dscp, Machine::TYPICAL);
        let (output, log) = bench.run("record.cmd", &["start"], "-start");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            verbs(&log),
            ["netsh [trace]", "wpr [-start]", "netsh [trace]"]
        );
        assert_eq!(log[2], "netsh [trace] [stop]");
        let bench = Bench::new(Investigation::Timer, Machine::TYPICAL);
        // In this case, the kernel session starts but the provider session fails.
        let (output, log) = bench.run("record-xperf.cmd", &["start"], "-start laglab");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(log.len(), 3, "{log:?}");
        assert_eq!(log[2], "xperf [-stop] [NT Kernel Logger]");
        // If another program has started the kernel session, the script does not stop it.
        let (_, log) = bench.run("record-xperf.cmd", &["start"], "-start NT Kernel Logger");
        assert_eq!(log.len(), 1, "{log:?}");
    }

    #[test]
    fn xperf_is_started_and_merged() {
        let bench = Bench::new(Investigation::Timer, Machine::TYPICAL);
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
        // If merging with compression fails, the script merges without compression.
        let (_, log) = bench.run("record-xperf.cmd", &["stop"], "-merge");
        assert!(log[1].ends_with("[-compress]"), "{log:?}");
        assert!(log[2].starts_with("xperf [-merge]"), "{log:?}");
        assert!(!log[2].contains("compress"), "{log:?}");
    }
}
