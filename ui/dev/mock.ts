// A server's answers, made up, for `npm run dev` where no laglab runs. With LAGLAB_SERVER=http://127.0.0.1:PORT/TOKEN/
// requests go to one that does.
import type { Plugin } from "vite";

/** Answers `api/…` while the page is developed. */
export function mock(): Plugin {
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
              if (server === undefined) throw new Error("Start `laglab open --no-browser TRACE` and give its address as LAGLAB_SERVER.");
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
