// What isn't seen at once is packed: plotly, every plot (data-figure of an element is its place in the list), and the
// contents of panels (data-body).
const lists = {};
const unpackList = (id) => (lists[id] ??= unpack(id).then(JSON.parse));
// What plots have in common is in the list once: {"$": n} refers to it.
function whole(part, shared) {
  if (part === null || typeof part !== "object") return part;
  if ("$" in part) return whole(shared[part.$], shared);
  if (Array.isArray(part)) return part.map((inner) => whole(inner, shared));
  return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, whole(inner, shared)]));
}
let plotly;
function loadPlotly() {
  return (plotly ??= unpack("plotly").then((source) => {
    const script = document.createElement("script");
    script.textContent = source;
    document.head.append(script);
  }));
}

// Colours that differ in the dark are the style's: THEMED has the property for each.
function themed(figure) {
  const style = getComputedStyle(document.documentElement);
  let text = JSON.stringify(figure);
  for (const [colour, property] of Object.entries(THEMED)) text = text.replaceAll(colour, style.getPropertyValue(property).trim());
  return JSON.parse(text);
}
// On a phone the labels of an axis would run into each other, and its title off the page.
function narrow(axis) {
  if (!axis?.title) return;
  Object.assign(axis, { tickangle: -90, automargin: true });
  axis.title.text = axis.title.text.replace(" (", "<br>(");
}
async function plot(spot, config) {
  await loadPlotly();
  const { items, shared } = await unpackList("figures");
  const figure = themed(whole(items[spot.dataset.figure], shared));
  if (spot.clientWidth < 500) narrow(figure.layout.xaxis);
  await Plotly.react(spot, figure.data, figure.layout, config);
}
const SMALL = { ...CONFIG, displayModeBar: false };
const drawAll = () => document.querySelectorAll(".drawn").forEach((spot) => plot(spot, CONFIG));
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawAll();
  for (const spot of document.querySelectorAll(".lazy.js-plotly-plot")) plot(spot, SMALL);
});

// A packed table is stored by columns: the cells of a column are alike.
function fill(rows, cells, columns) {
  const lines = cells.length / columns;
  for (let line = 0; line < lines; line++) {
    const row = rows.insertRow();
    for (let place = line; place < cells.length; place += lines) row.insertCell().textContent = cells[place];
  }
}
// A panel is filled and its plots are drawn when it is first opened: what nobody looks at costs nothing.
async function draw(panel) {
  for (const spot of panel.querySelectorAll("[data-body]:empty")) {
    const body = (await unpackList("bodies"))[spot.dataset.body];
    if (spot.hasChildNodes()) continue;
    spot.innerHTML = body;
    for (const rows of spot.querySelectorAll("[data-cells]")) fill(rows, rows.dataset.cells.split("\n"), rows.dataset.columns);
  }
  for (const spot of panel.querySelectorAll(".lazy:empty")) plot(spot, SMALL);
}
function reveal(anchor) {
  const panel = document.getElementById(anchor);
  if (panel && panel.classList.contains("panel")) {
    panel.open = true;
    panel.scrollIntoView();
  }
}
for (const panel of document.querySelectorAll(".panel")) {
  panel.addEventListener("toggle", () => panel.open && draw(panel));
  if (panel.open) draw(panel);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-panel]");
  if (link) reveal(link.dataset.panel);
});
addEventListener("hashchange", () => reveal(location.hash.slice(1)));
reveal(location.hash.slice(1));
// Paper can't be opened: the notes are open there, and if the table of all variants has no room, those of each are.
addEventListener("beforeprint", () => {
  const crowded = document.querySelector(".crowded") !== null;
  for (const part of document.querySelectorAll(crowded ? ".notes, .every" : ".notes")) part.open = true;
});

// The table of all verdicts: filter, hide what is alike, show factors, sort by a column.
const overview = document.getElementById("overview");
if (overview) {
  const rows = [...overview.tBodies[0].rows];
  const [filter, hide, factors, shown] = ["filter", "hide", "factors", "shown"].map((id) => document.getElementById(id));
  const select = () => {
    const wanted = filter.value.toLowerCase();
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted) || (hide.checked && row.classList.contains("alike"));
    }
    const count = rows.filter((row) => !row.hidden).length;
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} benchmarks`;
  };
  filter.addEventListener("input", select);
  hide.addEventListener("change", select);
  factors.addEventListener("change", () => {
    for (const effect of overview.querySelectorAll("[data-factor]")) {
      effect.dataset.percent ??= effect.textContent;
      effect.textContent = factors.checked ? effect.dataset.factor : effect.dataset.percent;
    }
  });
  const key = (row, by) => (by === "name" ? row.dataset.name : row.cells[by]?.dataset.sort ?? "");
  for (const heading of overview.tHead.querySelectorAll("[data-by]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const by = heading.dataset.by;
      const direction = heading.ariaSort === "ascending" ? "descending" : "ascending";
      for (const other of overview.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const numeric = by !== "name";
      const order = (one, other) => {
        const [a, b] = [key(one, by), key(other, by)];
        if (a === "" || b === "") return (a === "") - (b === ""); // what wasn't compared comes last
        return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
      };
      overview.tBodies[0].append(...rows.toSorted(order));
    });
  }
  document.querySelector(".tools").hidden = false;
}
