// Where the maps look. The page's own coordinates (u, v) run from the north-west corner to the right and down; degrees of
// longitude are shortened by the cosine of the middle latitude, so that shapes look right.

function makeWorld({ grid, geographic }) {
  const middle = ((grid.north + grid.south) / 2) * (Math.PI / 180);
  const aspect = geographic ? Math.cos(middle) : 1;
  const kilometres = geographic ? 111.2 : 0.001; // in one unit of v
  const width = (grid.east - grid.west) * aspect;
  const height = grid.north - grid.south;
  const place = (u, v) => {
    const [x, y] = [grid.west + u / aspect, grid.north - v];
    if (!geographic) return `${show(x / 1000)} km, ${show(y / 1000)} km`;
    const east = x > 180 ? x - 360 : x;
    return `${Math.abs(y).toFixed(2)}°${y < 0 ? "S" : "N"}, ${Math.abs(east).toFixed(2)}°${east < 0 ? "W" : "E"}`;
  };
  return { aspect, kilometres, width, height, place };
}

// Centre and zoom, shared by the linked maps. zoom 1 shows all of `home`.
function makeView(home) {
  const [left, top, right, bottom] = home;
  const view = { width: right - left, height: bottom - top, u: 0, v: 0, zoom: 1, listeners: [] };
  const changed = () => view.listeners.forEach((listener) => listener());
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  view.whole = () => {
    Object.assign(view, { u: (left + right) / 2, v: (top + bottom) / 2, zoom: 1 });
    changed();
  };
  view.moveBy = (du, dv) => {
    view.u = clamp(view.u + du, left, right);
    view.v = clamp(view.v + dv, top, bottom);
    changed();
  };
  view.zoomAbout = (factor, u, v) => {
    const before = view.zoom;
    view.zoom = clamp(before * factor, 0.8, 80);
    const kept = 1 - before / view.zoom;
    view.moveBy((u - view.u) * kept, (v - view.v) * kept);
  };
  view.show = ([west, north, east, south]) => {
    const zoom = 0.25 * Math.min(view.width / (east - west), view.height / (south - north));
    Object.assign(view, { u: (west + east) / 2, v: (north + south) / 2, zoom: clamp(zoom, 1, 6) });
    changed();
  };
  view.whole();
  return view;
}
