// Generated data for the gallery of components.

import type {
  ButterflyAnswer,
  CpuLane,
  Evidence,
  FlameAnswer,
  HeatAnswer,
  LanesAnswer,
  Nodes,
  SqlAnswer,
  SqlCatalogue,
  Story,
  Wake,
} from "../src/api/types";

/** Returns a generator of reproducible numbers from 0 to 1. */
export function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const PROCESSES = [
  "System (4)",
  "explorer.exe (4312)",
  "LockApp.exe (9120)",
  "SearchIndexer.exe (6120)",
  "MsMpEng.exe (3340)",
  "chrome.exe (11024)",
  "<b>bold</b><script>alert(1)</script>.exe (666)",
];

export function madeLanes(cpus: number, from: number, to: number, exact: boolean, width = 1000): LanesAnswer {
  const random = chance(cpus * 7 + Math.round(from / 1e6));
  const wakes: Wake[] = [];
  const lanes: CpuLane[] = Array.from({ length: cpus }, (_, cpu) => {
    const runs: CpuLane["runs"] = { start: [], end: [], process: [], thread: [], busy: [] };
    const interrupts: CpuLane["interrupts"] = { start: [], end: [], kind: [], image: [], busy: [] };
    const step = exact ? (to - from) / 60 : (to - from) / width;
    for (let at = from; at < to; at += step) {
      const busy = exact ? 1 : Math.min(random() * 1.6, 1);
      if (random() < (exact ? 0.75 : 0.92)) {
        const process = Math.floor(random() * random() * PROCESSES.length);
        const start = Math.round(exact ? at + random() * step * 0.3 : at);
        runs.start.push(start);
        runs.end.push(Math.round(exact ? at + step * (0.35 + random() * 0.65) : at + step));
        runs.process.push(process);
        runs.thread.push(exact ? process * 10 + Math.floor(random() * 4) : null);
        runs.busy.push(busy);
        if (exact && random() < 0.2) {
          wakes.push({
            from_cpu: Math.floor(random() * cpus),
            at_ns: Math.round(start - random() * step * 2),
            to_cpu: cpu,
            run_start_ns: start,
            readying_thread: Math.floor(random() * 60),
            by_dpc: random() < 0.2,
            thread: runs.thread.at(-1)!,
          });
        }
      }
      if (random() < 0.3) {
        interrupts.start.push(Math.round(at));
        interrupts.end.push(Math.round(exact ? at + step * 0.08 * random() : at + step));
        interrupts.kind.push(random() < 0.6 ? "dpc" : "isr");
        interrupts.image.push(random() < 0.7 ? 1 : 2);
        interrupts.busy.push(exact ? 1 : random());
      }
    }
    return {
      cpu,
      runs,
      interrupts,
      recorded_from_ns: null,
      recorded_until_ns: null,
      doubtful: { start: [], end: [] },
    };
  });
  const thread = Object.fromEntries(Array.from({ length: 70 }, (_, id) => [id, `worker (${1000 + id * 4})`]));
  return {
    start_ns: from,
    end_ns: to,
    cpus: lanes,
    labels: { process: Object.fromEntries(PROCESSES.entries()), thread, image: { 1: "ndis.sys", 2: "storport.sys" } },
    wakes,
    exact,
    interrupts_exact: exact,
    left_out: 0,
  };
}

export function madeHeat(from: number, to: number): HeatAnswer {
  const random = chance(3);
  const [buckets, classes] = [240, 48];
  const bounds = Array.from({ length: classes + 1 }, (_, row) => Math.round(200 * 10 ** (row / 10.5)));
  const counts = Array.from({ length: buckets }, (_, slice) => {
    const flood = slice > 80 && slice < 130 ? 12 : 0;
    return Array.from({ length: classes }, (_, row) => {
      const main = Math.exp(-((row - 14 - flood) ** 2) / 18) * (flood ? 900 : 120);
      const tail = row > 22 && row < 36 && random() < 0.04 ? 1 : 0;
      return Math.floor(main * random()) + tail;
    });
  });
  return {
    start_ns: from,
    end_ns: to,
    bucket_ns: (to - from) / buckets,
    buckets,
    bounds,
    counts,
    above: 0,
    below: 1234,
    unit: "ns",
    sql: "",
  };
}

const CALLS = [
  "KiSwapThread",
  "NtWaitForSingleObject",
  "RtlUserThreadStart",
  "ndisInterruptDpc",
  "memcpy",
  "WriteFile",
  "CreateFileW",
  "Draw<T>",
  "Layout",
];
const MODULES = ["ntdll.dll", "ntoskrnl.exe", "ndis.sys", "chrome.dll", "KernelBase.dll", "win32kfull.sys"];

function tree(seed: number, depth: number, compared: boolean): { frames: string[]; nodes: Nodes; total: number } {
  const random = chance(seed);
  const frames: string[] = [];
  const nodes: Nodes = { parent: [], frame: [], self: [], total: [], compared: compared ? [] : null };
  const named = new Map<string, number>();
  const grow = (parent: number | null, weight: number, other: number, left: number) => {
    const unnamed = random() < 0.1;
    const module = MODULES[Math.floor(random() * MODULES.length)];
    const name = unnamed
      ? `${module}+0x${Math.floor(random() * 65536).toString(16)}`
      : `${module}!${CALLS[Math.floor(random() * CALLS.length)]}`;
    if (!named.has(name)) named.set(name, frames.push(name) - 1);
    const node = nodes.parent.push(parent) - 1;
    nodes.frame.push(named.get(name)!);
    nodes.total.push(Math.round(weight));
    nodes.self.push(0);
    nodes.compared?.push(Math.round(other));
    let kept = weight * random() * 0.3;
    for (let part = weight - kept; left > 0 && part > 60_000;) {
      const share = part < 200_000 ? part : part * (0.3 + random() * 0.7);
      grow(node, share, other * (share / weight) * (0.4 + random() * 1.2), left - 1);
      part -= share;
      if (part <= 60_000) kept += part;
    }
    nodes.self[node] = Math.round(left > 0 ? kept : weight);
  };
  grow(null, 7e8, 6e8, depth);
  grow(null, 2e8, 3e8, depth);
  return { frames, nodes, total: 1e9 };
}

export function madeFlame(depth: number, compared: boolean): FlameAnswer {
  const { frames, nodes, total } = tree(11, depth, compared);
  return { total, compared_total: compared ? 1e9 : null, known: 0.9, frames, nodes, cut: 4e6, unit: "ns", sql: null };
}

export function madeButterfly(frame: string | null): ButterflyAnswer {
  const { frames, nodes, total } = tree(5, 9, false);
  if (frame !== null) {
    return {
      total,
      known: 0.93,
      functions_total: 0,
      frames: [frame, ...frames.slice(1)],
      callers: nodes,
      callees: tree(5, 6, false).nodes,
      unit: "ns",
    };
  }
  const functions = frames.map((label, place) => ({ label, self: 3e8 / (place + 2), total: 9e8 / (place + 1) }));
  return { total, known: 0.93, functions_total: functions.length, functions, unit: "ns" };
}

const thread = (id: number, process: string, name: string | null = null) => ({ id, row: id, name, process });
const nothing = {
  cpu: null,
  thread: null,
  wait_reason: null,
  state: null,
  priority: null,
  rank: null,
  stack: [],
  evidence: null,
  until_ns: null,
};
const evidence: Evidence = {
  title: "Threads that ran during this time",
  query:
    "SELECT process(process_row) AS process, sum(end_ns - start_ns) AS cpu_ns FROM cpu_runs GROUP BY 1 ORDER BY 2 DESC",
  columns: [
    { name: "process", label: "process", unit: "none" },
    { name: "priority", label: "priority", unit: "none" },
    { name: "rank", label: "rank", unit: "none" },
    { name: "cpu_ns", label: "ran", unit: "duration" },
    { name: "share", label: "share", unit: "percent" },
  ],
  rows: [
    ["SearchIndexer.exe (6120)", 8, 0, 41_233_000_000, 61.2],
    ["MsMpEng.exe (3340)", 8, 0, 22_100_400_000, 30.7],
    ["<img src=x onerror=alert(1)> (7)", 4, null, 3_100_000, 0.1],
  ],
};

export const madeWait: Story = {
  thread: thread(9432, "LockApp.exe (9120)", "Compositor"),
  at_ns: 40_000_000_000,
  kind: "ready",
  run: { cpu: 3, start_ns: 49_893_412_000, end_ns: 49_894_012_000, priority: 9, rank: 2 },
  story: [
    {
      ...nothing,
      kind: "switched_out",
      at_ns: 30_298_114_000,
      cpu: 1,
      wait_reason: "WrQueue",
      state: "Waiting",
      priority: 9,
      sentence: "It waited for an item of a queue.",
      stack: [
        "ntoskrnl.exe!KiSwapThread",
        "ntoskrnl.exe!KeRemoveQueueEx",
        "ntdll.dll!NtWaitForWorkViaWorkerFactory",
        "ntdll.dll!TppWorkerThread",
        "kernel32.dll!BaseThreadInitThunk",
      ],
    },
    {
      ...nothing,
      kind: "readied",
      at_ns: 30_400_412_000,
      cpu: 2,
      thread: thread(4400, "explorer.exe (4312)"),
      sentence: "Thread 4400 of explorer.exe (4312) made it ready: ALPC message.",
      stack: ["ntoskrnl.exe!KeSetEvent"],
    },
    {
      ...nothing,
      kind: "waited_behind",
      at_ns: 30_400_412_000,
      until_ns: 49_893_412_000,
      sentence: "All 4 CPUs ran threads that went first, most of the time those of SearchIndexer.exe (6120).",
      evidence,
    },
    {
      ...nothing,
      kind: "ran",
      at_ns: 49_893_412_000,
      until_ns: 49_894_012_000,
      cpu: 3,
      priority: 9,
      rank: 2,
      sentence: "It ran for 600 µs and then waited again.",
    },
  ],
  theories: [
    {
      theory: "higher-priority",
      name: "higher priority",
      question: "Were the CPUs busy with threads of higher priority?",
      judgement: "against",
      because: "Only 0.3 s of CPU time went to threads above priority 9.",
      explains_ns: 300_000_000,
      evidence: [evidence],
    },
    {
      theory: "rank",
      name: "rank",
      question: "Did threads of lower rank go first?",
      judgement: "for",
      because:
        "The thread's rank was 2. Threads with a better rank, and with the same or a lower priority (4 to 9), used 98.0 % of the CPU time.",
      explains_ns: 19_100_000_000,
      evidence: [evidence],
    },
    {
      theory: "affinity",
      name: "affinity",
      question: "Was it bound to busy CPUs?",
      judgement: "not_recorded",
      because: "The trace does not tell which CPUs it may use.",
      record: "thread affinity (CPU sets)",
    },
  ],
  findings: [],
  chain: [
    {
      thread: thread(4400, "explorer.exe (4312)"),
      from_ns: 30_100_000_000,
      to_ns: 30_400_412_000,
      why: "ran, then made it ready by an ALPC message",
      cpu: 2,
    },
    {
      thread: thread(812, "csrss.exe (640)"),
      from_ns: 29_900_000_000,
      to_ns: 30_100_000_000,
      why: "waited for the disk (UserRequest), then made thread 4400 ready",
      cpu: 0,
    },
  ],
  is_chain_cut: false,
  doubts: [],
};

export const madeCatalogue: SqlCatalogue = {
  tables: [
    {
      name: "cpu_runs",
      about: "Runs of threads on CPUs.",
      view: false,
      columns: ["cpu", "start_ns", "end_ns", "process_row", "thread_id", "ready_ns", "priority", "rank_out"].map(
        (name) => ({ name, type: /_ns$/.test(name) ? "Int64" : "UInt32", about: `About ${name}.` }),
      ),
    },
    {
      name: "processes",
      about: "Processes.",
      view: false,
      columns: ["process_row", "process_id", "image_name"].map((name) => ({ name, type: "UInt32", about: null })),
    },
    {
      name: "cpu_by_process",
      about: "CPU time by process, from context switches.",
      view: true,
      columns: ["process", "cpu_ns", "runs"].map((name) => ({ name, type: "Int64", about: null })),
    },
  ],
  functions: [
    { name: "ms", signature: "ms(ns)", about: "Nanoseconds as milliseconds." },
    {
      name: "bucket",
      signature: "bucket(ns, width_ns)",
      about: "Start of the time bucket that contains a time.",
    },
    { name: "process", signature: "process(process_row)", about: "Name and id of a process: `chrome.exe (144)`." },
  ],
};

export function madeRows(kind: "time" | "keys"): SqlAnswer {
  const random = chance(9);
  if (kind === "keys") {
    const rows = PROCESSES.map((process, place) => [
      process,
      Math.round(4e9 / (place + 1)),
      place * 311 + 7,
      Math.round(9e7 * random()),
    ]);
    const columns = ["process", "cpu_ns", "runs", "longest_ready_ns"].map((name, place) => ({
      name,
      type: place ? "Int64" : "Utf8",
      unit: name.endsWith("_ns") ? "ns" : "",
    }));
    return { columns, rows: [...rows, [null, null, 3, 12]], more: false, took_ms: 12 };
  }
  const rows = Array.from({ length: 5000 }, (_, place) => [
    place * 1e7,
    Math.round(4e6 * (1 + Math.sin(place / 300)) * random()),
    place % 700 < 30 ? null : Math.round(2e6 * random()),
    `note ${place}`,
  ]);
  const columns = ["time_ns", "dpc_ns", "isr_ns", "note"].map((name, place) => ({
    name,
    type: place < 3 ? "Int64" : "Utf8",
    unit: name.endsWith("_ns") ? "ns" : "",
  }));
  return { columns, rows, more: true, took_ms: 231 };
}
