// Values under the pointer, curves that can be hidden, tables that can be searched. Without scripts the page says all
// but that.

// Entries of a figure's legend as buttons: `hide` is told which one, and whether it is hidden now.
function toggles(figure, hide) {
  figure.querySelectorAll(".legend span").forEach((entry, at) => {
    entry.setAttribute("role", "button");
    entry.setAttribute("aria-pressed", "true");
    entry.tabIndex = 0;
    const toggle = () => {
      const off = entry.classList.toggle("off");
      entry.setAttribute("aria-pressed", String(!off));
      hide(at, off);
    };
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
  });
}

// Beside the pointer, on the side where there is room, and so that it never covers the place under it.
function place(tip, figure, event) {
  const base = figure.getBoundingClientRect(), left = event.clientX - base.left < base.width / 2;
  tip.style.top = event.clientY - base.top + 18 + "px";
  tip.style.left = left ? event.clientX - base.left + 8 + "px" : "auto";
  tip.style.right = left ? "auto" : base.right - event.clientX + 8 + "px";
}

function curves(figure, svg, tip) {
  const lines = [...svg.querySelectorAll("g.line")].map((group) => ({
    group,
    name: group.dataset.name,
    places: group.dataset.places.split(" ").map(Number),
    says: group.dataset.says.split("|"),
  }));
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const x = share * svg.viewBox.baseVal.width;
    const said = lines.filter((line) => line.says[0] && !line.group.classList.contains("off")).map((line) => {
      let best = 0;
      line.places.forEach((place, i) => {
        if (Math.abs(place - x) < Math.abs(line.places[best] - x)) best = i;
      });
      return (line.name ? line.name + ": " : "") + line.says[best];
    });
    tip.textContent = said.join("\n");
    place(tip, figure, event);
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => (tip.textContent = ""));
  toggles(figure, (at, off) => lines[at].group.classList.toggle("off", off));
}

// Pictures that Vega drew, which tell series apart by their colours: every mark says what it is.
function pictures(figure, tip) {
  const colours = [...figure.querySelectorAll(".legend i")].map((entry) => entry.dataset.colour);
  const marks = [...figure.querySelectorAll("svg .role-mark [aria-label]")].map((mark) => ({
    mark,
    colour: [mark.getAttribute("fill"), mark.getAttribute("stroke")].find((colour) => colour && colour.startsWith("#")),
    says: mark.closest(".mark-line") ? "" : mark.getAttribute("aria-label"),
  }));
  figure.querySelectorAll("svg").forEach((svg) => {
    svg.addEventListener("pointermove", (event) => {
      const nearest = new Map();
      for (const { mark, colour, says } of marks) {
        if (!says || mark.classList.contains("off") || !svg.contains(mark)) continue;
        const box = mark.getBoundingClientRect(), away = Math.abs((box.left + box.right) / 2 - event.clientX);
        if (!(nearest.get(colour)?.away <= away)) nearest.set(colour, { away, says });
      }
      tip.textContent = [...nearest.values()].map((one) => one.says).join("\n");
      place(tip, figure, event);
    });
    svg.addEventListener("pointerleave", () => (tip.textContent = ""));
  });
  toggles(figure, (at, off) =>
    marks.filter((one) => one.colour === colours[at]).forEach((one) => one.mark.classList.toggle("off", off)));
}

function enliven(figure) {
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip");
  if (figure.classList.contains("drawn")) return pictures(figure, tip);
  if (svg && tip) curves(figure, svg, tip);
  if (figure.classList.contains("bars")) {
    toggles(figure, (at, off) =>
      figure.querySelectorAll(`[data-part="${at}"]`).forEach((part) => part.classList.toggle("off", off)));
  }
}

document.querySelectorAll("figure").forEach(enliven);

// Tables of fewer rows are read sooner than searched.
const ROWS_MIN = 8;
for (const table of document.querySelectorAll("table")) {
  const rows = [...table.rows].filter((row) => row.querySelector("td"));
  if (rows.length < ROWS_MIN) continue;
  const input = document.createElement("input"), left = document.createElement("span");
  input.type = "search";
  input.placeholder = `search ${rows.length} rows`;
  input.setAttribute("aria-label", input.placeholder);
  left.className = "small";
  left.setAttribute("role", "status");
  const place = table.closest(".wide") || table;
  place.before(input, left);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let kept = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      kept += row.hidden ? 0 : 1;
    }
    left.textContent = kept < rows.length ? ` ${kept} of ${rows.length}` : "";
  });
}
