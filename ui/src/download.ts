// Files that the user saves.

/** Saves a file in the folder of the browser's downloads. */
export function download(body: Blob, name: string): void {
  const address = URL.createObjectURL(body);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name.replace(/[^\w.-]+/g, "_");
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
