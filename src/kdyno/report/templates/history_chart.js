// The chart of one benchmark: a line and its interval for each recipe, kernels in their order on the x axis.
const spot = document.getElementById("chart");
const where = document.getElementById("where");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const round = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(5)).toLocaleString("en"));

function columns(data) {
  const columns = [data.kernels.map((_, place) => place)];
  for (const line of data.lines)
    for (const key of ["low", "value", "high"]) {
      const column = new Array(data.kernels.length).fill(null);
      line.kernel.forEach((kernel, place) => (column[kernel] = line[key][place]));
      columns.push(column);
    }
  return columns;
}

function draw(data, values) {
  spot.replaceChildren();
  const grid = { stroke: style("--line"), width: 1 };
  const axis = { stroke: style("--ink"), grid, ticks: grid, font: "12px sans-serif" };
  const series = [{ label: "kernel", value: (_, place) => (place === null ? "–" : data.kernels[place]) }];
  const bands = [];
  const shown = (number, place, value) =>
    value === null || value === undefined
      ? "–"
      : `${round(value)} ${data.unit} (${round(values[3 * number + 1][place])} to ${round(values[3 * number + 3][place])})`;
  data.lines.forEach((line, number) => {
    const colour = COLOURS[number % COLOURS.length];
    const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true, value: (_, value) => round(value) };
    const first = series.length;
    series.push({ ...edge, label: `${line.recipe}, low` });
    series.push({ label: line.recipe, stroke: colour, width: 1.6, spanGaps: true, points: { size: 5, show: data.kernels.length < 400 },
      value: (_, value, __, place) => shown(number, place, value) });
    series.push({ ...edge, label: `${line.recipe}, high` });
    bands.push({ series: [first + 2, first], fill: `${colour}33` });
  });
  const marks = (chart) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const [place, isWorse] of data.changes) {
      const x = chart.valToPos(place - 0.5, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = style(isWorse ? "--bad" : "--good");
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };
  const say = (chart) => {
    const place = chart.cursor.idx;
    where.textContent =
      place === null || place === undefined
        ? ""
        : [data.kernels[place], ...data.lines.map((line, number) => `${line.recipe} ${shown(number, place, values[3 * number + 2][place])}`)].join("; ");
  };
  // The ends of an interval go with their line; the style hides them in the legend.
  const together = (chart, number, { show }) => {
    if (show === undefined || number % 3 !== 2) return;
    for (const end of [number - 1, number + 1]) chart.setSeries(end, { show });
  };
  return new uPlot(
    {
      width: spot.clientWidth,
      height: Math.max(280, Math.min(460, innerHeight - 260)),
      scales: { x: { time: false } },
      series,
      bands,
      axes: [
        { ...axis, space: 120, values: (_, splits) => splits.map((place) => (Number.isInteger(place) ? short(data.kernels[place]) : "")) },
        { ...axis, size: 78, label: data.unit, values: (_, splits) => splits.map(round) },
      ],
      hooks: { draw: [marks], setCursor: [say], setSeries: [together] },
      padding: [12, 36, 0, 0],
      cursor: { y: false },
    },
    values,
    spot,
  );
}
// `git describe` without its commit; of a long name the end, in which kernels of one source differ.
function short(name = "") {
  const bare = name.replace(/-g[0-9a-f]{7,}$/, "");
  return bare.length > 18 ? `…${bare.slice(-17)}` : bare;
}

unpack("data").then((text) => {
  const data = JSON.parse(text);
  const values = columns(data);
  let chart = draw(data, values);
  const again = () => {
    chart.destroy();
    chart = draw(data, values);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let wide = spot.clientWidth;
  addEventListener("resize", () => {
    if (spot.clientWidth !== wide) again();
    wide = spot.clientWidth;
  });
  const last = data.kernels.length - 1;
  let at = last;
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -last, End: last };
  spot.addEventListener("keydown", (event) => {
    if (event.key === "Escape") chart.setScale("x", { min: 0, max: last });
    else if (event.key === "+" || event.key === "-") {
      const { min, max } = chart.scales.x;
      const half = Math.max(2, ((max - min) / 2) * (event.key === "+" ? 0.5 : 2));
      chart.setScale("x", { min: Math.max(0, at - half), max: Math.min(last, at + half) });
    } else if (event.key in steps) {
      at = Math.min(last, Math.max(0, at + steps[event.key]));
      chart.setCursor({ left: chart.valToPos(at, "x"), top: 0 });
    } else return;
    event.preventDefault();
  });
  spot.dataset.drawn = "yes";
});
