// Names of frames.

/**
 * Returns the module of a frame, such as `ntoskrnl.exe` for `ntoskrnl.exe!KiSwapThread` and
 * `ntoskrnl.exe+0x12`.
 */
export function moduleOf(frame: string): string {
  const end = frame.search(/!|\+0x/);
  return end > 0 ? frame.slice(0, end) : frame;
}

/**
 * Returns the function of a frame. If the frame contains no function, returns the whole frame. If the
 * function is unknown (`?`), returns the module.
 */
export function functionOf(frame: string): string {
  const name = frame.slice(frame.indexOf("!") + 1);
  return name === "?" ? moduleOf(frame) : name;
}
