// Report of the tests in the format of JUnit, with flaky tests, which the reporter of vitest omits. The variable JUNIT
// names the file.

import { writeFileSync } from "node:fs";
import type { Reporter, TestCase, TestModule } from "vitest/node";

const escape = (text: string) =>
  text
    .replace(/[<>&"']/g, (character) => `&#${character.charCodeAt(0)};`)
    // Characters that XML does not allow.
    // eslint-disable-next-line no-control-regex
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "?");

function element(test: TestCase): string {
  const { state, errors } = test.result();
  const about = `name="${escape(test.fullName)}" classname="${escape(test.module.relativeModuleId)}"`;
  const causes = (errors ?? []).map(({ message, stack }) => escape(`${message}\n${stack ?? ""}`));
  const failed = (tag: string) => causes.map((cause) => `<${tag} type="failure">${cause}</${tag}>`).join("");
  const flaky = test.diagnostic()?.flaky === true;
  const inside = state === "failed" ? failed("failure").replace(/<\/failure>.*$/s, "</failure>") : "";
  return `<testcase ${about}>${flaky ? failed("flakyFailure") : inside}</testcase>`;
}

export default class JUnit implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const file = process.env["JUNIT"];
    if (!file) return;
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const ran = tests.filter((test) => test.result().state !== "skipped");
    const broken = modules.flatMap((module) =>
      module.errors().map((error) => {
        const about = `name="before its tests" classname="${escape(module.relativeModuleId)}"`;
        return `<testcase ${about}><failure type="failure">${escape(error.message)}</failure></testcase>`;
      }),
    );
    writeFileSync(file, `<testsuites>${[...ran.map(element), ...broken].join("\n")}</testsuites>\n`);
  }
}
