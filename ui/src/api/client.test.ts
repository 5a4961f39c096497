import { afterEach, expect, test, vi } from "vitest";
import { Latest, RequestError, about, isCancelled } from "./client";

/** Replaces `fetch` by a fake server. The test decides when it answers. */
function server() {
  const asked: { path: string; answer: (body: unknown, status?: number) => void; gone: boolean }[] = [];
  vi.stubGlobal(
    "fetch",
    (path: string, { signal }: RequestInit) =>
      new Promise((resolve, reject) => {
        const request = {
          path,
          gone: false,
          answer: (body: unknown, status = 200) => resolve(new Response(JSON.stringify(body), { status })),
        };
        signal?.addEventListener("abort", () => {
          request.gone = true;
          reject(new DOMException("gone", "AbortError"));
        });
        asked.push(request);
      }),
  );
  return asked;
}
afterEach(() => vi.unstubAllGlobals());
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

test("a newer request of one sequence cancels the older", async () => {
  const asked = server();
  const latest = new Latest();
  const first = latest.ask((signal) => about("one")(0, {}, signal));
  await settled();
  const second = latest.ask((signal) => about("two")(0, {}, signal));
  await settled();
  expect(asked.map(({ gone }) => gone)).toEqual([true, false]);
  asked[1].answer({ is: 2 });
  expect(await first).toBeUndefined();
  expect(await second).toEqual({ is: 2 });
});

test("equal requests are sent once", async () => {
  const asked = server();
  const first = about("same")(1, { a: 1 });
  await settled();
  asked[0].answer([1]);
  await first;
  expect(await about("same")(1, { a: 1 })).toEqual([1]);
  expect(asked).toHaveLength(1);
});

test("four requests run at once; a cancelled one frees its place", async () => {
  const asked = server();
  const controllers = Array.from({ length: 6 }, () => new AbortController());
  const answers = controllers.map(({ signal }, place) => about(`q${place}`)(2, {}, signal).catch(isCancelled));
  await settled();
  expect(asked).toHaveLength(4);
  controllers[4].abort(); // This request is in the queue.
  controllers[0].abort(); // This request is running.
  await settled();
  expect(asked.map(({ path }) => path)).toEqual([0, 1, 2, 3, 5].map((place) => `api/traces/2/q${place}`));
  for (const { answer } of asked) answer("done");
  expect(await Promise.all(answers)).toEqual([true, "done", "done", "done", true, "done"]);
});

test("a refusal has the message of the server", async () => {
  const asked = server();
  const answer = about("bad")(3, {});
  await settled();
  asked[0].answer({ error: "no table `x`", place: { line: 1, column: 8 } }, 400);
  await expect(answer).rejects.toMatchObject({ message: "no table `x`", status: 400, place: { line: 1, column: 8 } });
  await expect(answer).rejects.toBeInstanceOf(RequestError);
});
