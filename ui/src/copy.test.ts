import { expect, test } from "vitest";
import { csv, markdown } from "./copy";

test("CSV quotes what RFC 4180 says", () => {
  expect(csv(["a", "b,c"], [['say "x"', "two\nlines"], ["", "1"]])).toBe('a,"b,c"\r\n"say ""x""","two\nlines"\r\n,1\r\n');
});

test("Markdown's own signs are text, and numbers are aligned", () => {
  expect(markdown(["name", "n"], [["a|b <script>*x*", "1"], ["two\nlines", "2"]], [false, true])).toBe(
    "| name | n |\n| --- | ---: |\n| a\\|b \\<script\\>\\*x\\* | 1 |\n| two<br>lines | 2 |\n",
  );
});
