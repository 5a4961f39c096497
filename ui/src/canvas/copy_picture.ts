// Copies of graphs as pictures.

import { colour } from "./theme";

/** Copies a canvas, on the background of the page, to the clipboard as a PNG picture. */
export async function copyPicture(canvas: HTMLCanvasElement): Promise<void> {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const ctx = copy.getContext("2d");
  if (!ctx) throw new Error("the browser cannot draw pictures");
  ctx.fillStyle = colour("var(--panel)");
  ctx.fillRect(0, 0, copy.width, copy.height);
  ctx.drawImage(canvas, 0, 0);
  const picture = await new Promise<Blob | null>((done) => copy.toBlob(done, "image/png"));
  if (!picture) throw new Error("the picture is too large");
  await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
}
