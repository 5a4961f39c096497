// Draws the charts of a report. Text from the trace is only set as text, never as markup.
"use strict";
(() => {
  const root = document.documentElement;
  const errors = [];
  addEventListener("error", (event) => errors.push(String(event.message)));
  // Collects violations of the page's policy. `buffered` also reports violations that happened before this script ran.
  const stopped = ({ body }) => errors.push(`blocked by the page's policy: ${body.effectiveDirective} ${body.blockedURL}`);
  globalThis.ReportingObserver && new ReportingObserver((reports) => reports.forEach(stopped),
    { types: ["csp-violation"], buffered: true }).observe();

  const data = JSON.parse(document.getElementById("data").textContent);
  const wishes = new Set(location.hash.slice(1).split(","));

  /** Bounds of the time buckets in seconds: one more than there are buckets. */
  const edges = Array.from({ length: data.buckets + 1 }, (_, bucket) =>
    Math.min(data.start_ns + bucket * data.bucket_ns, data.end_ns) / 1e9);
  /** Time range of all charts: from the first to the last bound. */
  const whole = [edges[0], edges[data.buckets]];
  let shown = whole;
  let charts = [];

  // Reads colours of the current theme from this element.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.id = "probe";
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const parts = (rgb) => rgb.match(/[\d.]+/g).slice(0, 3).map(Number);
  /** Mixes colours, given as pairs of colour and weight. The weights sum to 1. */
  const mixed = (...pairs) => {
    const sum = [0, 1, 2].map((part) =>
      Math.round(pairs.reduce((total, [rgb, weight]) => total + rgb[part] * weight, 0)));
    return `rgb(${sum.join()})`;
  };
  const inkOn = (rgb) => {
    const [red, green, blue] = parts(rgb);
    return red * 0.3 + green * 0.59 + blue * 0.11 > 140 ? "#111" : "#fff";
  };
  const ofProcess = (name) => {
    const layer = data.processes?.layers.find((other) => other.name === name);
    return colour(layer?.kind.one === undefined ? "other" : `one-${layer.kind.one}`);
  };
  /** Shortens text to a width, with an ellipsis. Returns an empty text if less than three letters fit. */
  const fitted = (ctx, text, width) => {
    if (ctx.measureText(text).width <= width) return text;
    let [fits, not] = [0, text.length];
    while (not - fits > 1) {
      const middle = (fits + not) >> 1;
      if (ctx.measureText(`${text.slice(0, middle)}…`).width <= width) fits = middle;
      else not = middle;
    }
    return fits < 3 ? "" : `${text.slice(0, fits).trimEnd()}…`;
  };

  /** Wraps text into at most `most` lines. If more lines are needed, the last line is shortened. */
  const wrapped = (ctx, text, width, most) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines.length - 1;
      const longer = lines[last] && `${lines[last]} ${word}`;
      if (!longer) lines[last] = word;
      else if (lines.length === most || ctx.measureText(longer).width <= width) lines[last] = longer;
      else lines.push(word);
    }
    return lines.map((line) => fitted(ctx, line, width));
  };

  // Formatting of numbers.
  const percent = (share, digits = 1) => `${(share / 1e4).toFixed(digits)} %`;
  const grouped = (count) => count.toLocaleString("en-US");
  /** Formats a time with as many digits as steps of length `step` need. */
  const seconds = (time, step) => {
    let digits = 0;
    while (digits < 9 && Math.abs(step - step.toFixed(digits)) > step / 100) digits++;
    return `${time.toFixed(digits)} s`;
  };
  const duration = (ns) => {
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]].find(([, size]) => ns >= size) ?? ["ns", 1];
    return `${ns / size} ${unit}`;
  };
  const plus = (one, other) => one.map((value, place) => value + other[place]);
  const mean = (values) => {
    const [from, to] = visible();
    const seen = values.slice(from, to);
    return seen.reduce((sum, value) => sum + value, 0) / Math.max(1, seen.length);
  };
  /** Returns the index of the first visible bucket, and the index after the last visible bucket. */
  const visible = () => {
    const from = Math.max(0, edges.findLastIndex((edge) => edge <= shown[0]));
    const to = edges.findIndex((edge) => edge >= shown[1]);
    return [from, to < 0 ? data.buckets : Math.max(to, from + 1)];
  };
  const at = (values, bucket) => bucket == null ? mean(values) : values[Math.min(bucket, data.buckets - 1)];

  /** Key below a chart: its names, their colours and their numbers. */
  class Key {
    constructor(list) {
      this.list = list;
      this.list.replaceChildren();
      this.when = this.list.appendChild(document.createElement("li"));
      this.when.className = "when";
    }
    /** Adds a name with its colour. Returns a function that sets the number next to the name. */
    item(name, fill) {
      const item = this.list.appendChild(document.createElement("li"));
      if (fill) item.appendChild(document.createElement("i")).style.background = fill;
      item.appendChild(document.createElement("span")).textContent = name;
      const figure = item.appendChild(document.createElement("b"));
      return (text) => { figure.textContent = text; };
    }
    /** Shows to which bucket or time range the numbers in the key belong. */
    tell(bucket) {
      this.when.textContent = bucket == null
        ? shown === whole ? "whole time" : "time shown"
        : `at ${seconds(edges[bucket], 10 ** Math.floor(Math.log10(data.bucket_ns / 1e9)))}`;
    }
  }

  /** Shades the time ranges of findings in a chart, and marks their starts and ends. */
  const shade = (plot) => {
    const { ctx, bbox } = plot;
    const line = Math.max(1, Math.round(devicePixelRatio));
    for (const marker of data.markers) {
      const left = plot.valToPos(marker.from_ns / 1e9, "x", true);
      const right = plot.valToPos(marker.to_ns / 1e9, "x", true);
      const from = Math.max(left, bbox.left);
      const to = Math.min(right, bbox.left + bbox.width);
      if (marker.severity === "information" || to <= from) continue;
      ctx.save();
      ctx.fillStyle = colour(marker.severity);
      ctx.globalAlpha = 0.06;
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      ctx.globalAlpha = 0.85;
      ctx.fillRect(from, bbox.top, to - from, 3 * line);
      if (left >= bbox.left) ctx.fillRect(left, bbox.top, line, bbox.height);
      if (right <= bbox.left + bbox.width) ctx.fillRect(right - line, bbox.top, line, bbox.height);
      ctx.restore();
    }
  };

  /** Sets the visible range of all other charts to the range of `plot`. */
  const follow = (plot, scale) => {
    if (scale !== "x") return;
    const { min, max } = plot.scales.x;
    shown = min <= whole[0] && max >= whole[1] ? whole : [min, max];
    document.getElementById("whole").hidden = shown === whole;
    for (const other of charts) {
      const { x } = other.scales;
      if (x.min !== min || x.max !== max) other.setScale("x", { min, max });
    }
    for (const other of charts) other.tell(null);
  };

  /** Width of the margins on the left and on the right of a chart, in pixels. */
  const [AXIS, PADDING] = [58, 18];

  /**
   * Draws a chart. `values` are its series, with one value for each edge of a bucket. `tell(bucket, y)`
   * sets the numbers of the key: the numbers of a bucket or, if `bucket` is null, of the visible range.
   * `y` is the vertical position of the pointer in the chart, from 0 at the top to 1 at the bottom.
   */
  const chart = (holder, { height, series, values, y, axis, draw, tell }) => {
    const ink = colour("ink-2");
    const grid = { stroke: colour("line"), width: 1 };
    const font = "11px system-ui, sans-serif";
    holder.replaceChildren();
    // The chart of findings shows their time ranges itself, so it needs no shading.
    const over = holder.closest("figure").dataset.chart === "markers" ? [] : [shade];
    const point = (plot) => {
      const inside = plot.cursor.top >= 0 && plot.over.matches(":hover");
      plot.tell(plot.cursor.idx, inside ? plot.cursor.top / plot.over.clientHeight : null);
    };
    const plot = new uPlot({
      width: holder.clientWidth,
      height,
      legend: { show: false },
      padding: [6, PADDING, 0, 0],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, dist: 4 },
        sync: { key: "time", filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      },
      scales: { x: { time: false, range: (_, min, max) => [min, max] }, y },
      axes: [
        {
          stroke: ink, font, grid, ticks: { ...grid, size: 4 }, size: 26, space: 70,
          values: (_, times) => times.map((time) => seconds(time, times[1] - times[0] || 1)),
        },
        { stroke: ink, font, grid, ticks: { ...grid, size: 4 }, size: AXIS, ...axis },
      ],
      series: [{}, ...series],
      hooks: {
        draw: draw ? [(plot) => clipped(plot, draw), ...over] : over,
        setScale: [follow],
        setCursor: [point],
      },
    }, [edges, ...values], holder);
    // Moves the text alternative from the holder to the canvas.
    const label = holder.getAttribute("aria-label");
    if (label) {
      holder.setAttribute("role", "group");
      const canvas = holder.querySelector("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", label);
    }
    plot.tell = tell;
    plot.setScale("x", { min: shown[0], max: shown[1] });
    tell(null, null);
    return plot;
  };
  const clipped = (plot, draw) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(plot, ctx, bbox);
    ctx.restore();
  };
  /** Draws a chart with rows on a canvas. With `down`, the first row is at the top. */
  const rows = (holder, { count, height, axis, draw, tell, down }) => chart(holder, {
    height,
    series: [{ show: false }],
    values: [edges.map(() => null)],
    y: { range: () => [0, count], dir: down ? -1 : 1 },
    axis: { grid: { show: false }, ticks: { show: false }, ...axis },
    draw,
    tell,
  });
  const stepped = uPlot.paths.stepped({ align: 1 });
  /** Converts one value for each bucket to one value for each edge of a bucket. */
  const onEdges = (values) => [...values, values[values.length - 1]];
  const percentAxis = { values: (_, values) => values.map((value) => `${+value.toFixed(4)} %`) };

  /** Draws the shares of layers on top of each other. */
  const stack = (holder, key, { layers }, colours) => {
    const lines = new Key(key);
    const drawn = layers.filter(({ kind }) => kind !== "idle" && kind !== "untold");
    const fills = drawn.map((layer) =>
      colour(layer.kind.one === undefined ? layer.kind : `${colours}-${layer.kind.one}`));
    let below = Array(data.buckets).fill(0);
    const sums = drawn.map((layer) => (below = plus(below, layer.shares)));
    const figures = layers.map((layer) => {
      const place = drawn.indexOf(layer);
      return lines.item(layer.name, place < 0 ? colour(layer.kind) : fills[place]);
    });
    const card = colour("card");
    return chart(holder, {
      height: 190,
      // Draws the highest sum first, then each lower sum over it.
      series: fills.map((fill) => ({ fill, stroke: card, width: 0.5, paths: stepped })).reverse(),
      values: sums.map((sum) => onEdges(sum).map((share) => share / 1e4)).reverse(),
      y: { range: (_, min, max) => [0, Math.min(100, Math.max(max * 1.1, 2))] },
      axis: percentAxis,
      tell(bucket) {
        lines.tell(bucket);
        layers.forEach((layer, place) => figures[place](percent(at(layer.shares, bucket))));
      },
    });
  };

  /** Draws a line for each of the CPUs with the largest shares, and a line for the mean of the others. */
  const shares = (holder, key, byCpu) => {
    const lines = new Key(key);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const used = byCpu
      .map((values, place) => ({ name: `CPU ${data.cpus.numbers[place]}`, values }))
      .filter(({ values }) => values)
      .sort((one, other) => sum(other.values) - sum(one.values));
    const most = used.slice(0, 8);
    const others = byCpu.length - most.length;
    if (others > 0) {
      const total = used.slice(8).reduce((total, { values }) => plus(total, values), Array(data.buckets).fill(0));
      most.push({ name: `mean of ${others} others`, values: total.map((value) => value / others) });
    }
    const strokes = most.map((_, place) => colour(place === 8 || others > 0 && place === most.length - 1 ? "other" : `one-${place}`));
    const figures = most.map(({ name }, place) => lines.item(name, strokes[place]));
    // If no CPU has a known run in a bucket (the machine was suspended), the lines have a gap.
    const { untold } = data.cpus;
    const isBlank = (bucket) => untold.length > 0 && untold.every((values) => values?.[bucket] === 1e6);
    const drawn = (values) => values.map((share, bucket) => isBlank(bucket) ? null : share / 1e4);
    return chart(holder, {
      height: 150,
      series: strokes.map((stroke) => ({ stroke, width: 1.25, paths: stepped })),
      values: most.map(({ values }) => onEdges(drawn(values))),
      y: { range: (_, min, max) => [0, Math.min(100, Math.max(max * 1.1, 0.01))] },
      axis: percentAxis,
      tell(bucket) {
        lines.tell(bucket);
        most.forEach(({ values }, place) => figures[place](percent(at(values, bucket), 2)));
      },
    });
  };

  /** Draws one row for each CPU. Each bucket shows the shares of the CPU's states. */
  const cpus = (holder, key) => {
    const { numbers, busy, untold, dpc, isr } = data.cpus;
    const lines = new Key(key);
    const nothing = Array(data.buckets).fill(0);
    // States of a CPU: colour, label, and a value that is truthy if the trace records the state.
    const states = [
      ["thread", "threads", busy],
      ["dpc", "DPCs", dpc],
      ["isr", "service routines", isr],
      ["idle", "idle", busy],
      ["untold", "not known", !busy || untold.some((values) => values)],
    ];
    const fills = states.map(([state]) => colour(state));
    const figures = states.map(([, name, isTold], place) => isTold ? lines.item(name, fills[place]) : () => {});
    /** Returns the share of each state of a CPU, in the order of `states`. The shares sum to 1. */
    const of = (cpu, bucket) => {
      const share = (values) => at(values ?? nothing, bucket) / 1e6;
      const [inIsr, inDpc] = [share(isr?.[cpu]), share(dpc?.[cpu])];
      const interrupted = Math.min(1, inIsr + inDpc);
      const [isrPart, dpcPart] = [Math.min(inIsr, 1), interrupted - Math.min(inIsr, 1)];
      const thread = Math.min(share(busy?.[cpu]), 1 - interrupted);
      const rest = 1 - interrupted - thread;
      const untoldPart = busy ? Math.min(share(untold[cpu]), rest) : rest;
      return [thread, dpcPart, isrPart, rest - untoldPart, untoldPart];
    };
    const height = Math.max(4, Math.min(20, 420 / numbers.length));
    return rows(holder, {
      count: numbers.length,
      height: Math.max(80, Math.round(height * numbers.length) + 34),
      down: true,
      axis: {
        splits: () => {
          const step = Math.ceil(14 / height);
          return numbers.map((_, place) => place).filter((place) => place % step === 0).map((place) => place + 0.5);
        },
        values: (_, places) => places.map((place) => `CPU ${numbers[Math.floor(place)]}`),
      },
      draw(plot, ctx, bbox) {
        const [from, to] = visible();
        const row = bbox.height / numbers.length;
        const deep = row > 6 * devicePixelRatio ? row - 2 * devicePixelRatio : row;
        ctx.fillStyle = fills[3];
        for (let cpu = 0; cpu < numbers.length; cpu++) ctx.fillRect(bbox.left, bbox.top + cpu * row, bbox.width, deep);
        for (let bucket = from; bucket < to; bucket++) {
          const left = Math.floor(plot.valToPos(edges[bucket], "x", true));
          const right = Math.ceil(plot.valToPos(edges[bucket + 1], "x", true));
          for (let cpu = 0; cpu < numbers.length; cpu++) {
            let top = bbox.top + cpu * row + deep;
            // Draws service routines at the bottom, then DPCs and threads above them.
            const weights = of(cpu, bucket);
            for (const place of [2, 1, 0]) {
              const part = weights[place] * deep;
              top -= part;
              ctx.fillStyle = fills[place];
              if (part > 0) ctx.fillRect(left, top, right - left, part);
            }
            const untold = weights[4] * deep;
            ctx.fillStyle = fills[4];
            if (untold > 0) ctx.fillRect(left, bbox.top + cpu * row, right - left, untold);
          }
        }
      },
      tell(bucket, y) {
        lines.tell(bucket);
        const one = y == null ? null : Math.min(numbers.length - 1, Math.floor(y * numbers.length));
        const cpus = one == null ? numbers.map((_, cpu) => cpu) : [one];
        const sum = cpus.map((cpu) => of(cpu, bucket)).reduce(plus);
        if (one != null) lines.when.textContent += `, CPU ${numbers[one]}`;
        figures.forEach((figure, place) => figure(percent(sum[place] / cpus.length * 1e6)));
      },
    });
  };

  /** Draws the number of DPCs by time and duration. */
  const durations = (holder, key, { bounds_ns, limit_ns, cells }) => {
    const lines = new Key(key);
    const all = [];
    for (let cell = 0; cell < cells.length; cell += 3) all.push(cells.slice(cell, cell + 3));
    const limit = bounds_ns.indexOf(limit_ns);
    const classes = all.map(([, place]) => place);
    const least = Math.min(limit, classes.reduce((one, other) => Math.min(one, other)));
    const greatest = Math.max(limit + 1, classes.reduce((one, other) => Math.max(one, other)));
    const count = greatest - least + 1;
    const most = Math.log(1 + all.reduce((one, [, , count]) => Math.max(one, count), 0));
    const [few, many] = [parts(colour("few")), parts(colour("many"))];
    const named = (place) => place === 0 ? `up to ${duration(bounds_ns[0])}`
      : place === bounds_ns.length ? `over ${duration(bounds_ns[place - 1])}`
      : `${duration(bounds_ns[place - 1])} to ${duration(bounds_ns[place])}`;
    const figure = lines.item("DPCs", colour("many"));
    return rows(holder, {
      count,
      height: Math.max(150, count * 11 + 34),
      axis: {
        splits: () => bounds_ns.map((_, place) => place)
          .filter((place) => place >= least && place < greatest && Math.log10(bounds_ns[place]) % 1 === 0)
          .map((place) => place + 1 - least),
        values: (_, places) => places.map((place) => duration(bounds_ns[place - 1 + least])),
        grid: { stroke: colour("line"), width: 1 },
      },
      draw(plot, ctx, bbox) {
        const row = bbox.height / count;
        for (const [bucket, place, number] of all) {
          const left = Math.floor(plot.valToPos(edges[bucket], "x", true));
          const right = Math.ceil(plot.valToPos(edges[bucket + 1], "x", true));
          const weight = Math.log(1 + number) / most;
          ctx.fillStyle = mixed([few, 1 - weight], [many, weight]);
          ctx.fillRect(left, bbox.top + (greatest - place) * row, right - left, Math.ceil(row));
        }
        const line = Math.round(bbox.top + (greatest - limit) * row) + 0.5;
        ctx.strokeStyle = colour("problem");
        ctx.lineWidth = devicePixelRatio;
        ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, line);
        ctx.lineTo(bbox.left + bbox.width, line);
        ctx.stroke();
      },
      tell(bucket, y) {
        lines.tell(bucket);
        const place = y == null ? null : Math.max(least, greatest - Math.floor(y * count));
        const [from, to] = visible();
        const isMeant = ([when, which]) => (bucket == null ? when >= from && when < to : when === bucket)
          && (place == null || which === place);
        const sum = all.filter(isMeant).reduce((total, [, , number]) => total + number, 0);
        if (place != null) lines.when.textContent += `, ${named(place)}`;
        figure(grouped(sum));
      },
    });
  };

  /** Draws rows of bands and ticks, each row below its name. */
  const bands = (holder, key, tracks) => {
    const lines = new Key(key);
    // On paper and phones, only the colour identifies a band that is too narrow for its name.
    const named = new Map();
    for (const track of tracks) for (const [name, from, to] of track.bands) {
      if (!track.names[name]) continue;
      const known = named.get(track.names[name]) ?? { fill: track.colour(track.names[name]), ns: 0 };
      named.set(track.names[name], { ...known, ns: known.ns + to - from });
    }
    for (const [name, { fill, ns }] of named) lines.item(name, fill)(`${(ns / 1e9).toFixed(3)} s`);
    const font = "system-ui, sans-serif";
    const ruler = document.createElement("canvas").getContext("2d");
    ruler.font = `11px ${font}`;
    const texts = tracks.map(({ name }) => wrapped(ruler, name, holder.clientWidth - AXIS - PADDING - 4, 4));
    const above = 13 * Math.max(...texts.map(({ length }) => length)) + 1;
    return rows(holder, {
      count: tracks.length,
      height: tracks.length * (above + 20) + 34,
      down: true,
      axis: { values: () => [] },
      draw(plot, ctx, bbox) {
        const dots = devicePixelRatio;
        const row = bbox.height / tracks.length;
        ctx.textBaseline = "middle";
        ctx.textAlign = "left";
        ctx.font = `${11 * dots}px ${font}`;
        const ink = colour("ink");
        tracks.forEach((track, place) => {
          const top = bbox.top + place * row;
          const [bar, deep] = [top + above * dots, row - (above + 3) * dots];
          ctx.fillStyle = ink;
          // Lines are drawn from the bottom up: the last line is directly above its bar.
          texts[place].toReversed().forEach((text, line) =>
            ctx.fillText(text, bbox.left + 2, bar - (7 + 13 * line) * dots));
          ctx.fillStyle = colour("idle");
          ctx.fillRect(bbox.left, bar, bbox.width, deep);
          for (const [name, from, to] of track.bands) {
            const left = Math.max(bbox.left, plot.valToPos(from / 1e9, "x", true));
            const right = Math.min(bbox.left + bbox.width, plot.valToPos(to / 1e9, "x", true));
            if (right < bbox.left || left > bbox.left + bbox.width) continue;
            const fill = track.colour(track.names[name]);
            ctx.fillStyle = fill;
            // Draws short bands with a minimum width, so that they stay visible.
            ctx.fillRect(left, bar, Math.max(right - left - (right - left > 4 ? 1 : 0), 2), deep);
            const told = fitted(ctx, track.names[name] ?? "", right - left - 8);
            if (told) {
              ctx.fillStyle = inkOn(fill);
              ctx.fillText(told, left + 4, bar + deep / 2);
            }
          }
          ctx.fillStyle = colour("accent");
          for (const [bucket] of track.ticks) {
            const left = Math.round(plot.valToPos(edges[bucket], "x", true));
            const right = plot.valToPos(edges[bucket + 1], "x", true);
            ctx.fillRect(left, bar, Math.max(dots, right - left > 6 ? 2 * dots : dots), deep);
          }
        });
      },
      tell(bucket, y) {
        lines.tell(bucket);
        const told = tracks.filter((_, place) => y == null || place === Math.floor(y * tracks.length));
        if (bucket == null) return;
        const [from, to] = [edges[bucket] * 1e9, edges[Math.min(bucket + 1, data.buckets)] * 1e9];
        const texts = told.map((track) => {
          const here = track.bands.filter((band) => band[1] < to && band[2] > from).map(([name]) => track.names[name]);
          const events = track.ticks.filter(([when]) => when === bucket).map(([, count]) => `${grouped(count)}`);
          const what = [...new Set([...here, ...events])].filter(Boolean).join(", ");
          return here.length + events.length > 0 ? [track.name, what].filter(Boolean).join(": ") : null;
        });
        lines.when.textContent += ` ${texts.filter(Boolean).join(" · ")}`;
      },
    });
  };

  const tracks = (holder, key) => {
    const { focus, input, freezes } = data.tracks;
    const coloured = (track, colour) => ({ ...track, colour });
    // A process without a colour in the chart of CPU time gets a colour that no other process in focus has.
    const owners = [...new Set(focus.flatMap((track) => track.names))];
    const taken = new Set(owners.map(ofProcess));
    const free = Array.from({ length: 9 }, (_, place) => colour(`one-${place}`)).filter((fill) => !taken.has(fill));
    const others = owners.filter((name) => ofProcess(name) === colour("other"));
    const ofFocused = (name) => {
      const place = others.indexOf(name);
      return place < 0 || free.length === 0 ? ofProcess(name) : free[place % free.length];
    };
    return bands(holder, key, [
      ...focus.map((track) => coloured(track, ofFocused)),
      ...input.map((track) => coloured(track, ofProcess)),
      // The label of the row already has the name of the frozen process.
      ...freezes.map((track) => ({ ...track, names: track.names.map(() => ""), colour: () => colour("frozen") })),
    ]);
  };

  const markers = (holder, key) => bands(holder, key, data.markers.map((marker) => {
    const sentence = document.querySelector(`#finding-${marker.number} .sentence`)?.textContent ?? "";
    // The first part of a sentence names the finding and its time. Causes and costs are in the cards above.
    const [what] = sentence.split(/[.:;](?: |$)/);
    return {
      name: `${marker.number}  ${what}`,
      names: [""],
      bands: [[0, marker.from_ns, marker.to_ns]],
      ticks: [],
      colour: () => colour(marker.severity),
    };
  }));

  const ranks = (holder, key) => {
    const lines = new Key(key);
    const strokes = data.ranks.map(({ name }, place) => {
      const known = data.processes?.layers.find((layer) => layer.name === name)?.kind.one;
      return colour(`one-${known ?? 8 - place % 9}`);
    });
    const figures = data.ranks.map(({ name }, place) => lines.item(name, strokes[place]));
    const highest = ([from, to], values) => {
      const known = values.slice(from, to).filter((rank) => rank != null);
      return known.length > 0 ? `rank ${known.reduce((one, other) => Math.max(one, other))}` : "did not run";
    };
    return chart(holder, {
      height: 150,
      series: strokes.map((stroke) => ({
        stroke, width: 1, paths: stepped, spanGaps: true, points: { show: true, size: 5, fill: stroke, stroke },
      })),
      values: data.ranks.map((line) => [...line.ranks, null]),
      y: { range: (_, min, max) => [0, (max ?? 0) + 0.5] },
      axis: { incrs: [1, 2, 5, 10, 20, 50] },
      tell(bucket) {
        lines.tell(bucket);
        const range = bucket == null ? visible() : [bucket, bucket + 1];
        data.ranks.forEach((line, place) => figures[place](highest(range, line.ranks)));
      },
    });
  };

  const drawers = {
    markers,
    tracks,
    processes: (holder, key) => stack(holder, key, data.processes, "one"),
    priorities: (holder, key) => stack(holder, key, data.priorities, "band"),
    cpus,
    dpc: (holder, key) => shares(holder, key, data.cpus.dpc),
    isr: (holder, key) => shares(holder, key, data.cpus.isr),
    dpc_durations: (holder, key) => durations(holder, key, data.dpc_durations),
    ranks,
  };
  const figures = document.querySelectorAll("figure[data-chart]");
  const draw = () => {
    const before = charts;
    charts = [];
    before.forEach((plot) => plot.destroy());
    for (const figure of figures) {
      const holder = figure.querySelector(".plot");
      try {
        const plot = drawers[figure.dataset.chart](holder, figure.querySelector(".key"));
        plot.figure = figure;
        charts.push(plot);
      } catch (error) {
        errors.push(`chart ${figure.dataset.chart}: ${error}`);
        holder.textContent = `This chart cannot be drawn: ${error}`;
      }
    }
  };

  // The system decides between light and dark until the user presses the button.
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const dress = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    draw();
  };
  for (const theme of ["dark", "light"]) if (wishes.has(theme)) root.dataset.theme = theme;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    dress();
  });
  prefersDark.addEventListener("change", dress);

  document.getElementById("whole")?.addEventListener("click", () =>
    charts[0]?.setScale("x", { min: whole[0], max: whole[1] }));
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone shows and hides its bars, which changes only the height
    width = innerWidth;
    draw();
  });

  // The page is printed in light colours, as wide as the sheet. Collapsed details stay collapsed, and queries
  // are left out.
  let screen = null;
  addEventListener("beforeprint", () => {
    screen = { theme: root.dataset.theme };
    root.dataset.theme = "light";
    figures.forEach((figure) => { figure.querySelector(".plot").style.width = "700px"; });
    draw();
  });
  addEventListener("afterprint", () => {
    if (screen?.theme) root.dataset.theme = screen.theme;
    else delete root.dataset.theme;
    figures.forEach((figure) => { figure.querySelector(".plot").style.width = ""; });
    draw();
  });

  dress();

  // If the address ends with `#check`, the page tests itself.
  const isPainted = ({ ctx, bbox }) => {
    const pixels = new Uint32Array(ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height).data.buffer);
    const colours = new Set();
    for (let pixel = 0; pixel < pixels.length && colours.size < 3; pixel++) colours.add(pixels[pixel]);
    return colours.size > 2;
  };
  const pause = () => new Promise((done) => setTimeout(done, 100));
  /** Tests the page. Returns a list of faults. */
  const faults = async () => {
    const wrong = [];
    if (charts.length !== figures.length) wrong.push(`${charts.length} of ${figures.length} charts are drawn`);
    charts.forEach((plot) => {
      const name = plot.figure.dataset.chart;
      if (!isPainted(plot)) wrong.push(`chart ${name} is empty`);
      plot.tell(1, 0.5);
      plot.setCursor({ left: plot.over.clientWidth / 2, top: 1 });
      const told = plot.figure.querySelector(".when").textContent;
      if (!told.startsWith("at ")) wrong.push(`chart ${name} does not show its values: ${told}`);
      plot.setCursor({ left: -10, top: -10 });
    });
    if (root.scrollWidth > innerWidth) wrong.push(`${root.scrollWidth} px wide in a window of ${innerWidth} px`);
    if (charts.length > 0) {
      const [from, to] = [0.25, 0.5].map((share) => whole[0] + (whole[1] - whole[0]) * share);
      charts[charts.length - 1].setScale("x", { min: from, max: to });
      await pause();
      const differ = charts.filter(({ scales }) => scales.x.min !== from || scales.x.max !== to);
      if (differ.length > 0) wrong.push(`${differ.length} charts do not show the same range`);
      document.getElementById("whole").click();
      await pause();
      if (charts.some(({ scales }) => scales.x.min !== whole[0])) wrong.push("the whole range is not shown again");
    }
    return wrong;
  };
  const check = async () => {
    await pause();
    const wrong = await faults().catch((error) => [String(error)]);
    wrong.push(...errors);
    root.dataset.check = wrong.length > 0
      ? `wrong: ${wrong.join("; ")}`
      : `fine: ${charts.length} charts in ${innerWidth} px`;
    // Sends the result to a page that shows this report in a frame, for example with a phone's width.
    if (parent !== window) parent.postMessage(root.dataset.check, "*");
  };
  if (wishes.has("check")) addEventListener("load", check);
})();
