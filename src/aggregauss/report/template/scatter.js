// Fitted against observed, one point for each region, its interval as a whisker.

function wantsLog(values) {
  const positive = values.filter((value) => value > 0).sort((a, b) => a - b);
  const at = (share) => positive[Math.floor(share * (positive.length - 1))];
  return positive.length >= 3 && values.every((value) => value >= 0) && at(0.95) / at(0.05) > 20;
}

function makeScatter(regions, reveal) {
  const shown = regions.filter((region) => region.get("observed") != null && region.get("fitted") != null);
  if (!shown.length) return null;
  const [observed, fitted] = ["observed", "fitted"].map((column) => shown.map((region) => region.get(column)));
  const log = wantsLog([...observed, ...fitted]);
  const domain = spread([...observed, ...fitted], { log });
  const edge = (value) => Math.max(domain[0], Math.min(domain[1], value));
  const { svg, inside, X, Y, path } = makeChart({
    title: "Fitted against observed", x: { domain, log, label: "Observed" }, y: { domain, log, label: "Fitted" }, height: ROOM * 0.8,
  });
  inside.append(s("path", { class: "even", d: path(domain, domain) }));
  const marks = new Map();
  for (const region of shown) {
    const [x, y] = [X(edge(region.get("observed"))), Y(edge(region.get("fitted")))];
    const [low, high] = ["lower", "upper"].map((column) => Y(edge(region.get(column) ?? region.get("fitted"))));
    const mark = s("g", {
      class: "mark",
      pointerenter: (event) => {
        selection.point(region);
        tip.show(event.clientX, event.clientY, aboutRegion(region));
      },
      pointerleave: () => {
        selection.point(null);
        tip.hide();
      },
      click: () => pickAndReveal(region, reveal),
    }, s("line", { x1: x, x2: x, y1: low, y2: high }), s("circle", { cx: x, cy: y, r: 3.2 }), s("circle", { class: "target", cx: x, cy: y, r: 8 }));
    marks.set(region, mark);
    inside.append(mark);
  }
  followSelection(marks);
  selection.listen(({ picked }) => {
    const mark = marks.get(picked);
    if (mark && inside.lastChild !== mark) inside.append(mark); // in front of its neighbours
  });
  const zeros = log && [...observed, ...fitted].some((value) => value <= 0) ? " Zeros are drawn at the edge." : "";
  return h("figure", {}, h("figcaption", {}, h("h3", {}, "Fitted against observed"),
    h("p", {}, "Each point is a region, the bar its interval. On the dashed line the model gives back the reported number. " +
      `Click a point to find the region on the map and in the table.${log ? " Both axes are logarithmic." : ""}${zeros}`)), svg);
}
