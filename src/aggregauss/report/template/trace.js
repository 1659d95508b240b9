// The path of the optimisation. The first steps are often far off and would hide the rest: the axis begins after them.

function makeTrace({ step, value }) {
  const known = step.map((number, i) => [number, value[i]]).filter(([, v]) => v != null);
  if (known.length < 2) return null;
  const later = known.slice(Math.floor(known.length * (known.length > 20 ? 0.1 : 0)));
  const domain = spread(later.map(([, v]) => v), { margin: 0.08 });
  const first = known.findIndex(([, v]) => v >= domain[0] && v <= domain[1]);
  const drawn = known.slice(Math.max(0, first));
  const chart = makeChart({
    title: "Trace of the optimisation", height: ROOM * 0.6,
    x: { domain: [known[0][0], known[known.length - 1][0]], label: "Step" }, y: { domain, label: "Objective" },
  });
  const clamp = (v) => Math.max(domain[0], Math.min(domain[1], v));
  chart.inside.append(s("path", { class: "curve series0 thin", d: chart.path(drawn.map(([n]) => n), drawn.map(([, v]) => clamp(v))) }));
  return h("figure", {}, h("figcaption", {}, h("h3", {}, "Search for the best fit"),
    h("p", {}, "The best value so far. The search has settled when the line is flat at its end.")), chart.svg);
}
