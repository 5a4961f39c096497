import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Script and style sheet of the report of `laglab prove diff`, which embeds both in one file.
export default defineConfig({
  plugins: [svelte()],
  build: {
    target: "es2023",
    outDir: "dist-report",
    reportCompressedSize: false,
    lib: {
      entry: "src/comparison/report.ts",
      formats: ["iife"],
      name: "report",
      fileName: () => "comparison.js",
      cssFileName: "comparison",
    },
  },
  publicDir: false,
});
