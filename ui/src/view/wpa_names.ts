// Names that users of Windows Performance Analyzer look for. They are the names of its graphs and presets in the
// documentation of the Windows Performance Toolkit ("Graphs" and "CPU Analysis").

/**
 * Names of presets of Windows Performance Analyzer. The key is the name of the built-in view that shows the same data.
 */
const PRESETS: Record<string, readonly string[]> = {
  "Utilization by process, thread": ["CPU Usage (Precise)", "Utilization by Process, Thread", "Timeline by Process"],
  "Utilization by CPU": ["CPU Usage (Precise)", "Utilization by CPU"],
  "Utilization by priority": ["CPU Usage (Precise)", "Utilization by Priority"],
  "Who ran on each CPU": ["CPU Usage (Precise)", "Timeline by CPU"],
  "States of threads": ["CPU Usage (Precise)", "Timeline by Process, Thread", "thread states"],
  "Ready time by process, thread": ["CPU Usage (Precise)", "Ready Time by Process, Thread", "CPU Ready"],
  "Context switches by process": ["CPU Usage (Precise)", "Context Switch Count by Process, Thread"],
  "Waits by reason": ["CPU Usage (Precise)", "Wait analysis", "Waits"],
  "Samples by process, module, function": [
    "CPU Usage (Sampled)",
    "Utilization by Process, Stack",
    "Utilization by Process and Thread",
  ],
  "Sample stacks": ["CPU Usage (Sampled)", "Flame by Process, Stack", "Stacks"],
  "Samples within DPCs and ISRs": ["CPU Usage (Sampled)", "DPC and ISR Usage by Module, Stack"],
  "DPC and ISR time by CPU": ["DPC/ISR", "Duration by CPU", "CPU Usage (DPC/ISR)"],
  "DPC duration by module, function": ["DPC/ISR", "DPC duration by Module, Function", "Timeline by Module, Function"],
  "ISR duration by module, function": ["DPC/ISR", "ISR duration by Module, Function"],
  "DPC durations by module": ["DPC/ISR", "Duration histogram by Module, Function"],
  "Disk use by process, file": ["Disk Usage", "Activity by IO Type, Process", "Service Time by Process, Path Name"],
  "Disk use by disk and kind": ["Disk Usage", "Utilization by Disk", "Counts by IO Type"],
  "Disk latency over time": ["Disk Usage", "Disk Offset", "IO Time"],
  "File operations by process, file": ["File I/O", "Activity by Process, Thread, Type", "Count by Type"],
  "Hard faults by process, file": ["Hard Faults", "Count by Process", "Memory"],
  "Window in focus": ["Window in Focus", "Timeline"],
  "Process lifetimes": ["Processes", "Lifetime By Process", "Transient Lifetime By Process"],
  "Generic events by provider": ["Generic Events", "Activity by Provider, Task, Opcode"],
  Marks: ["Regions of Interest", "Marks"],
};

const known = new Map(Object.entries(PRESETS));

/** Returns the names that Windows Performance Analyzer has for a built-in view. */
export function wpaNames(preset: string): readonly string[] {
  return known.get(preset) ?? [];
}
