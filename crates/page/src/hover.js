// Values under the pointer, and curves that can be hidden. Without scripts the page says all but that.
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip");
  if (!svg || !tip) continue;
  const lines = [...svg.querySelectorAll("g.line")].map((group) => ({
    group,
    name: group.dataset.name,
    places: group.dataset.places.split(" ").map(Number),
    says: group.dataset.says.split("|"),
  }));
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const said = lines.filter((line) => !line.group.classList.contains("off")).map((line) => {
      let best = 0;
      line.places.forEach((place, i) => {
        if (Math.abs(place - x) < Math.abs(line.places[best] - x)) best = i;
      });
      return (line.name ? line.name + ": " : "") + line.says[best];
    });
    tip.textContent = said.join("; ");
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerleave", () => (tip.textContent = ""));
  [...figure.querySelectorAll(".legend span")].forEach((entry, i) => {
    entry.setAttribute("role", "button");
    entry.tabIndex = 0;
    const toggle = () => {
      entry.classList.toggle("off");
      lines[i].group.classList.toggle("off");
    };
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    });
  });
}
