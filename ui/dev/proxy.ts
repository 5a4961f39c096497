// Forwards API requests of `npm run dev` to a running laglab. Start `laglab open --no-browser TRACE` and set
// LAGLAB_SERVER to the printed address.

import type { Plugin } from "vite";

/** Forwards requests of `api/…` during development. */
export function proxy(): Plugin {
  const server = process.env["LAGLAB_SERVER"];
  return {
    name: "laglab-server",
    apply: "serve",
    configureServer(vite) {
      vite.middlewares.use((request, response, next) => {
        const path = /^\/api\/(.*)$/.exec(request.url ?? "")?.[1];
        if (path === undefined) return next();
        const chunks: Buffer[] = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          const body = Buffer.concat(chunks);
          void (async () => {
            try {
              if (server === undefined)
                throw new Error(
                  "LAGLAB_SERVER is not set: start `laglab open --no-browser TRACE` and set it to the printed address",
                );
              const answer = await fetch(new URL(`api/${path}`, server), {
                method: request.method ?? "GET",
                ...(request.method === "POST" ? { body, headers: { "content-type": "application/json" } } : {}),
              });
              response.statusCode = answer.status;
              response.setHeader("content-type", answer.headers.get("content-type") ?? "application/json");
              response.end(Buffer.from(await answer.arrayBuffer()));
            } catch (error) {
              response.statusCode = 502;
              response.end(JSON.stringify({ error: String(error) }));
            }
          })();
        });
      });
    },
  };
}
