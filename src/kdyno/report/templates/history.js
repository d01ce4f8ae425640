// Changes that are open, and the table of benchmarks: filter and sort. Without this script everything is there, in the order of the axis.
for (const tools of document.querySelectorAll(".tools")) tools.hidden = false;
const onlyOpen = document.getElementById("open");
onlyOpen?.addEventListener("change", () => {
  for (const panel of document.querySelectorAll("#changes > details")) {
    panel.hidden = onlyOpen.checked && panel.dataset.state !== "open";
  }
});
const table = document.getElementById("benchmarks");
if (table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const changed = document.getElementById("changed");
  const shown = document.getElementById("shown");
  function show() {
    const wanted = filter.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = row.dataset.name.toLowerCase().includes(wanted) && (!changed?.checked || row.dataset.changes !== "0");
      row.hidden = !fits;
      count += fits;
    }
    shown.value = `${count} of ${rows.length} shown`;
  }
  filter.addEventListener("input", show);
  changed?.addEventListener("change", show);
  show();
  const collator = new Intl.Collator("en", { numeric: true });
  for (const head of table.tHead.querySelectorAll("th[data-by]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = head.dataset.by;
      const order = (a, b) =>
        key === "name" ? collator.compare(a.dataset.name, b.dataset.name) : Number(a.dataset[key]) - Number(b.dataset[key]);
      rows.sort((a, b) => (up ? order(a, b) : order(b, a)));
      body.append(...rows);
    });
  }
}
