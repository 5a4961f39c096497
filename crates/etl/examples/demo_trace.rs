//! Writes a small simulated trace with a known story, for `cargo xtask demo` and as an example of
//! the writer: `cargo run --example demo_trace -- FILE`.
//!
//! The story: on a machine with two CPUs a key press readies LockApp's thread at 2.0 s. Its
//! priority is 13, but its rank is 2: the indexer's threads, of priority 8 and rank 0, go before
//! it and keep both CPUs for 1.9 s. Meanwhile a network driver's DPCs take a fourteenth of CPU 0.
//! Everything is simulated; the layouts are Windows'.

use std::fs::File;
use std::io::BufWriter;

use etl::write::{KernelEvent, Session, WriteError, Writer};

/// Raw times are ticks of 100 ns.
const MS: i64 = 10_000;

const SYSTEM: u32 = 4;
const SYSTEM_THREAD: u32 = 120;
const LOCK_APP: u32 = 5_120;
const LOCK_APP_THREAD: u32 = 5_124;
const INDEXER: u32 = 7_004;
const INDEXER_THREADS: [u32; 4] = [7_008, 7_012, 7_016, 7_020];

/// Where the modules lie: base, size, process, path.
const MODULES: [(u64, u64, u32, &str); 4] = [
    (
        0xFFFF_F803_1000_0000,
        0x104_6000,
        0,
        r"\SystemRoot\system32\ntoskrnl.exe",
    ),
    (
        0xFFFF_F803_2000_0000,
        0x18_0000,
        0,
        r"\SystemRoot\system32\drivers\ndis.sys",
    ),
    (0x7FF6_4000_0000, 0x8_0000, INDEXER, r"C:\Demo\Indexer.exe"),
    (0x7FF6_5000_0000, 0x4_0000, LOCK_APP, r"C:\Demo\LockApp.exe"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: demo_trace FILE")?;
    let session = Session {
        processors: 2,
        start: 134_000_000_000_000_000,
        boot: 133_999_000_000_000_000,
        os_build: 26_100,
        cpu_mhz: 3_000,
        name: "laglab demo (simulated)".into(),
        log_file: path.clone(),
        ..Session::default()
    };
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let mut demo = Demo {
        log: Writer::new(BufWriter::new(file), session)?,
    };
    demo.rundown()?;
    demo.run()?;
    demo.log.finish()?;
    Ok(())
}

struct Demo {
    log: Writer<BufWriter<File>>,
}

impl Demo {
    /// What was there when the recording began: processes, threads, modules.
    fn rundown(&mut self) -> Result<(), WriteError> {
        for (id, name) in [
            (SYSTEM, "System"),
            (LOCK_APP, "LockApp.exe"),
            (INDEXER, "Indexer.exe"),
        ] {
            let mut p = Vec::new();
            p.extend(0xFFFF_A000_0000_0000u64.to_le_bytes());
            p.extend([id, 0, 1, 0x103].map(u32::to_le_bytes).concat());
            p.extend([0; 8 + 4 + 4]); // Page table, flags, no SID.
            p.extend(name.as_bytes());
            p.extend([0; 1 + 6]); // End of the name; no command line, package, application.
            self.rundown_event(0x0303, 4, &p)?;
        }
        let threads = [(LOCK_APP, LOCK_APP_THREAD), (SYSTEM, SYSTEM_THREAD)];
        for (process, thread) in threads
            .into_iter()
            .chain(INDEXER_THREADS.map(|t| (INDEXER, t)))
        {
            let mut p = [process, thread].map(u32::to_le_bytes).concat();
            p.extend([0; 7 * 8 + 4]);
            let base = if thread == LOCK_APP_THREAD { 11 } else { 8 };
            p.extend([base, 5, 2, 0, 0, 0]); // Priorities, flags, no name.
            self.rundown_event(0x0503, 4, &p)?;
        }
        for (base, size, process, path) in MODULES {
            let mut p = [base, size].map(u64::to_le_bytes).concat();
            p.extend(process.to_le_bytes());
            p.extend([0; 36]);
            p.extend(path.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            self.rundown_event(0x1403, 3, &p)?;
        }
        Ok(())
    }

    fn rundown_event(&mut self, hook: u16, version: u8, payload: &[u8]) -> Result<(), WriteError> {
        let nobody = Some((u32::MAX, u32::MAX));
        self.log.kernel(
            0,
            KernelEvent {
                hook,
                version,
                time: 1,
                thread: nobody,
            },
            payload,
        )
    }

    /// Six seconds, in steps of a millisecond.
    fn run(&mut self) -> Result<(), WriteError> {
        let mut running = [0u32; 2];
        for ms in 1..6_000i64 {
            let now = ms * MS;
            // The indexer is busy between 1 and 4 s.
            let busy = (1_000..4_000).contains(&ms);
            for cpu in [0, 1u16] {
                let old = running[usize::from(cpu)];
                let turn = busy && ms % 31 == i64::from(cpu) * 15;
                let new = match (busy, old) {
                    (true, 0) => INDEXER_THREADS[usize::from(cpu)],
                    (true, _) if turn => {
                        INDEXER_THREADS[(ms / 31 % 2) as usize * 2 + usize::from(cpu)]
                    }
                    (true, _) => old,
                    (false, _) => 0,
                };
                if ms == 3_900 && cpu == 0 {
                    // At last; it runs for a quarter of a millisecond.
                    self.switch(cpu, now + 20, LOCK_APP_THREAD, old, 13, 8, QUANTUM_END, 0)?;
                    self.switch(cpu, now + 2_520, old, LOCK_APP_THREAD, 8, 13, WAIT, 2)?;
                } else if new != old {
                    let reason = if busy { QUANTUM_END } else { WAIT };
                    let (to, from) = (if new == 0 { 0 } else { 8 }, if old == 0 { 0 } else { 8 });
                    self.switch(cpu, now + 20, new, old, to, from, reason, 0)?;
                }
                running[usize::from(cpu)] = new;
                if !busy && ms % 20 == 10 {
                    // Something to do for a tenth of a millisecond, lest the CPUs seem forgotten.
                    self.switch(cpu, now + 100, SYSTEM_THREAD, 0, 8, 0, WAIT, 0)?;
                    self.switch(cpu, now + 1_100, 0, SYSTEM_THREAD, 0, 8, WAIT, 0)?;
                }
                // One sample in thirteen finds CPU 0 in the DPC.
                let in_dpc = cpu == 0 && ms % 13 == 0;
                if in_dpc {
                    self.sample(cpu, now + 3_300, new, true)?;
                }
                if cpu == 0 {
                    if ms == 2_000 {
                        // The key press: a DPC readies LockApp's thread.
                        self.ready(cpu, now + 3_200, LOCK_APP_THREAD)?;
                    }
                    self.dpc(now + 3_000, 600 + (ms * 37 % 300))?;
                }
                if !in_dpc {
                    self.sample(cpu, now + 9_000 + i64::from(cpu), new, false)?;
                }
            }
        }
        Ok(())
    }

    fn ready(&mut self, cpu: u16, time: i64, thread: u32) -> Result<(), WriteError> {
        let mut p = thread.to_le_bytes().to_vec();
        p.extend([1, 2, 1, 0]); // Unwait, priority raised by 2, by a DPC.
        self.log.kernel(
            cpu,
            KernelEvent {
                hook: 0x0532,
                version: 2,
                time,
                thread: None,
            },
            &p,
        )
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn switch(
        &mut self,
        cpu: u16,
        time: i64,
        new: u32,
        old: u32,
        new_priority: u8,
        old_priority: u8,
        (reason, state): (u8, u8),
        rank: u8,
    ) -> Result<(), WriteError> {
        let mut p = [new, old].map(u32::to_le_bytes).concat();
        p.extend([
            new_priority,
            old_priority,
            rank,
            0,
            reason,
            1,
            state,
            cpu as u8,
        ]);
        p.extend([0; 8]);
        self.log.kernel(
            cpu,
            KernelEvent {
                hook: 0x0524,
                version: 4,
                time,
                thread: None,
            },
            &p,
        )
    }

    /// A DPC of the network driver that began at `begin` and took so many ticks.
    fn dpc(&mut self, begin: i64, ticks: i64) -> Result<(), WriteError> {
        let routine = MODULES[1].0 + 0x1_2340;
        let p = [begin as u64, routine].map(u64::to_le_bytes).concat();
        let time = begin + ticks;
        self.log.kernel(
            0,
            KernelEvent {
                hook: 0x0F44,
                version: 2,
                time,
                thread: None,
            },
            &p,
        )
    }

    fn sample(&mut self, cpu: u16, time: i64, thread: u32, dpc: bool) -> Result<(), WriteError> {
        let module = match (dpc, thread) {
            (true, _) => 1,
            (false, 0) => 0,
            (false, _) if time % 7 == 0 => 0,
            _ => 2,
        };
        let mut p = (MODULES[module].0 + 0x1_4000).to_le_bytes().to_vec();
        p.extend(thread.to_le_bytes());
        let priority = if thread == 0 { 0 } else { 8 };
        p.extend([1, 0, priority << 3 | u8::from(dpc), 0]);
        self.log.kernel(
            cpu,
            KernelEvent {
                hook: 0x0F2E,
                version: 2,
                time,
                thread: None,
            },
            &p,
        )
    }
}

/// Wait reason and state of a thread that was switched out: its quantum was over, it is ready.
const QUANTUM_END: (u8, u8) = (30, 1);
/// It waits for something (`UserRequest`).
const WAIT: (u8, u8) = (6, 5);
