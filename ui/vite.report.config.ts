import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Script and style sheet of the HTML reports, each of which embeds both in one file.
export default defineConfig({
  plugins: [svelte()],
  build: {
    target: "es2023",
    outDir: "dist-report",
    reportCompressedSize: false,
    lib: {
      entry: "src/report/report.ts",
      formats: ["iife"],
      name: "report",
      fileName: () => "report.js",
      cssFileName: "report",
    },
  },
  publicDir: false,
});
