// What the page says about a place: the pixel under the pointer, and its region with the interval.

function rowsOf(pairs) {
  return h("dl", {}, pairs.map(([name, value, strong]) =>
    h("div", { class: strong && "strong" }, h("dt", {}, name), h("dd", {}, value))));
}

function aboutRegion(region) {
  const given = (name, column) => region.get(column) == null ? null : [name, show(region.get(column))];
  const fitted = `${show(region.get("fitted"))} (${interval(region.get("lower"), region.get("upper"))})`;
  return h("section", {}, h("h4", {}, region.get("label")), rowsOf([
    given("Observed", "observed"), ["Fitted", fitted], given("Observed rate", "rate"), given("Population", "population"),
    given("Examined", "examined"),
  ].filter(Boolean)));
}

function aboutPixel(layers, shown, u, v) {
  const values = layers.filter((layer) => layer.surface).map((layer) => [layer, layer.at(u, v)]);
  if (values.every(([, value]) => value == null)) return null;
  const text = (layer, value) => layer.scale === "probability" && value != null ? percent(value) : show(value);
  return h("section", {}, h("h4", {}, "This pixel", shown.unit ? h("small", {}, shown.unit) : null), rowsOf(values.map(([layer, value]) =>
    [layer.name, text(layer, value), layer === shown])));
}

// The same in one sentence, for those who listen.
function spoken(layer, region, u, v, world) {
  const value = layer.at(u, v);
  const parts = [world.place(u, v), value == null ? "no value here" : `${layer.name}: ${withUnit(value, layer.unit)}`];
  if (region) parts.push(`${region.get("label")}: fitted ${show(region.get("fitted"))}, ` +
    `interval ${interval(region.get("lower"), region.get("upper"))}, observed ${show(region.get("observed"))}`);
  return `${parts.join("; ")}.`;
}

const tip = {
  node: h("div", { id: "tip", role: "tooltip", hidden: true }),
  show(x, y, ...content) {
    const present = content.filter(Boolean);
    if (!present.length) return this.hide();
    this.node.replaceChildren(...present);
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const right = x + 18 + width > innerWidth - 8 ? x - 18 - width : x + 18;
    this.node.style.left = `${Math.max(8, Math.min(right, innerWidth - width - 8))}px`;
    this.node.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - height - 8))}px`;
  },
  hide() {
    this.node.hidden = true;
  },
};
