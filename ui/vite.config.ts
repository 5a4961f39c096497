import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { proxy } from "./dev/proxy.ts";

export default defineConfig({
  // The address contains a token that changes with each start, so all addresses are relative.
  base: "./",
  plugins: [svelte(), proxy()],
  build: {
    target: "es2023",
    // Assets are not inlined as `data:` addresses, because the content policy allows these for
    // images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Licences of dependencies require that their texts are distributed.
    license: { fileName: "licences.md" },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    environment: "node",
  },
});
