// One map: a layer in colour, outlines, the picked region, a cross at the shared position.

function makeMap({ world, view, regions, layers, shared, first }) {
  const map = { layer: layers[first], scale: null };
  const canvas = h("canvas", { class: "map", tabindex: 0, role: "application" });
  const select = h("select", { change: () => map.choose(layers[select.value]) },
    layers.map((layer, i) => h("option", { value: i, selected: i === first }, layer.name)));
  const button = (label, title, click) => h("button", { type: "button", title, "aria-label": title, click }, label);
  const buttons = h("div", { class: "zoom" },
    button("+", "Zoom in", () => view.zoomAbout(1.6, view.u, view.v)),
    button("−", "Zoom out", () => view.zoomAbout(1 / 1.6, view.u, view.v)),
    button("⤢", "Show everything", () => view.whole()));
  const legend = makeLegend();
  const bar = makeScaleBar(world);
  const about = h("p", { class: "about" });
  const live = h("p", { class: "listen", "aria-live": "polite" });
  const stage = h("div", { class: "stage" }, canvas, buttons, bar.node);
  stage.style.aspectRatio = `${view.width} / ${view.height}`;
  map.node = h("figure", { class: "mapbox" }, h("label", {}, h("span", { class: "listen" }, "Layer"), select), stage, legend.node, about, live);

  // Pixels of the screen in one unit of the world.
  const density = () => 0.94 * Math.min(canvas.clientWidth / view.width, canvas.clientHeight / view.height) * view.zoom;
  const toWorld = (x, y) => [view.u + (x - canvas.clientWidth / 2) / density(), view.v + (y - canvas.clientHeight / 2) / density()];

  map.choose = async (layer) => {
    map.layer = layer;
    select.value = layers.indexOf(layer);
    await layer.ready;
    shared.recolour();
  };
  map.recolour = (others) => {
    map.scale = colourScale(map.layer, others);
    legend.draw(map.layer, map.scale);
    about.textContent = map.layer.about;
    canvas.setAttribute("aria-label", `Map: ${map.layer.name}. Arrow keys move, plus and minus zoom, 0 shows everything, Enter picks the region in the middle.`);
    map.draw();
  };

  function stroke(context, path, k, width, colour) {
    context.lineWidth = width / k;
    context.strokeStyle = colour;
    context.stroke(path);
  }

  function cross(context, u, v, k) {
    const arm = 9 / k;
    const path = new Path2D();
    for (const [du, dv] of [[arm, 0], [0, arm]]) {
      path.moveTo(u - du, v - dv);
      path.lineTo(u + du, v + dv);
    }
    stroke(context, path, k, 3.5, css("--map"));
    stroke(context, path, k, 1.5, css("--ink"));
  }

  function paint() {
    const [width, height, k] = [canvas.clientWidth, canvas.clientHeight, density()];
    if (!width || !map.scale) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(k * ratio, 0, 0, k * ratio, (width / 2 - view.u * k) * ratio, (height / 2 - view.v * k) * ratio);
    context.lineJoin = "round";
    map.layer.paint(context, map.scale, k * ratio);
    if (shared.outlines) stroke(context, shared.borders, k, 0.7, css("--outline"));
    for (const [region, colour, width] of [[selection.pointed, css("--ink"), 2], [selection.picked, css("--pick"), 3]]) {
      if (!region?.path) continue;
      stroke(context, region.path, k, width + 3, css("--map"));
      stroke(context, region.path, k, width, colour);
    }
    if (shared.cursor && shared.cursor.from !== map) cross(context, shared.cursor.u, shared.cursor.v, k);
    bar.draw(k);
  }

  let waiting = false;
  map.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      paint();
    });
  };
  map.mark = (u, v) => legend.point(u == null ? null : map.layer.at(u, v));

  function hover(event, u, v) {
    const region = regionAt(regions, u, v);
    shared.point(u, v, map);
    selection.point(region);
    tip.show(event.clientX, event.clientY, aboutPixel(layers, map.layer, u, v), region && aboutRegion(region),
      h("p", { class: "place" }, world.place(u, v)));
  }
  function leave() {
    shared.point(null, null, null);
    selection.point(null);
    tip.hide();
  }
  listenTo(canvas, {
    toWorld, view, hover, leave,
    perPixel: () => 1 / density(),
    click: (u, v) => selection.pick(regionAt(regions, u, v)),
    focus() {
      const region = regionAt(regions, view.u, view.v);
      shared.point(view.u, view.v, null);
      selection.point(region);
      live.textContent = spoken(map.layer, region, view.u, view.v, world);
    },
  });
  new ResizeObserver(map.draw).observe(canvas);
  view.listeners.push(map.draw);
  selection.listen(map.draw);
  return map;
}
