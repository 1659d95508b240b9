// What a map can show: a surface (one value per pixel) or a number per region. Both answer the same four questions:
// ready (a promise), range (from where to where colours run), at (the value at a place), paint (draw it).

function surface(packed, grid, world) {
  const log = packed.scale === "log";
  const value = (code) => (log ? Math.exp(packed.low + (code - 1) * packed.step) : packed.low + (code - 1) * packed.step);
  const layer = { name: packed.name, unit: packed.unit, scale: packed.scale, about: packed.about, surface: true };
  let codes = null;
  layer.ready = decode(packed, grid).then((found) => {
    codes = found;
    const counts = tally(codes);
    const rank = (share) => value(codeAtRank(counts, share));
    layer.range = [rank(0.01), rank(0.99)];
    layer.extent = [rank(0), rank(1)];
  });
  layer.at = (u, v) => {
    const [column, row] = [Math.floor((u / world.width) * grid.columns), Math.floor((v / world.height) * grid.rows)];
    if (!codes || column < 0 || row < 0 || column >= grid.columns || row >= grid.rows) return null;
    const code = codes[row * grid.columns + column];
    return code ? value(code) : null;
  };

  let drawn = null;
  function picture(scale) {
    const key = `${scale.domain} ${night.matches}`;
    if (drawn?.key === key) return drawn.canvas;
    const canvas = h("canvas", { width: grid.columns, height: grid.rows });
    const image = new ImageData(grid.columns, grid.rows);
    const colours = coloursOfCodes(value, scale, layer.scale);
    new Uint32Array(image.data.buffer).set(Uint32Array.from(codes, (code) => colours[code]));
    canvas.getContext("2d").putImageData(image, 0, 0);
    drawn = { key, canvas };
    return canvas;
  }
  layer.paint = (context, scale, pixelsPerUnit) => {
    const cell = (world.width / grid.columns) * pixelsPerUnit;
    context.imageSmoothingEnabled = cell < 1;
    context.imageSmoothingQuality = "high";
    context.drawImage(picture(scale), 0, 0, world.width, world.height);
  };
  return layer;
}

// One colour for each of the 65,536 codes, as the machine holds a pixel; none for code 0.
function coloursOfCodes(value, scale, kind) {
  const shades = coloursFor(kind);
  const colours = new Uint32Array(65536);
  const bytes = new Uint8Array(colours.buffer);
  for (let code = 1; code < 65536; code++) {
    bytes.set(shades[shade(scale(value(code)))], code * 4);
    bytes[code * 4 + 3] = 255;
  }
  return colours;
}

function perRegion(column, name, about, regions, { unit, scale }) {
  const drawn = regions.filter((region) => region.path && region.get(column) != null);
  const all = drawn.map((region) => region.get(column)).sort((a, b) => a - b);
  const values = scale === "log" ? all.filter((value) => value > 0) : all;
  const rank = (share) => values[Math.round(share * (values.length - 1))];
  return {
    name, about, unit, scale, range: [rank(0.01), rank(0.99)], extent: [all[0], all[all.length - 1]], surface: false,
    ready: Promise.resolve(),
    at: (u, v) => regionAt(regions, u, v)?.get(column) ?? null,
    paint(context, colourScale) {
      const shades = coloursFor(scale);
      for (const region of drawn) {
        context.fillStyle = rgb(shades[shade(colourScale(region.get(column)))]);
        context.fill(region.path, "evenodd");
      }
    },
  };
}

function readLayers(data, regions, world) {
  const surfaces = data.layers.map((packed) => surface(packed, data.grid, world));
  const rates = { unit: data.layers[0]?.unit ?? "", scale: data.layers[0]?.scale ?? "log" };
  const has = (column) => regions.some((region) => region.path && region.get(column) != null);
  const observed = has("rate") && perRegion("rate", "Observed rate of each region",
    "What was reported: one number for each region.", regions, rates);
  const fitted = has("fitted_rate") && perRegion("fitted_rate", "Fitted rate of each region",
    "What the model gives for each region as a whole.", regions, rates);
  return [observed, fitted, ...surfaces].filter(Boolean);
}

// The range of colours: shared by layers that are measured alike, so that equal colours mean equal values.
function colourScale(layer, others) {
  if (layer.scale === "probability") return makeScale({ domain: [0, 1] });
  const alike = [layer, ...others.filter((other) => other.range && other.unit === layer.unit && other.scale === layer.scale)];
  let [low, high] = spread(alike.flatMap((one) => one.range), { log: layer.scale === "log", margin: 0 });
  if (layer.scale === "diverging") [low, high] = [-Math.max(-low, high), Math.max(-low, high)];
  return makeScale({ domain: [low, high], log: layer.scale === "log" });
}
