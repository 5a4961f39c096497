"""Asks `laglab mcp` by the client of the Python SDK, over standard input and output.

Usage: ask_mcp.py LAGLAB FOLDER. The folder has one simulated trace of the scenario rank-stall.
"""

import asyncio
import json
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

# Number of bytes of JSON for a token.
BYTES_PER_TOKEN = 3


def check(holds, message):
    if not holds:
        raise SystemExit(f"ask_mcp.py: {message}")


async def ask(session, tool, arguments):
    """Returns the answer of a tool, whose text and structured content must be the same."""
    result = await session.call_tool(tool, arguments)
    text = result.content[0].text
    check(not result.is_error, f"{tool} {arguments}: {text}")
    check(json.loads(text) == result.structured_content, f"{tool}: text and structured content differ")
    check(len(text.encode()) <= 8_000 * BYTES_PER_TOKEN, f"{tool}: {len(text)} characters")
    return result.structured_content


async def main(laglab, folder):
    server = StdioServerParameters(command=laglab, args=["mcp", "--no-cache", folder])
    with tempfile.TemporaryFile("w+") as errors:
        async with stdio_client(server, errlog=errors) as (read, write), ClientSession(read, write) as session:
            await talk(session)
        errors.seek(0)
        written = errors.read()
        check(written == "", f"the server wrote to standard error: {written}")


async def talk(session):
    """Calls every tool, and reads a resource and the prompts."""
    started = await session.initialize()
    check(started.server_info.name == "laglab", started.server_info.name)
    tools = (await session.list_tools()).tools
    names = [tool.name for tool in tools]
    check(len(names) == 9, f"tools: {names}")
    traces = await ask(session, "traces", {})
    trace = traces["traces"][0]["trace"]
    explained = await ask(session, "explain", {"trace": trace})
    first = explained["findings"][0]
    # The scenario says that a thread of LockApp.exe waits 19.493 s because of its rank.
    check("“LockApp.exe”" in first["sentence"] and "rank" in first["sentence"], first["sentence"])
    check(abs(first["delay_ns"] - 19_493_000_000) < 10_000_000, first["delay_ns"])
    for call in explained["next"]:
        await ask(session, call["tool"], call["arguments"])
    rows = await ask(session, "sql", {"query": "SELECT count(*) AS n FROM cpu_runs"})
    runs = await ask(session, "summarize", {"table": "cpu_runs"})
    check(rows["rows"][0][0] == runs["totals"][0], f"{rows['rows']} rows, not {runs['totals']}")
    await ask(session, "timeline", {"table": "cpu_runs", "by": "process", "measure": "time"})
    await ask(session, "schema", {"table": "cpu_runs"})
    await ask(session, "compare", {"before": [trace], "after": [trace]})
    evidence = await session.read_resource(first["evidence"][0])
    check("," in evidence.contents[0].text, "evidence is no CSV")
    prompts = (await session.list_prompts()).prompts
    check(len(prompts) == 3, f"prompts: {prompts}")
    wrong = await session.call_tool("explain", {"trace": "../../etc/passwd"})
    check(wrong.is_error, "a path outside of the folder is refused")


asyncio.run(main(*sys.argv[1:]))
