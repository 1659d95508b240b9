// A small chart in SVG: axes, grid lines, labels. What is drawn inside is up to the caller.

const ROOM = Math.max(300, Math.min(520, innerWidth - 70)); // so that text keeps its size on a narrow screen

function makeChart({ title, x, y, width = ROOM, height, ticks = 5 }) {
  const [right, top, bottom] = [width - 20, 12, height - 46];
  const Y = makeScale({ ...y, range: [bottom, top] });
  const longest = Math.max(...Y.ticks(ticks).map((value) => (y.format ?? show)(value).length));
  const left = 32 + 7.2 * longest;
  const X = makeScale({ ...x, range: [left, right] });
  const inside = s("g", { class: "inside" });
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    X.ticks(ticks).map((value) => s("g", { class: "tick" },
      s("line", { x1: X(value), x2: X(value), y1: top, y2: bottom }),
      s("text", { x: X(value), y: bottom + 17, "text-anchor": "middle" }, (x.format ?? show)(value)))),
    Y.ticks(ticks).map((value) => s("g", { class: "tick" },
      s("line", { x1: left, x2: right, y1: Y(value), y2: Y(value) }),
      s("text", { x: left - 7, y: Y(value) + 4, "text-anchor": "end" }, (y.format ?? show)(value)))),
    inside,
    s("path", { class: "axis", d: `M${left},${top}V${bottom}H${right}` }),
    s("text", { class: "label", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.label),
    s("text", { class: "label", transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
  const path = (xs, ys) => xs.map((value, i) => `${i ? "L" : "M"}${X(value).toFixed(2)},${Y(ys[i]).toFixed(2)}`).join("");
  const band = (xs, low, high) => `${path(xs, low)}L${path([...xs].reverse(), [...high].reverse()).slice(1)}Z`;
  return { svg, inside, X, Y, path, band, box: { left, right, top, bottom } };
}
