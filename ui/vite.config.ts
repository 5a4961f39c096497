import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { mock } from "./dev/mock.ts";

export default defineConfig({
  // The page lies below a token that is another each time: all its addresses are relative.
  base: "./",
  plugins: [svelte(), mock()],
  build: {
    target: "es2023",
    // No data: addresses in styles or scripts; the policy allows them for images alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What the licences of others ask: their texts go with what is made of their work.
    license: { fileName: "licences.md" },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    environment: "node",
  },
});
