function plot(spot, config) {
  const figure = JSON.parse(spot.nextElementSibling.textContent);
  Plotly.newPlot(spot, figure.data, figure.layout, config);
}
for (const spot of document.querySelectorAll(".drawn")) plot(spot, CONFIG);

// The plots of a panel are drawn when it is first opened: what nobody looks at costs nothing.
function draw(panel) {
  for (const spot of panel.querySelectorAll(".lazy:empty")) plot(spot, { ...CONFIG, displayModeBar: false });
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
