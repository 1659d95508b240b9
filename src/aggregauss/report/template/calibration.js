// Nominal against actual coverage of the intervals.

function makeCalibration({ columns, rows }) {
  if (!rows.length) return null;
  const [level, inside, kind] = ["level", "inside", "kind"].map((name) => columns.indexOf(name));
  const kinds = [...new Set(rows.map((row) => (kind < 0 ? "all regions" : row[kind])))];
  const axis = { domain: [0, 1], format: (value) => `${Math.round(value * 100)}%` };
  const chart = makeChart({
    title: "Coverage of the intervals", height: ROOM * 0.8,
    x: { ...axis, label: "Level of the interval" }, y: { ...axis, label: "Regions inside their interval" },
  });
  chart.inside.append(s("path", { class: "even", d: chart.path([0, 1], [0, 1]) }));
  kinds.forEach((name, i) => {
    const own = rows.filter((row) => kind < 0 || row[kind] === name).sort((a, b) => a[level] - b[level]);
    const [xs, ys] = [own.map((row) => row[level]), own.map((row) => row[inside])];
    chart.inside.append(
      s("path", { class: `curve series${i % 4}`, d: chart.path(xs, ys) }),
      ...own.map((row) => s("circle", { class: `dot series${i % 4}`, cx: chart.X(row[level]), cy: chart.Y(row[inside]), r: 3.6 },
        s("title", {}, `${name}: intervals of ${percent(row[level])} hold ${percent(row[inside])} of the regions`))));
  });
  const key = h("p", { class: "key" }, kinds.map((name, i) => h("span", { class: `series${i % 4}` }, name)));
  return h("figure", {}, h("figcaption", {}, h("h3", {}, "Can the intervals be trusted?"),
    h("p", {}, "The share of regions whose reported number lies inside its interval. On the dashed line the intervals keep their " +
      "promise; below it they are too narrow, above it too wide.")), chart.svg, kinds.length > 1 || kind >= 0 ? key : null);
}
