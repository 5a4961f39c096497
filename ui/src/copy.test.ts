import { expect, test } from "vitest";
import { csv, markdown } from "./copy";

test("CSV is quoted by RFC 4180", () => {
  expect(
    csv(
      ["a", "b,c"],
      [
        ['say "x"', "two\nlines"],
        ["", "1"],
      ],
    ),
  ).toBe('a,"b,c"\r\n"say ""x""","two\nlines"\r\n,1\r\n');
});

test("no cell of CSV is a formula", () => {
  const cells = ["=cmd|'/c calc'!A1", "+1+1.exe", "-2+3", "@SUM(A1)", "-12.5", "+3", "a\u202eb", "x\ny"];
  expect(
    csv(
      ["a"],
      cells.map((cell) => [cell]),
    )
      .split("\r\n")
      .slice(1, -1),
  ).toEqual(["'=cmd|'/c calc'!A1", "'+1+1.exe", "'-2+3", "'@SUM(A1)", "-12.5", "+3", "a\\u{202e}b", '"x\ny"']);
});

test("Markdown's special characters are escaped, and numbers are aligned", () => {
  expect(
    markdown(
      ["name", "n"],
      [
        ["a|b <script>*x*", "1"],
        ["two\nlines", "2"],
      ],
      [false, true],
    ),
  ).toBe("| name | n |\n| --- | ---: |\n| a\\|b \\<script\\>\\*x\\* | 1 |\n| two<br>lines | 2 |\n");
});
