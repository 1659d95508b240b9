// The key to the colours, with a mark at the value under the pointer.

function makeLegend() {
  const ramp = h("canvas", { class: "ramp", width: 256, height: 1, "aria-hidden": "true",
    title: "A pointed end: some values lie beyond it and have the colour of the end." });
  const mark = h("span", { class: "mark", hidden: true });
  const ticks = h("div", { class: "ticks" });
  const unit = h("span", { class: "unit" });
  const node = h("div", { class: "legend" }, h("div", { class: "bar" }, ramp, mark), ticks, unit);
  let scale = null;

  function draw(layer, colours) {
    scale = colours;
    mark.hidden = true;
    const context = ramp.getContext("2d");
    coloursFor(layer.scale).forEach((colour, i) => {
      context.fillStyle = rgb(colour);
      context.fillRect(i, 0, 1, 1);
    });
    ramp.classList.toggle("under", scale(layer.extent[0]) < -1e-6);
    ramp.classList.toggle("over", scale(layer.extent[1]) > 1 + 1e-6);
    ticks.replaceChildren(...scale.ticks(5).map((value) => {
      const tick = h("span", {}, layer.scale === "probability" ? percent(value) : show(value));
      tick.style.left = `${scale(value) * 100}%`;
      return tick;
    }));
    unit.textContent = [layer.unit, layer.scale === "log" ? "log scale" : ""].filter(Boolean).join(", ");
  }

  function point(value) {
    mark.hidden = value == null || !scale;
    if (!mark.hidden) mark.style.left = `${Math.max(0, Math.min(1, scale(value))) * 100}%`;
  }
  return { node, draw, point };
}
