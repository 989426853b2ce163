// Answers as pictures, tables and sentences.

const PLACES = { hmb: "host memory", dram: "DRAM on the drive", cxl: "memory over CXL", sram: "the controller's own memory", host: "entries that the host sent along" };
const AXES = { hmb: "host memory, bytes", span: "working set, bytes", depth: "requests in flight" };
// Parts of a request's time, as people speak of them, in the order of the way.
const PARTS = [
  ["host and link", ["submission", "fetch", "link_wait", "link", "completion"]],
  ["waits in the drive", ["queue", "gate", "firmware_wait", "buffer_wait", "program_wait"]],
  ["firmware", ["firmware"]],
  ["map", ["map_sram", "map_dram", "map_hmb", "map_pm", "map_cxl", "map_host", "map_flash"]],
  ["waits for flash", ["die_wait", "bus_wait", "suspended"]],
];
const REST = "flash and data";

const whole = (n) => Math.round(n).toLocaleString("en-US").replaceAll(",", "\u202f");
const microseconds = (ns) => (ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms` : `${(ns / 1e3).toPrecision(3)} µs`);
const times = (ratio) => `${ratio.toFixed(ratio < 10 ? 1 : 0)} times`;

// What a run came to, in the words of this page.
function told({ report, measured }) {
  const job = report.jobs[report.jobs.length - 1], { hmb, requests } = report.lodger;
  return { iops: job.read.iops + job.write.iops, hmb, requests, read: job.read, write: job.write, ...measured };
}

function draw(lodger, place, picture) {
  const element = document.getElementById(place);
  element.innerHTML = lodger.quickly({ ask: "draw", ...picture }).html;
  element.querySelectorAll("figure").forEach(enliven);
}

function marksOf(drive, state) {
  const marks = [];
  const most = offers(drive).hmb.at(-1);
  for (const bytes of [32 * MIB, 64 * MIB, 128 * MIB]) if (bytes <= most) marks.push({ at: bytes, name: "" });
  const asks = drive.hmb.preferred_bytes;
  if (!marks.some((mark) => mark.at === asks)) marks.push({ at: asks, name: "asks for" });
  else marks.find((mark) => mark.at === asks).name = "asks for";
  // Names stand one below the other: the last place has the first, as curves are high there.
  marks.sort((a, b) => a.at - b.at);
  return [marks.pop(), ...marks];
}

function valueText(over, at) {
  return over === "hmb" ? hmbText(at) : over === "span" ? bytesText(at) : `${at} in flight`;
}

function showCurve(lodger, drive, state, points) {
  const picture = {
    title: "Requests a second", says: `measured at ${points.length} places; the table below has the values`,
    axes: [AXES[state.over], "requests a second"],
    lines: [{ name: "requests a second", points: points.map((point) => [point.at, point.iops]) }],
    marks: state.over === "hmb" ? marksOf(drive, state) : [],
  };
  draw(lodger, "curve", picture);
  const bars = points.map(({ at, map }) => {
    const parts = Object.entries(map.hits).filter(([, hits]) => hits > 0)
      .map(([tier, hits]) => [tier === "host" ? PLACES.host : `found in ${PLACES[tier] || tier}`, hits / map.lookups]);
    const found = map.lookups ? (100 * (map.lookups - map.misses)) / map.lookups : 0;
    return { name: valueText(state.over, at), value: map.lookups ? `${found.toFixed(1)} %` : "none asked", parts };
  });
  draw(lodger, "hits", {
    title: "Map entries at hand", bars,
    says: "by the memory that had them; what is left empty had to be read from flash first",
  });
  showValues(state, points);
}

function showValues(state, points) {
  const cell = (text) => `<td class="r">${text}`;
  const mean = ({ read, write }) => {
    const ios = read.total_ios + write.total_ios;
    return ios ? microseconds((read.clat_ns.mean * read.total_ios + write.clat_ns.mean * write.total_ios) / ios) : "";
  };
  const p99 = ({ read, write }) => {
    const of = read.total_ios ? read : write;
    return of.total_ios ? microseconds(of.clat_ns.percentile["99.000000"]) : "";
  };
  const name = { hmb: "host memory, at most", span: "working set", depth: "requests" }[state.over];
  const rows = points.map((point) =>
    `<tr${point.at === state[state.over] ? ' aria-current="true"' : ""}><th scope="row">${valueText(state.over, point.at)}` +
    cell(whole(point.iops)) + cell(mean(point)) + cell(p99(point)) + cell(hmbText(point.hmb.granted_bytes)));
  document.getElementById("values").innerHTML =
    `<table><tr><th scope="col">${name}` + ["requests a second", `mean latency`, state.reads ? "99 % of reads within" : "99 % within", "given"]
      .map((head) => `<th scope="col" class="r">${head}`).join("") + rows.join("") + "</table>";
}

function showParts(lodger, point) {
  const bars = [];
  for (const [direction, kinds] of Object.entries(point.breakdown)) {
    for (const [kind, sum] of Object.entries(kinds)) {
      if (!sum.requests || kind === "p99_9") continue;
      bars.push({ kind: kind === "mean" ? `${direction}s, mean` : `${direction}s near ${kind}`, sum });
    }
  }
  const longest = Math.max(...bars.map(({ sum }) => sum.latency_ns));
  draw(lodger, "parts", {
    title: "With what is chosen now", says: "from the request to its completion, by what it waits for",
    bars: bars.map(({ kind, sum }) => ({ name: kind, value: microseconds(sum.latency_ns), parts: partsOf(sum, longest) })),
  });
}

function partsOf(sum, longest) {
  const left = { ...sum.parts_ns };
  const parts = PARTS.map(([name, keys]) => {
    let ns = 0;
    for (const key of keys) { ns += left[key] || 0; delete left[key]; }
    return [name, ns / longest];
  });
  parts.push([REST, Object.values(left).reduce((a, b) => a + b, 0) / longest]);
  return parts;
}

function showStrip(lodger, answer) {
  const { over_time: table, report } = answer;
  const seconds = table.start_ns.map((ns) => ns / 1e9);
  const rate = (name) => table[name].map((n, at) => [seconds[at], n / (table.length_ns[at] / 1e9)]);
  const requests = table.read_ios.map((n, at) => [seconds[at], (n + table.write_ios[at]) / (table.length_ns[at] / 1e9)]);
  // The last interval may be too short to have a rate.
  const usual = table.length_ns[0];
  const steady = (points) => points.filter((_, at) => table.length_ns[at] * 2 >= usual);
  const html = [
    ["Requests over time", "requests a second", requests], ["Garbage collection over time", "4 KiB pages a second", rate("gc_moved_pages")],
  ].map(([title, axis, points]) => lodger.quickly({
    ask: "draw", title, says: axis === "requests a second" ? "reads and writes" : "moved out of the way to win room", axes: ["time, s", axis],
    lines: [{ name: axis, points: steady(points) }],
  }).html);
  const place = document.getElementById("strip");
  place.innerHTML = html.join("");
  place.querySelectorAll("figure").forEach(enliven);
  const moved = table.gc_moved_pages.reduce((a, b) => a + b, 0), { waf, requests: all } = report.lodger;
  document.getElementById("strip-says").textContent =
    (moved ? `Collection moved ${whole(moved)} pages; the drive wrote ${waf.toFixed(2)} bytes for each it was given. When it begins, requests have to share the flash with it.`
      : `Nothing had to be collected yet: the drive wrote ${waf ? waf.toFixed(2) : 1} bytes for each it was given.`) +
    ` A run of ${whole(all)} requests of its own, on a drive long written at random, with writes of 64 KiB and without flash in single-bit mode, so that collection begins soon.`;
}

// One thing to see, from what was measured.
function insight(drive, state, points) {
  const here = points.find((point) => point.at === state[state.over]) || points[0];
  const what = `${drive.title}, ${state.reads === 100 ? "random reads" : state.reads ? `${state.reads} % random reads` : "random writes"} over ${bytesText(state.span)}, ${state.depth} in flight`;
  const now = `${what}: ${whole(here.iops)} requests a second.`;
  if (state.over !== "hmb") {
    const best = points.reduce((a, b) => (b.iops > a.iops ? b : a)), worst = points.reduce((a, b) => (b.iops < a.iops ? b : a));
    return `${now} Over the curve, from ${whole(worst.iops)} (${valueText(state.over, worst.at)}) to ${whole(best.iops)} (${valueText(state.over, best.at)}).`;
  }
  const off = points[0], best = Math.max(...points.map((point) => point.iops));
  const enough = points.find((point) => point.iops >= 0.95 * best);
  const share = (point) => (point.map.lookups ? 1 - point.map.misses / point.map.lookups : 1);
  if (best > 1.05 * off.iops) {
    const asks = drive.hmb.preferred_bytes;
    const more = enough.at < asks ? ` Beyond ${hmbText(enough.at)} more memory adds little.` : ` That is all the drive asks for.`;
    return `${now} Without host memory ${whole(off.iops)}; ${hmbText(enough.at)} make it ${times(enough.iops / off.iops)} as many.${more}`;
  }
  const why = share(off) > 0.9 ? `the drive has ${(100 * share(off)).toFixed(0)} % of the map entries at hand without it`
    : Math.max(...points.map(share)) < 0.5 ? "the working set is too large for all of it: nearly every look-up goes to flash"
    : "something else is the bottleneck";
  return `${now} Host memory buys nothing here: ${why}.`;
}
