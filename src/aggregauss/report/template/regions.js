// The regions: rows of the table with their outlines, in units of the page's own coordinates (see view.js).

function readRegions({ table, outlines }, world) {
  const at = Object.fromEntries(table.columns.map((name, i) => [name, i]));
  const regions = table.rows.map((row, index) => ({
    index, row, path: null, rings: [], box: null,
    get: (column) => (column in at ? row[at[column]] : null),
  }));
  const byLabel = new Map(regions.map((region) => [region.get("label"), region]));
  for (const { label, rings } of outlines.regions) {
    const region = byLabel.get(label);
    if (region) shape(region, rings.map((steps) => corners(steps, outlines.unit, world)));
  }
  return regions;
}

function corners(steps, unit, world) {
  const ring = new Float64Array(steps.length);
  let [column, row] = [0, 0];
  for (let i = 0; i < steps.length; i += 2) {
    ring[i] = (column += steps[i]) * unit * world.aspect;
    ring[i + 1] = (row += steps[i + 1]) * unit;
  }
  return ring;
}

function shape(region, rings) {
  region.rings.push(...rings);
  region.path ??= new Path2D();
  region.box ??= [Infinity, Infinity, -Infinity, -Infinity];
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i += 2) {
      if (i) region.path.lineTo(ring[i], ring[i + 1]);
      else region.path.moveTo(ring[i], ring[i + 1]);
      const [l, t, r, b] = region.box;
      region.box = [Math.min(l, ring[i]), Math.min(t, ring[i + 1]), Math.max(r, ring[i]), Math.max(b, ring[i + 1])];
    }
    region.path.closePath();
  }
}

// The box around all regions, or around the grid when there are no outlines.
function around(regions, world) {
  const boxes = regions.filter((region) => region.box).map((region) => region.box);
  if (!boxes.length) return [0, 0, world.width, world.height];
  return boxes.reduce((a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])]);
}

const regionAt = (regions, u, v) => regions.find(({ box, rings }) =>
  box && u >= box[0] && u <= box[2] && v >= box[1] && v <= box[3] && inside(rings, u, v)) ?? null;

// A ray to the left crosses the outlines an odd number of times.
function inside(rings, u, v) {
  let odd = false;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      const crosses = ring[i + 1] > v !== ring[j + 1] > v;
      if (crosses && u < ((ring[j] - ring[i]) * (v - ring[i + 1])) / (ring[j + 1] - ring[i + 1]) + ring[i]) odd = !odd;
    }
  }
  return odd;
}
