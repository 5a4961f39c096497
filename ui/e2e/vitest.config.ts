import { defineConfig } from "vitest/config";

// The whole page in a browser, with the program. Files run one after another, since both need CPUs.
export default defineConfig({
  root: import.meta.dirname,
  cacheDir: "../node_modules/.vite-e2e",
  test: {
    include: ["*.e2e.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
