// A bar of a round number of kilometres.

function makeScaleBar(world) {
  const line = h("span", { class: "line" });
  const text = h("span");
  const node = h("div", { class: "scalebar", "aria-hidden": "true" }, line, text);
  function draw(pixelsPerUnit) {
    const perKilometre = pixelsPerUnit / world.kilometres;
    const most = 110 / perKilometre;
    const power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((m) => m * power).find((candidate) => candidate <= most);
    line.style.width = `${length * perKilometre}px`;
    text.textContent = length < 1 ? `${show(length * 1000)} m` : `${show(length)} km`;
  }
  return { node, draw };
}
