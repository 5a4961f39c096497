import { expect, test } from "vitest";
import type { Story, StoryEvent } from "../api/types";
import { waitPicture } from "./lanes";

const step = (kind: StoryEvent["kind"], at_ns: number, until_ns: number | null = null) =>
  ({ kind, at_ns, until_ns }) as StoryEvent;
const story = (...steps: StoryEvent[]) => ({ story: steps }) as Story;

test("the wait is drawn with margins, and the run after it is cut", () => {
  const picture = waitPicture(
    story(step("switched_out", 100_000), step("readied", 300_000), step("ran", 1_100_000, 90_000_000)),
  )!;
  expect(picture.parts).toEqual([
    { kind: "waiting", from_ns: 100_000, to_ns: 300_000 },
    { kind: "ready", from_ns: 300_000, to_ns: 1_100_000 },
    { kind: "running", from_ns: 1_100_000, to_ns: 1_250_000 },
  ]);
  expect(picture.range[0]).toBeLessThan(100_000);
  expect(picture.range[1]).toBeGreaterThan(1_250_000);
  expect(picture.range[1]).toBeLessThan(1_400_000);
});

test("without a known wait, there is no picture", () => {
  expect(waitPicture(story())).toBeNull();
  expect(waitPicture(story(step("ran", 5, 10)))).toBeNull();
});
