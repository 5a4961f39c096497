import { defineConfig } from "vitest/config";

// Tests of the whole page in a browser, with the program and simulated traces. Test files run one after
// another, because the program and the browser need the CPUs. The limits are long, because compilers may use
// the CPUs at the same time.
export default defineConfig({
  root: import.meta.dirname,
  cacheDir: "../node_modules/.vite-e2e",
  test: {
    include: ["*.e2e.ts"],
    environment: "node",
    fileParallelism: false,
    // The summary of `cargo xtask test` names each test that passed only after a failure.
    retry: 2,
    reporters: ["default", "./junit.ts"],
    testTimeout: 300_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
