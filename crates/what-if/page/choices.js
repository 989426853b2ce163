// What is chosen: read from the link, shown by the controls, turned into questions.

const MIB = 2 ** 20, GIB = 2 ** 30;
// Requests that a point rests on: those that let the drive settle, and those that are measured.
const SETTLE = 4000, MEASURED = 8000;
// Addresses beyond what any host memory maps need no warming up.
const TOUCH_MAX = 128 * GIB;
const SEED = 1;
const DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const READS = [100, 95, 90, 80, 70, 50, 30, 0];
// Host memory, MiB: what Linux gives at most is 128.
const HMB = [0, 8, 12, 16, 24, 32, 48, 64, 96, 128];
const DEFAULTS = { drive: "rc100-480", span: 16 * GIB, hmb: 32 * MIB, depth: 32, reads: 100, check: "none", map: "", over: "hmb" };

const bytesText = (bytes) =>
  bytes >= GIB ? `${+(bytes / GIB).toFixed(2)} GiB` : bytes >= MIB ? `${+(bytes / MIB).toFixed(2)} MiB` : `${+(bytes / 1024).toFixed(2)} KiB`;
// As the command takes it, exactly.
const sizeWord = (bytes) =>
  bytes === 0 ? "off" : bytes % GIB === 0 ? `${bytes / GIB}GiB` : bytes % MIB === 0 ? `${bytes / MIB}MiB` : `${bytes / 1024}KiB`;
const hmbText = (bytes) => (bytes === 0 ? "none" : bytesText(bytes));

function sizeOf(word) {
  if (word === "off") return 0;
  const found = /^(\d+(?:\.\d+)?)(KiB|MiB|GiB)$/.exec(word);
  return found ? found[1] * { KiB: 1024, MiB: MIB, GiB: GIB }[found[2]] : NaN;
}

// The drive as chosen: its own facts, or those with its map elsewhere.
function facts(drives, state) {
  const drive = drives.find((drive) => drive.name === state.drive);
  const place = drive.places.find((place) => place.map === state.map);
  return { ...drive, sets: [], ...place };
}

// Values that the ranges offer, for this drive.
function offers(drive) {
  const spans = [];
  for (let span = 64 * MIB; span < drive.capacity_bytes; span *= 2) {
    spans.push(span);
    if (span >= GIB && span * 1.5 < drive.capacity_bytes) spans.push(span * 1.5);
  }
  const asks = drive.hmb ? drive.hmb.preferred_bytes : 0;
  const hmb = HMB.map((mib) => mib * MIB);
  for (let more = 256 * MIB; more < asks; more *= 2) hmb.push(more);
  if (asks) hmb.push(asks);
  return { span: spans, hmb: sorted(hmb), depth: DEPTHS, reads: READS };
}

const sorted = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);
const nearest = (numbers, to) => numbers.reduce((best, n) => (Math.abs(n - to) < Math.abs(best - to) ? n : best));

// A state in which everything is one of the values offered.
function fitted(state, drives) {
  const fit = { ...state };
  const drive = drives.find((drive) => drive.name === fit.drive) || drives.find((drive) => drive.name === DEFAULTS.drive);
  fit.drive = drive.name;
  if (!drive.places.some((place) => place.map === fit.map)) fit.map = "";
  const now = facts(drives, fit);
  for (const [key, values] of Object.entries(offers(now))) fit[key] = nearest(values, Number.isFinite(fit[key]) ? fit[key] : DEFAULTS[key]);
  if (!["none", "crc", "mac"].includes(fit.check) || !now.integrity) fit.check = "none";
  if (!now.hmb) fit.hmb = 0;
  if (!["hmb", "span", "depth"].includes(fit.over)) fit.over = DEFAULTS.over;
  if (!now.hmb && fit.over === "hmb") fit.over = "span";
  return fit;
}

function toLink(state) {
  const words = { ...state, span: sizeWord(state.span), hmb: sizeWord(state.hmb), map: state.map || "built" };
  return "#" + new URLSearchParams(words);
}

function fromLink(link) {
  const words = new URLSearchParams(link.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    if (!words.has(key)) continue;
    const word = words.get(key);
    state[key] = key === "span" || key === "hmb" ? sizeOf(word) : typeof DEFAULTS[key] === "number" ? parseInt(word, 10) : word;
  }
  return state;
}

const filled = (id, values) =>
  document.getElementById(id).textContent.replace(/\{(\w+)\}/g, (_, name) => values[name]);

function loadOf(state) {
  const mix = `randrw\nrwmixread=${state.reads}`;
  const megabytes = (bytes) => `${bytes / MIB}m`;
  return {
    depth: state.depth,
    rw: state.reads === 100 ? "randread" : state.reads === 0 ? "randwrite" : mix,
    span: megabytes(state.span),
    touch: megabytes(Math.min(state.span, TOUCH_MAX)),
    warning: state.reads === 100 ? "" : "; it then DESTROYS what is there",
  };
}

function setup(drive, state, more = []) {
  const sets = [...drive.sets];
  if (state.check !== "none") sets.push([drive.integrity, state.check]);
  return {
    drive: state.drive,
    sets: [...sets, ...more],
    hmb: sizeWord(state.hmb),
    // A drive that is written to is as it is after long use.
    precondition: state.reads === 100 ? "sequential" : "random",
    seed: SEED,
  };
}

// What `lodger simulate --breakdown` answers too.
function question(drive, state) {
  const job = filled("job-file", { ...loadOf(state), settle: SETTLE, measured: MEASURED });
  return { ask: "run", setup: setup(drive, state), job, breakdown: true };
}

// A longer run with writes. Flash run in single-bit mode would take them for a long while before anything is collected.
function collectionQuestion(drive, state) {
  const measured = Math.round(14000 / (1 - state.reads / 100));
  const job = filled("collection-file", { ...loadOf(state), measured });
  const more = drive.slc ? [["ftl.slc_superblocks", "0"]] : [];
  return { ask: "run", setup: setup(drive, state, more), job, timeline: true };
}

// States along the curve. Amounts of equal effect are asked for once: a host gives no more than the drive asks for,
// and less than its minimum is none.
function along(drive, state) {
  if (state.over !== "hmb") return offers(drive)[state.over].map((value) => ({ at: value, state: { ...state, [state.over]: value } }));
  const { preferred_bytes: asks, min_bytes: least } = drive.hmb;
  return offers(drive).hmb.map((bytes) => ({ at: bytes, state: { ...state, hmb: bytes < least ? 0 : Math.min(bytes, asks) } }));
}

const quoted = (word) => (/^[\w.,:=+%/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function command(question) {
  const { drive, sets, hmb, precondition, seed } = question.setup;
  const options = sets.map(([key, value]) => ` --set ${quoted(`${key}=${value}`)}`).join("");
  const look = question.breakdown ? " --breakdown" : "";
  return `lodger simulate - --drive ${drive}${options} --hmb ${hmb} --precondition ${precondition} --seed ${seed}${look} <<'JOB'\n${question.job}JOB`;
}
