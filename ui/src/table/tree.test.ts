import { expect, test } from "vitest";
import type { Id, PivotGroup } from "../api/types";
import { PAGE, Tree, plainRows, type Page } from "./tree";

/** Returns a fake table with `wide` groups, each of which has `deep` groups. It records the requests. */
function table(wide: number, deep: number) {
  const asked: string[] = [];
  const source = (path: Id[], offset: number, first: number): Promise<Page> => {
    asked.push(`${path.join("/")}@${offset}`);
    const total = path.length === 0 ? wide : deep;
    const groups: PivotGroup[] = Array.from({ length: Math.max(Math.min(first, total - offset), 0) }, (_, place) => ({
      id: offset + place,
      label: `${path.join("/")}#${offset + place}`,
      rows: 1,
      values: [],
      leaf: path.length === 1,
    }));
    return Promise.resolve({ total, groups });
  };
  return { asked, source };
}
const labels = async (tree: Tree, from: number, to: number) =>
  (await tree.rows(from, to)).map(({ group }) => group.label);

test("only visible pages are loaded", async () => {
  const { asked, source } = table(1_000_000, 3);
  const tree = new Tree(source, 2);
  expect(await labels(tree, 0, 2)).toEqual(["#0", "#1"]);
  expect(tree.count).toBe(1_000_000);
  expect(await labels(tree, 500_000, 500_002)).toEqual(["#500000", "#500001"]);
  expect(asked).toEqual(["@0", "@500000"]);
});

test("children of expanded rows follow their parent", async () => {
  const { source } = table(5, 3);
  const tree = new Tree(source, 2);
  await tree.rows(0, 5);
  await tree.toggle([1]);
  expect(tree.count).toBe(8);
  expect(await labels(tree, 0, 99)).toEqual(["#0", "#1", "1#0", "1#1", "1#2", "#2", "#3", "#4"]);
  await tree.toggle([3]);
  expect(await labels(tree, 4, 8)).toEqual(["1#2", "#2", "#3", "3#0"]);
  expect((await tree.rows(1, 2))[0]).toMatchObject({ path: [1], open: true, opens: true });
  expect((await tree.rows(2, 3))[0]).toMatchObject({ path: [1, 0], opens: false, place: 0, siblings: 3 });
  await tree.toggle([1]);
  expect(await labels(tree, 0, 99)).toEqual(["#0", "#1", "#2", "#3", "3#0", "3#1", "3#2", "#4"]);
});

test("every window contains the same rows as the whole", async () => {
  const { source } = table(7, 450);
  const tree = new Tree(source, 2);
  await tree.rows(0, 1);
  for (const id of [0, 3, 6]) await tree.toggle([id]);
  const all = await labels(tree, 0, tree.count);
  expect(all).toHaveLength(7 + 3 * 450);
  for (const [from, to] of [
    [0, 10],
    [445, 460],
    [449, 452],
    [900, 1357],
    [1356, 1400],
  ] as const) {
    expect(await labels(tree, from, to)).toEqual(all.slice(from, to));
  }
});

test("a long level is loaded page by page", async () => {
  const { asked, source } = table(2, PAGE * 3);
  const tree = new Tree(source, 2, [[0]]);
  await tree.rows(0, 2);
  expect(asked).toEqual(["@0", "0@0"]);
  await tree.rows(PAGE + 10, PAGE + 20);
  expect(asked).toEqual(["@0", "0@0", `0@${PAGE}`]);
});

test("expanded rows are restored, also below the unknown group", async () => {
  const source = (path: Id[]): Promise<Page> =>
    Promise.resolve({
      total: 1,
      groups: [{ id: null, label: "unknown", rows: 1, values: [], leaf: path.length === 1 }],
    });
  const tree = new Tree(source, 2, [[null]]);
  expect((await tree.rows(0, 9)).map(({ path }) => path)).toEqual([[null], [null, null]]);
  expect(tree.opened).toEqual([[null]]);
});

test("a failed request is repeated", async () => {
  let failing = true;
  const tree = new Tree(
    () => (failing ? Promise.reject(new Error("busy")) : Promise.resolve(plainRows(1, 0, [[5]]))),
    0,
  );
  await expect(tree.rows(0, 1)).rejects.toThrow("busy");
  failing = false;
  expect((await tree.rows(0, 1))[0].group.values).toEqual([5]);
});
