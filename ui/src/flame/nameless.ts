// Frames without the name of a function.

/** Maximum number of named examples. */
const MAX_EXAMPLES = 6;

/** Returns the number of modules whose functions have no names, and some of the modules. */
export function nameless(frames: readonly string[]): { modules: number; examples: string[] } {
  const modules = new Set(frames.flatMap((frame) => (frame.endsWith("!?") ? [frame.slice(0, -2)] : [])));
  return { modules: modules.size, examples: [...modules].slice(0, MAX_EXAMPLES) };
}
