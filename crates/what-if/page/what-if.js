// The page at work.

const $ = (id) => document.getElementById(id);
const RANGES = ["span", "hmb", "depth", "reads"], SELECTS = ["drive", "check", "map", "over"];
// One thing to see a step; `gain` says how many times host memory raises the rate: at least, or at most.
const STEPS = [
  { title: "A small working set", set: { span: 512 * MIB, hmb: 0 }, gain: [0.95, 1.05], text: "512 MiB of addresses need half a MiB of map. The controller has that much itself: lent memory changes nothing." },
  { title: "Beyond the controller's memory", set: { span: 16 * GIB, hmb: 0 }, gain: [1.5, 99], text: "Over 16 GiB the map no longer fits. Each read now waits for a second one, of the map: look at the part “map” of a request's time." },
  { title: "Lend it memory", set: { span: 16 * GIB, hmb: 38 * MIB }, gain: [1.5, 99], text: "With what the drive asks for, the whole map of the working set is at hand again, over the link. That is what the Host Memory Buffer is for." },
  { title: "A little is as good as none", set: { span: 16 * GIB, hmb: 16 * MIB }, gain: [1.5, 99], text: "16 MiB reach 12 of the 16 GiB, and yet most is lost: the drive replaces its map in large pieces, and each leaves before it is whole." },
  { title: "Too much asked", set: { span: 128 * GIB, hmb: 38 * MIB }, gain: [0.5, 1.05], text: "Over 128 GiB no memory that a host lends to this drive is enough. The curve is flat, at the bottom." },
  { title: "One at a time", set: { depth: 1, hmb: 38 * MIB }, gain: [1.2, 3], text: "With one request in flight the gain is what one look-up in flash costs, less than twice. Deep queues gain more, because map reads get in each other's way." },
  { title: "Trust the host less", set: { check: "mac", hmb: 38 * MIB, span: 24 * GIB }, gain: [0.5, 1.05], text: "Tags against a host that changes what it was lent cost room, not time. With them, the memory that just reached 24 GiB no longer does. Switch the protection off to see what it was." },
  { title: "Writes", set: { reads: 50, span: 8 * GIB, hmb: 38 * MIB }, gain: [1.5, 99], text: "Writes need the map as well. Look at garbage collection at the end: when it begins, requests share the flash with it." },
  { title: "Another memory", set: { map: "dram", over: "span" }, text: "The same drive with DRAM of its own: the curve over the working set no longer falls. Choose “as built” to compare." },
];

let lodger, drives, state, generation = 0, stepAt = -1, firstCurve;
const begun = performance.now();

async function start() {
  lodger = await Lodger.load();
  ({ drives } = lodger.quickly({ ask: "about" }));
  state = fitted(fromLink(location.hash), drives);
  for (const drive of drives) $("drive").add(new Option(`${drive.title} (${drive.name})`, drive.name));
  for (const id of ["asked", "steps", "trace", "same", "parts-title", "strip-title"]) $(id).hidden = false;
  STEPS.forEach((_, at) => {
    const item = document.createElement("li");
    item.append(button(String(at + 1), STEPS[at].title, () => take(at)));
    $("step-list").append(item);
  });
  $("step-next").onclick = () => take((stepAt + 1) % STEPS.length);
  $("asked").addEventListener("submit", (event) => event.preventDefault());
  for (const id of RANGES) $(id).addEventListener("input", () => choose({ [id]: offers(facts(drives, state))[id][$(id).value] }));
  for (const id of SELECTS) $(id).addEventListener("change", () => choose({ [id]: $(id).value }));
  addEventListener("hashchange", () => { if (location.hash !== toLink(state)) { state = fitted(fromLink(location.hash), drives); show(); } });
  for (const copier of document.querySelectorAll("[data-copy]")) copier.addEventListener("click", () => copy(copier));
  step(-1);
  startTraces();
  show();
}

function button(text, label, pressed) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: text, title: label, onclick: pressed });
  button.setAttribute("aria-label", label);
  return button;
}

function choose(change, at = -1) {
  state = fitted({ ...state, ...change }, drives);
  history.replaceState(null, "", toLink(state));
  step(at);
  show();
}

const take = (at) => choose({ ...DEFAULTS, ...STEPS[at].set }, at);

function step(at) {
  stepAt = at;
  $("step-next").textContent = at < 0 ? "Begin" : at + 1 < STEPS.length ? "Next" : "Again";
  $("step-title").textContent = at < 0 ? "What to see, step by step" : `${at + 1}. ${STEPS[at].title}`;
  $("step-text").textContent = at < 0 ? "Each step sets the controls and shows one thing. Then move what you like." : STEPS[at].text;
  $("step-list").querySelectorAll("button").forEach((button, i) => (i === at ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current")));
}

function showControls(drive) {
  const offered = offers(drive);
  const texts = { span: bytesText(state.span), hmb: drive.hmb ? hmbText(state.hmb) : "not used", depth: state.depth, reads: `${state.reads} %` };
  for (const id of RANGES) {
    const input = $(id);
    Object.assign(input, { min: 0, max: offered[id].length - 1, step: 1 });
    input.value = offered[id].indexOf(state[id]);
    input.setAttribute("aria-valuetext", texts[id]);
    document.querySelector(`output[for=${id}]`).value = texts[id];
  }
  $("map").replaceChildren(new Option(`${PLACES[drives.find((d) => d.name === state.drive).map]} (as built)`, ""),
    ...drives.find((d) => d.name === state.drive).places.map((place) => new Option(PLACES[place.map], place.map)));
  for (const id of SELECTS) $(id).value = state[id];
  $("hmb").disabled = !drive.hmb;
  $("check").disabled = !drive.integrity;
  $("over").querySelector("[value=hmb]").disabled = !drive.hmb;
  $("drive-says").textContent = drive.hmb
    ? `Asks for ${bytesText(drive.hmb.preferred_bytes)} of host memory, takes ${bytesText(drive.hmb.min_bytes)} at least.${drive.maps_in_hmb ? "" : " Its map is elsewhere now."}`
    : (drive.integrity ? "The host itself keeps map entries and sends them along (Host Performance Booster). " : "") +
      "Has no use for lent memory as it is; “Map kept in” gives it one.";
  showMarks(drive);
}

function showMarks(drive) {
  const marks = [[32 * MIB, "32 MiB: Raspberry Pi OS"], [64 * MIB, "64 MiB"], [128 * MIB, "128 MiB: Linux"]];
  if (drive.hmb) marks.push([drive.hmb.preferred_bytes, `asks for ${bytesText(drive.hmb.preferred_bytes)}`]);
  const focused = [...$("hmb-marks").children].indexOf(document.activeElement);
  $("hmb-marks").replaceChildren(...(drive.hmb ? marks : []).map(([bytes, text]) => {
    const mark = button(text, text, () => choose({ hmb: bytes }));
    mark.setAttribute("aria-pressed", String(state.hmb === bytes));
    return mark;
  }));
  if (focused >= 0) $("hmb-marks").children[focused]?.focus();
}

async function show() {
  const mine = ++generation, drive = facts(drives, state), asked = { ...state };
  showControls(drive);
  lodger.forget();
  const main = question(drive, asked);
  $("job").textContent = main.job;
  $("command").textContent = command(main);
  delete document.documentElement.dataset.settled;
  for (const id of ["curve", "hits", "parts", "values"]) $(id).classList.add("busy");
  try {
    const states = along(drive, asked);
    const runs = states.map(async ({ at, state }) => ({ at, ...told(await lodger.answer(question(drive, state))) }));
    const chosen = lodger.answer(main);
    const points = await Promise.all(runs), answer = await chosen;
    if (mine !== generation) return;
    showCurve(lodger, drive, asked, points);
    showParts(lodger, told(answer));
    $("says").textContent = insight(drive, asked, points);
    $("says").classList.remove("wrong");
    const requests = points.map((point) => point.requests);
    firstCurve ||= performance.now() - begun;
    $("rests").textContent = `Each point rests on ${whole(MEASURED)} measured requests, after ${whole(SETTLE)} to settle and up to ` +
      `${whole(Math.max(...requests) - MEASURED - SETTLE)} that warm the map up: one seed, so that differences of a few per cent mean nothing.` +
      ` The first curve stood after ${(firstCurve / 1e3).toFixed(2)} s.`;
    for (const id of ["curve", "hits", "parts", "values"]) $(id).classList.remove("busy");
    window.whatIf = { state: asked, ...answer, points, firstCurve };
    document.documentElement.dataset.settled = toLink(asked);
    await clean(mine, drive, asked);
  } catch (error) {
    if (!(error instanceof Forgotten)) wrong(error);
  }
}

async function clean(mine, drive, asked) {
  delete document.documentElement.dataset.collected;
  if (asked.reads === 100) {
    $("strip").replaceChildren();
    $("strip-same").hidden = true;
    $("strip-says").textContent = "Nothing is written, so nothing has to be collected: choose fewer reads.";
    return;
  }
  const longer = collectionQuestion(drive, asked);
  $("strip-command").textContent = command(longer);
  $("strip-same").hidden = false;
  $("strip-says").textContent = "A longer run is under way.";
  $("strip").classList.add("busy");
  const answer = await lodger.answer(longer, { long: true });
  if (mine !== generation) return;
  showStrip(lodger, answer);
  $("strip").classList.remove("busy");
  window.whatIf.collection = answer;
  document.documentElement.dataset.collected = toLink(asked);
}

function wrong(error) {
  $("says").textContent = String(error.message || error);
  $("says").classList.add("wrong");
  document.documentElement.dataset.settled = "wrong";
}

async function copy(copier) {
  const text = copier.dataset.copy === "link" ? location.href : $(copier.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
    copier.textContent = "Copied";
  } catch {
    copier.textContent = "This browser does not let pages copy: select and copy it";
  }
}

function startTraces() {
  const drop = $("drop"), read = async (file) => file && ask_(await file.text(), file.name);
  const ask_ = (text, name) => { $("trace-text").value = text; advise(text, name); };
  $("trace-ask").onclick = () => advise($("trace-text").value, "trace");
  $("trace-example").onclick = () => ask_($("example").textContent, "example.csv");
  $("trace-file").onchange = (event) => read(event.target.files[0]);
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); read(event.dataTransfer.files[0]); });
}

async function advise(trace, name) {
  const drive = facts(drives, state);
  $("trace-says").textContent = "Simulating it with more and less host memory.";
  delete document.documentElement.dataset.advised;
  try {
    const asked = { ...setup(drive, { ...state, reads: 100 }) };
    delete asked.hmb;
    const { advice, notes } = await lodger.answer({ ask: "advise", setup: asked, name, trace }, { keep: true });
    $("trace-says").textContent = advice.answer.text;
    $("trace-notes").textContent = [...notes, ...advice.notes].map((note) => note + ".").join(" ");
    const points = advice.curve ? advice.curve.points.map((point) => [point.hmb_bytes, point.hit_ratio]) : [];
    draw(lodger, "trace-curve", {
      title: "Map entries at hand", says: "share of look-ups that need no read of their own, by host memory",
      axes: ["host memory, bytes", "share of look-ups"], lines: [{ name: "share", points }],
    });
    const sets = asked.sets.map(([key, value]) => ` --set ${quoted(`${key}=${value}`)}`).join("");
    $("trace-command").textContent = `lodger advise ${quoted(name)} --drive ${asked.drive}${sets} --fit wrap --seed ${asked.seed}`;
    $("trace-same").hidden = false;
    window.whatIf.advice = advice;
  } catch (error) {
    $("trace-curve").replaceChildren();
    $("trace-notes").textContent = "";
    $("trace-same").hidden = true;
    $("trace-says").textContent = String(error.message || error);
  }
  document.documentElement.dataset.advised = "yes";
}

start().catch((error) => {
  const why = `This browser cannot run the simulator (${error.message || error}). What stands below was simulated when this page was made.`;
  $("says").before(Object.assign(document.createElement("p"), { className: "partial", textContent: why }));
  document.documentElement.dataset.settled = "wrong";
});
