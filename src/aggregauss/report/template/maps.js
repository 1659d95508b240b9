// Two linked maps: they look at the same place, and equal colours mean equal values.

function makeMaps(data, regions, world) {
  const layers = readLayers(data, regions, world);
  if (!layers.length) return { nodes: [], show() {} };
  const view = makeView(around(regions, world));
  const borders = new Path2D();
  for (const { path } of regions) if (path) borders.addPath(path);
  const shared = { outlines: true, same: true, cursor: null, borders };
  const predicted = Math.max(0, layers.findIndex((layer) => layer.surface));
  const maps = [0, predicted].map((first) => makeMap({ world, view, regions, layers, shared, first }));
  const pair = h("div", { class: "maps" }, maps.map((map) => map.node));

  shared.recolour = () => maps.forEach((map) => map.layer.range &&
    map.recolour(shared.same && !pair.classList.contains("single") ? maps.map((other) => other.layer) : []));
  shared.point = (u, v, from) => {
    shared.cursor = u == null ? null : { u, v, from };
    for (const map of maps) {
      map.mark(u, v);
      map.draw();
    }
  };
  const check = (label, checked, change) => h("label", { class: "check" },
    h("input", { type: "checkbox", checked, change: (event) => change(event.target.checked) }), label);
  const same = check("Same colours on both maps", true, (on) => {
    shared.same = on;
    shared.recolour();
  });
  const two = (on) => {
    pair.classList.toggle("single", !on);
    same.hidden = !on;
    shared.recolour();
  };
  const wide = matchMedia("(min-width: 760px)").matches && layers.length > 1;
  const options = h("div", { class: "options" },
    check("Two maps", wide, two),
    check("Outlines of the regions", true, (on) => {
      shared.outlines = on;
      maps.forEach((map) => map.draw());
    }),
    same, pickedChip());

  two(wide);
  maps.forEach((map) => map.choose(map.layer));
  night.addEventListener("change", shared.recolour);
  const { block, full, rows, columns } = data.grid;
  const thinned = block > 1 ? h("p", { class: "hint" }, `To keep this page small, the grid of ${show(full[0])} × ${show(full[1])} pixels is ` +
    `drawn as ${show(rows)} × ${show(columns)}: each pixel here is the mean of ${block} × ${block} pixels. The files beside this page ` +
    "have the full resolution.") : null;
  return { nodes: [options, pair, thinned], show: (region) => region?.box && view.show(region.box) };
}

// The name of the picked region, with a way to let it go.
function pickedChip() {
  const chip = h("button", { type: "button", class: "chip", hidden: true, title: "Let go of this region", click: () => selection.pick(null) });
  selection.listen(({ picked }) => {
    chip.hidden = !picked;
    chip.textContent = picked ? `${picked.get("label")} ✕` : "";
  });
  return chip;
}
