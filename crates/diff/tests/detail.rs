//! Changes of parts of a program: the code that waits, and the CPU time that limits the work.

use crate::recorded;

use diff::{Conclusion, Diff, Kind, ReadOptions, Recording, Work};
use recorded::{diff, find, read};
use simulated::Simulated;

fn simulated(text: &str) -> Simulated {
    Simulated::of_text("detail", text, &[])
}

/// Records a program with one thread that waits in two modules. `slow` is the length of the waits in one module.
fn with_waits(slow: &str) -> Recording {
    let text = format!(
        r#"
        extends = "healthy"
        title = "A program that waits in two modules"
        duration = "20s"
        [[add.process]]
        name = "load.exe"
        [[add.process.thread]]
        name = "load"
        in = ["load.exe!main", "kernel32.dll!BaseThreadInitThunk", "ntdll.dll!RtlUserThreadStart"]
        program = [ {{ resolution = "0.5ms" }}, {{ forever = [
            {{ sleep = "{slow}", in = ["ntdll.dll!NtDelayExecution", "KernelBase.dll!SleepEx", "slow.dll!Retry"] }},
            {{ run = "50us" }},
            {{ sleep = "exp(20ms)", in = ["ntdll.dll!NtDelayExecution", "KernelBase.dll!SleepEx", "fast.dll!Pace"] }},
            {{ run = "50us" }},
        ] }} ]
        "#
    );
    read(&simulated(&text), &ReadOptions::default())
}

#[test]
fn the_code_that_waits_longer_is_named() {
    let diff = diff(&with_waits("exp(20ms)"), &with_waits("exp(60ms)"));
    let slow = find(
        &diff.per_second,
        Kind::WaitCode,
        "load.exe: DelayExecution in slow.dll",
    );
    // In each round, the thread waits once in each module. On average, a round takes 40 ms before and 80 ms after
    // the change. Waits in slow.dll take half of the time before, and three quarters of the time after the change.
    let share = |of: diff::Sum| of.ns / 1e9;
    assert!((share(slow.before) - 0.5).abs() < 0.05, "{slow:?}");
    assert!((share(slow.after) - 0.75).abs() < 0.05, "{slow:?}");
    let ratio = slow.after.mean_ns().unwrap() / slow.before.mean_ns().unwrap();
    assert!((2.5..3.5).contains(&ratio), "{slow:?}");
    assert_eq!(slow.conclusion, Conclusion::Differs);
    let fast = find(
        &diff.per_second,
        Kind::WaitCode,
        "load.exe: DelayExecution in fast.dll",
    );
    let both = find(&diff.per_second, Kind::Wait, "load.exe: DelayExecution");
    assert!((slow.after.ns + fast.after.ns - both.after.ns).abs() < 1.0);
    let ratio = fast.after.mean_ns().unwrap() / fast.before.mean_ns().unwrap();
    assert!((0.8..1.2).contains(&ratio), "{fast:?}");
}

/// Records a machine whose threads send packets as fast as they can. Each packet takes the CPU time `run`. Another
/// program has `scan` threads that always run.
fn sending(run: &str, scan: u32, cpus: u32) -> Recording {
    let text = format!(
        r#"
        title = "Threads that send packets as fast as they can"
        duration = "10s"
        [machine]
        processors = {cpus}
        [[nic]]
        name = "ethernet"
        isr = {{ in = ["e1d68x64.sys!Isr"], cost = "2us" }}
        [[nic.layer]]
        name = "driver"
        in = ["e1d68x64.sys!Dpc"]
        per_dpc = "5us"
        [[flow]]
        name = "upload"
        nic = "ethernet"
        process = "load.exe"
        [[process]]
        name = "load.exe"
        [[process.thread]]
        name = "load"
        count = 8
        program = [ {{ forever = [ {{ run = "{run}" }}, {{ send = "upload" }} ] }} ]
        [[process]]
        name = "scan.exe"
        [[process.thread]]
        name = "scan"
        count = {scan}
        program = [ {{ forever = [ {{ run = "5ms" }} ] }} ]
        "#
    );
    let read_options = ReadOptions {
        work: Some(Work::NetworkKib),
        ..ReadOptions::default()
    };
    read(&simulated(&text), &read_options)
}

fn per_kib(before: &Recording, after: &Recording) -> Diff {
    let sides = [before, after].map(std::slice::from_ref);
    diff::diff(sides[0], sides[1], Some(&Work::NetworkKib))
}

#[test]
fn a_program_that_takes_cpu_time_limits_the_work_of_others() {
    let diff = per_kib(
        &sending("lognormal(1ms, 0.2)", 1, 4),
        &sending("lognormal(1ms, 0.2)", 4, 4),
    );
    let first = &diff.findings[0];
    assert!(
        first
            .sentence
            .contains("CPU time limited it after the change: 100.0 % of all CPUs"),
        "{first:?}"
    );
    // Before the change, the eight threads of load.exe share four CPUs with one thread of scan.exe; after the change,
    // with four threads of scan.exe. The cost of the packets in load.exe is the same.
    assert!(
        first.why[0].contains("100 % of this is in scan.exe"),
        "{first:?}"
    );
    let network = diff.per_work.as_ref().unwrap();
    let rate = network.after / network.before;
    assert!(
        (rate / ((8.0 / 12.0) / (8.0 / 9.0)) - 1.0).abs() < 0.05,
        "{rate}"
    );
}

/// Checks that no CPU limits the work if its cost doubles on a machine with idle CPUs.
#[test]
fn idle_cpus_do_not_limit_the_work() {
    let of = |run: &str| sending(run, 1, 16);
    let diff = per_kib(&of("lognormal(1ms, 0.2)"), &of("lognormal(2ms, 0.2)"));
    let network = diff.per_work.as_ref().unwrap();
    assert!((network.after / network.before - 0.5).abs() < 0.03);
    let is_limit = |finding: &diff::Finding| finding.sentence.contains("limited");
    assert!(!diff.findings.iter().any(is_limit));
}

/// Records DPCs of two drivers. `scan` is the cost per packet of a filter that runs in the DPCs of one driver. `own` is
/// the cost per packet of the other driver's code.
fn two_drivers(scan: &str, own: &str) -> Recording {
    let nic = |name: &str, driver: &str, layers: &str| {
        format!(
            r#"
            [[nic]]
            name = "{name}"
            isr = {{ in = ["{driver}!Isr"], cost = "2us" }}
            [[nic.layer]]
            name = "driver"
            in = ["{driver}!Dpc"]
            {layers}
            [[flow]]
            name = "of-{name}"
            nic = "{name}"
            process = "load.exe"
            every = "exp(1ms)"
            "#
        )
    };
    let text = format!(
        r#"
        title = "Two drivers"
        duration = "15s"
        [machine]
        processors = 4
        {}
        {}
        [[process]]
        name = "load.exe"
        [[process.thread]]
        name = "load"
        program = [ {{ forever = [ {{ sleep = "1ms" }}, {{ run = "50us" }} ] }} ]
        "#,
        nic(
            "scanned",
            "first.sys",
            &format!(
                "per_dpc = \"5us\"\n[[nic.layer]]\nname = \"filter\"\nin = [\"filter.sys!Scan\"]\nper_packet = \"{scan}\""
            )
        ),
        nic("plain", "second.sys", &format!("per_packet = \"{own}\"")),
    );
    read(&simulated(&text), &ReadOptions::default())
}

/// Checks that code is named as the cause only for the DPCs in which it ran, although both drivers changed.
#[test]
fn code_is_the_cause_of_the_dpcs_in_which_it_ran() {
    let diff = diff(&two_drivers("50us", "20us"), &two_drivers("250us", "60us"));
    let why = |driver: &str| {
        let mut all = diff.findings.iter();
        let found = all.find(|it| it.sentence.starts_with(&format!("{driver} in DPCs")));
        let found = found.unwrap_or_else(|| panic!("{driver}: {:#?}", diff.findings));
        wording::Sentence::joined(&found.why)
    };
    assert!(
        why("first.sys").contains("code of filter.sys"),
        "{}",
        why("first.sys")
    );
    assert!(
        !why("second.sys").contains("filter.sys"),
        "{}",
        why("second.sys")
    );
}

/// Records a USB driver whose load never changes, and a network adapter with a packet every `every` on average.
fn usb_and_network(every: &str, seed: u32) -> Recording {
    let text = format!(
        r#"
        extends = "usb-wdf01000"
        title = "A USB driver and some network traffic"
        duration = "15s"
        seed = {seed}
        [[nic]]
        name = "ethernet"
        isr = {{ in = ["e1d68x64.sys!Isr"], cost = "2us" }}
        [[nic.layer]]
        name = "driver"
        in = ["e1d68x64.sys!Dpc"]
        per_dpc = "5us"
        [[flow]]
        name = "web"
        nic = "ethernet"
        process = "game.exe"
        bytes = "1200"
        every = "exp({every})"
        "#
    );
    read(&simulated(&text), &ReadOptions::default())
}

#[test]
fn time_that_does_not_depend_on_the_traffic_is_no_cost_of_it() {
    let of = |every: &str, seeds: [u32; 3]| seeds.map(|seed| usb_and_network(every, seed));
    let (slow, fast) = (of("25ms", [1, 2, 3]), of("12ms", [4, 5, 6]));
    for (before, after) in [
        (&slow[..], &fast[..]),
        (&fast, &slow),
        (&slow[..1], &fast[..1]),
    ] {
        let diff = diff::diff(before, after, None);
        let work = diff.per_work.as_ref().unwrap();
        assert!(work.differs(), "{} {}", work.before, work.after);
        let usb = |changes: &[diff::Change]| find(changes, Kind::Dpc, "Wdf01000.sys").conclusion;
        assert_eq!(usb(&diff.per_second), Conclusion::TooSmall);
        // The network adapter's DPCs follow the traffic. The USB driver's DPCs do not.
        find(&work.changes, Kind::Dpc, "e1d68x64.sys");
        let of_usb = |it: &&diff::Change| ["Wdf01000.sys", "USBXHCI.SYS"].contains(&&*it.name);
        let divided = work.changes.iter().find(of_usb);
        assert_eq!(divided.map(|it| &*it.name), None);
        let about_usb = |it: &&diff::Finding| it.sentence.starts_with("Wdf01000.sys");
        assert_eq!(
            diff.findings.iter().find(about_usb).map(|it| &*it.sentence),
            None
        );
    }
}

/// Records a device with the driver `name`. The device interrupts CPU `cpu` once in each time `every`.
fn with_device(name: &str, every: &str, cpu: u16) -> Recording {
    let text = format!(
        r#"
        extends = "healthy"
        title = "A desktop with a device"
        duration = "12s"
        [[add.device]]
        name = "device"
        every = "{every}"
        cpus = [{cpu}]
        isr = {{ in = ["{name}!Isr"], cost = "uniform(4us, 9us)" }}
        dpc = {{ in = ["{name}!Dpc"], cost = "uniform(450us, 500us)" }}
        "#
    );
    read(&simulated(&text), &ReadOptions::default())
}

#[test]
fn a_driver_replaces_one_that_was_called_as_often() {
    let gone = with_device("gone.sys", "2ms", 1);
    for (every, is_replaced) in [("2ms", true), ("5ms", false)] {
        let diff = diff(&gone, &with_device("fresh.sys", every, 7));
        // The finding is about one of both, and says that the other one replaces it.
        let of_both = diff.findings.iter().filter(|it| {
            let is_of = |name: &str| it.sentence.starts_with(&format!("{name} in DPCs"));
            is_of("gone.sys") || is_of("fresh.sys")
        });
        let of_both: Vec<_> = of_both.collect();
        let why = wording::Sentence::joined(&of_both[0].why);
        let says = why.contains("In return, fresh.sys") || why.contains("In return, gone.sys");
        assert_eq!(
            (says, of_both.len()),
            (is_replaced, if is_replaced { 1 } else { 2 }),
            "{every}: {why}"
        );
        // All DPCs and ISRs are called by ntoskrnl.exe, so ntoskrnl.exe does not explain a change.
        for finding in &diff.findings {
            let why = wording::Sentence::joined(&finding.why);
            assert!(!why.contains("is below ntoskrnl.exe:"), "{every}: {why}");
        }
    }
}

/// Records a driver whose DPCs run a filter, and a program that runs a library. `name` is the name of both without its
/// extension, `cost` the cost per packet of the filter and per round of the library.
fn with_code(name: &str, cost: &str) -> [Recording; 2] {
    let driver = format!(
        r#"
        title = "A filter in the DPCs of a driver"
        duration = "12s"
        [machine]
        processors = 4
        [[nic]]
        name = "ethernet"
        isr = {{ in = ["first.sys!Isr"], cost = "2us" }}
        [[nic.layer]]
        name = "driver"
        in = ["first.sys!Dpc"]
        per_dpc = "5us"
        [[nic.layer]]
        name = "filter"
        in = ["{name}.sys!Scan"]
        per_packet = "{cost}"
        [[flow]]
        name = "load"
        nic = "ethernet"
        process = "load.exe"
        every = "exp(1ms)"
        [[process]]
        name = "load.exe"
        [[process.thread]]
        name = "load"
        program = [ {{ forever = [ {{ sleep = "1ms" }}, {{ run = "50us" }} ] }} ]
        "#
    );
    let program = format!(
        r#"
        extends = "healthy"
        title = "A program that runs a library"
        duration = "12s"
        [[add.process]]
        name = "load.exe"
        [[add.process.thread]]
        name = "load"
        in = ["load.exe!main", "kernel32.dll!BaseThreadInitThunk", "ntdll.dll!RtlUserThreadStart"]
        program = [ {{ resolution = "0.5ms" }}, {{ forever = [
            {{ sleep = "exp(2ms)" }},
            {{ run = "{cost}", in = ["{name}.dll!Work"] }},
        ] }} ]
        "#
    );
    [driver, program].map(|text| read(&simulated(&text), &ReadOptions::default()))
}

/// Exchanges code for other code that takes longer. Sampled code shows only how much is gone and how much is new. The
/// DPCs and the program have the net change.
#[test]
fn the_net_change_of_an_exchange_comes_first() {
    let before = with_code("gone", "lognormal(200us, 0.1)");
    let after = with_code("fresh", "lognormal(300us, 0.1)");
    let code = [Kind::InterruptCode, Kind::ThreadCode];
    let exact = [(Kind::Dpc, "first.sys"), (Kind::Program, "load.exe")];
    for (((before, after), code), (kind, name)) in before.iter().zip(&after).zip(code).zip(exact) {
        let diff = diff(before, after);
        let suffix = if code == Kind::InterruptCode {
            "sys"
        } else {
            "dll"
        };
        let fresh = find(&diff.per_second, code, &format!("fresh.{suffix}"));
        let net = find(&diff.per_second, kind, name);
        assert!(fresh.ns() > 2.0 * net.ns() && net.ns() > 0.0, "{net:?}");
        let first = &diff.findings[0];
        assert!(first.sentence.starts_with(name), "{}", first.sentence);
        assert!(!first.sentence.contains("within"), "{}", first.sentence);
    }
}

/// Replaces one driver by another one. The answer begins with the DPCs, and then has the net change.
#[test]
fn the_answer_has_the_net_change_of_a_replaced_driver() {
    let of = |scenario| recorded::with_seed(scenario, 1);
    let answer = diff(&of("usb-wdf01000"), &of("usb-amdxhc31")).answer();
    assert!(
        answer.starts_with("Wdf01000.sys in DPCs: ")
            && answer.contains("In return, amdxhc31.sys (6.9 ms) is new: together 10.9 ms less"),
        "{answer}"
    );
}
