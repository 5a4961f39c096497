//! Tests of the rules of interrupts and DPCs, in small scenarios whose results can be computed by
//! hand.

use crate::read_back::run_text;
use crate::routines::Routine;

/// Returns the service routines and DPCs that a scenario runs on Windows 10.
fn routines(scenario: &str) -> Vec<Routine> {
    let text = format!("title = 'a rule'\nduration = '1s'\n{scenario}");
    run_text("rule", &text, None, &[]).assert_routines_agree()
}

fn routines_of<'r>(routines: &'r [Routine], module: &str, kind: &str) -> Vec<&'r Routine> {
    let wanted = |r: &&Routine| r.module == module && r.kind == kind;
    routines.iter().filter(wanted).collect()
}

const BUSY: &str = "
    [[process]]
    name = 'busy.exe'
    [[process.thread]]
    count = 2
    program = [ { forever = [ { run = '1s' } ] } ]
";

#[test]
fn an_interrupt_wakes_its_processor_first() {
    let found = routines(
        "[machine]
        processors = 1
        threads_per_core = 1
        c_states = [ { residency = '0ns', latency = '50us' } ]
        [[device]]
        name = 'card'
        every = '10ms'
        isr = { in = ['card.sys!Isr'], cost = '3us' }
        dpc = { in = ['card.sys!Dpc'], cost = '20us' }",
    );
    let isrs = routines_of(&found, "card.sys", "isr");
    assert_eq!(isrs.len(), 99);
    for (n, isr) in (1..).zip(&isrs) {
        assert_eq!(
            (isr.start, isr.end),
            (n * 10_000_000 + 50_000, n * 10_000_000 + 53_000)
        );
    }
    for (isr, dpc) in isrs.iter().zip(routines_of(&found, "card.sys", "dpc")) {
        assert_eq!((dpc.start, dpc.end), (isr.end, isr.end + 20_000));
    }
}

/// Checks that an interrupt of a higher level interrupts a routine of a lower level. The level of a device follows from
/// its vector. The level of the network adapter is below the level of the other device.
#[test]
fn a_higher_level_interrupts_a_lower_one() {
    let found = routines(
        "[machine]
        processors = 1
        threads_per_core = 1
        c_states = []
        [[nic]]
        name = 'slow'
        isr = { in = ['slow.sys!Isr'], cost = '1ms' }
        [[nic.layer]]
        in = ['slow.sys!Dpc']
        per_dpc = '300us'
        [[flow]]
        name = 'flow'
        nic = 'slow'
        every = '10ms'
        [[device]]
        name = 'card'
        from = '200us'
        every = '10ms'
        isr = { in = ['card.sys!Isr'], cost = '5us' }
        dpc = { in = ['card.sys!Dpc'], cost = '20us' }",
    );
    let slow = routines_of(&found, "slow.sys", "isr");
    assert!(!slow.is_empty());
    assert!(
        slow.iter()
            .all(|isr| (isr.exclusive, isr.fragments) == (1_000_000, 2))
    );
    assert!(slow.iter().all(|isr| isr.end - isr.start == 1_005_000));
    // A DPC waits until all service routines have ended. DPCs run in the order in which they were queued.
    for ((isr, card), slow) in (slow.iter().zip(routines_of(&found, "card.sys", "dpc")))
        .zip(routines_of(&found, "slow.sys", "dpc"))
    {
        assert_eq!((card.start, slow.start), (isr.end, card.end));
    }
}

/// Checks that a receive queue does not interrupt while the DPC of the adapter runs. The next DPC must handle
/// the packets that arrive in this time.
#[test]
fn a_queue_is_masked_while_its_dpc_runs() {
    let scenario = |coalesce: bool| {
        routines(&format!(
            "[machine]
            processors = 1
            threads_per_core = 1
            [[nic]]
            name = 'nic'
            coalesce = {coalesce}
            isr = {{ in = ['nic.sys!Isr'], cost = '2us' }}
            [[nic.layer]]
            in = ['nic.sys!Dpc']
            per_dpc = '100us'
            per_packet = '1us'
            [[flow]]
            name = 'flow'
            nic = 'nic'
            count = 5000
            from = '0s'
            to = '400ms'"
        ))
    };
    let alone = scenario(false);
    assert_eq!(routines_of(&alone, "nic.sys", "dpc").len(), 5_000);
    assert!(
        routines_of(&alone, "nic.sys", "dpc")
            .iter()
            .all(|dpc| dpc.fragments == 1)
    );
    let together = scenario(true);
    let dpcs = routines_of(&together, "nic.sys", "dpc");
    assert!((3_000..4_500).contains(&dpcs.len()), "{}", dpcs.len());
    let packets: i64 = dpcs
        .iter()
        .map(|dpc| (dpc.exclusive - 100_000) / 1_000)
        .sum();
    assert_eq!(packets, 5_000);
}

/// Checks a DPC of low importance on a busy processor. The DPC must wait for the next clock tick, or until
/// more than four DPCs are queued.
#[test]
fn low_importance_waits_for_the_clock() {
    let device = "
        [machine]
        processors = 1
        threads_per_core = 1
        [[device]]
        name = 'card'
        every = 'EVERY'
        importance = 'IMPORTANCE'
        isr = { in = ['card.sys!Isr'], cost = '2us' }
        dpc = { in = ['card.sys!Dpc'], cost = '10us' }";
    let waits = |importance: &str, every: &str| {
        let device = device.replace("IMPORTANCE", importance);
        let found = routines(&(device.replace("EVERY", every) + BUSY));
        let isrs = routines_of(&found, "card.sys", "isr");
        let dpcs = routines_of(&found, "card.sys", "dpc");
        // A DPC of low importance waits only if the processor has measured a high rate of DPC requests per tick. Until
        // then, it runs at once, so the first 50 DPCs are skipped.
        let late = isrs.iter().zip(dpcs).skip(50);
        late.map(|(isr, dpc)| (isr.end, dpc.start))
            .collect::<Vec<_>>()
    };
    assert!(
        waits("medium", "4ms")
            .iter()
            .all(|(queued, ran)| queued == ran)
    );
    let low = waits("low", "4ms");
    let mut waited = 0;
    for (queued, ran) in &low {
        let after_tick = ran % 15_625_000;
        assert!(ran == queued || after_tick < 100_000, "{queued} {ran}");
        waited += usize::from(ran != queued);
    }
    assert!(waited > 100, "{waited} of {}", low.len());
    // DPCs arrive every 1 ms. The fifth DPC in the queue starts them all, so the first one waits
    // for 4 ms at most.
    let often = waits("low", "1ms");
    let longest = often.iter().map(|(queued, ran)| ran - queued).max();
    assert!(
        (4_000_000..4_100_000).contains(&longest.expect("DPCs")),
        "{longest:?}"
    );
}

/// Checks a DPC that is queued on another processor. The DPC must wait for the clock interrupt of that
/// processor, unless its importance causes an inter-processor interrupt.
#[test]
fn importance_decides_when_another_processor_looks() {
    let device = "
        [machine]
        processors = 2
        threads_per_core = 1
        [scheduler]
        ipi_delay = '2us'
        [[device]]
        name = 'card'
        every = '20ms'
        importance = 'IMPORTANCE'
        target = 1
        isr = { in = ['card.sys!Isr'], cost = '2us' }
        dpc = { in = ['card.sys!Dpc'], cost = '10us' }";
    let waits = |importance: &str| {
        let found = routines(&(device.replace("IMPORTANCE", importance) + BUSY));
        let dpcs = routines_of(&found, "card.sys", "dpc");
        assert!(dpcs.iter().all(|dpc| dpc.cpu == 1));
        let isrs = routines_of(&found, "card.sys", "isr");
        assert_eq!(dpcs.len(), isrs.len());
        (isrs.iter().zip(dpcs))
            .map(|(isr, dpc)| (isr.end, dpc.start))
            .collect::<Vec<_>>()
    };
    for important in ["medium-high", "high"] {
        let waits = waits(important);
        assert!(waits.iter().all(|(queued, ran)| ran - queued == 2_000));
    }
    for (queued, ran) in waits("medium") {
        assert_eq!(ran, (queued / 15_625_000 + 1) * 15_625_000);
    }
}

/// Checks that a threaded DPC runs in a thread of the highest priority, and that service routines and
/// ordinary DPCs interrupt it.
#[test]
fn threaded_dpcs_run_in_a_thread() {
    let found = routines(&format!(
        "[machine]
        processors = 1
        threads_per_core = 1
        c_states = []
        [[device]]
        name = 'slow'
        every = '20ms'
        threaded = true
        isr = {{ in = ['slow.sys!Isr'], cost = '2us' }}
        dpc = {{ in = ['slow.sys!Dpc'], cost = '1ms' }}
        [[device]]
        name = 'card'
        every = '20ms'
        from = '300us'
        isr = {{ in = ['card.sys!Isr'], cost = '2us' }}
        dpc = {{ in = ['card.sys!Dpc'], cost = '10us' }}
        {BUSY}"
    ));
    let (isrs, threaded) = (
        routines_of(&found, "slow.sys", "isr"),
        routines_of(&found, "slow.sys", "threaded_dpc"),
    );
    assert_eq!(threaded.len(), 49);
    for (isr, dpc) in isrs.iter().zip(&threaded) {
        assert_eq!(dpc.start, isr.end);
        // The routines of the other device (12 µs) run inside the threaded DPC. The kernel's unlogged work at
        // a clock interrupt can add to the exclusive time of the threaded DPC.
        assert_eq!(dpc.end - dpc.start - dpc.exclusive, 12_000);
        assert!(
            (1_000_000..=1_002_000).contains(&dpc.exclusive),
            "{}",
            dpc.exclusive
        );
        assert_eq!(dpc.fragments, 2);
    }
}
