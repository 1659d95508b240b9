// Mouse, touch and keys on a map: drag to move, wheel or pinch to zoom, click to pick, arrows and + - 0 by keyboard.

function listenTo(canvas, { toWorld, perPixel, view, hover, leave, click, focus }) {
  const down = new Map();
  let travelled = 0;
  const at = (event) => [event.offsetX, event.offsetY];
  const pair = () => {
    const [a, b] = [...down.values()];
    return { middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], gap: Math.hypot(a[0] - b[0], a[1] - b[1]) };
  };

  function drag(event) {
    const before = down.size === 2 ? pair() : { middle: down.get(event.pointerId), gap: 1 };
    down.set(event.pointerId, at(event));
    const after = down.size === 2 ? pair() : { middle: at(event), gap: 1 };
    const [dx, dy] = [after.middle[0] - before.middle[0], after.middle[1] - before.middle[1]];
    travelled += Math.hypot(dx, dy) + Math.abs(after.gap - before.gap);
    view.moveBy(-dx * perPixel(), -dy * perPixel());
    if (down.size === 2) view.zoomAbout(after.gap / before.gap, ...toWorld(...after.middle));
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (!down.size) travelled = 0;
    down.set(event.pointerId, at(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (down.has(event.pointerId)) drag(event);
    hover(event, ...toWorld(...at(event)));
  });
  const release = (event) => {
    if (down.delete(event.pointerId) && event.type === "pointerup" && travelled < 5) {
      hover(event, ...toWorld(...at(event)));
      click(...toWorld(...at(event)));
    }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    view.zoomAbout(2 ** Math.max(-1, Math.min(1, (-event.deltaY * lines) / 300)), ...toWorld(...at(event)));
    hover(event, ...toWorld(...at(event)));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => view.zoomAbout(2, ...toWorld(...at(event))));

  const step = () => 60 * perPixel();
  const keys = {
    ArrowLeft: () => view.moveBy(-step(), 0), ArrowRight: () => view.moveBy(step(), 0),
    ArrowUp: () => view.moveBy(0, -step()), ArrowDown: () => view.moveBy(0, step()),
    "+": () => view.zoomAbout(1.5, view.u, view.v), "=": () => view.zoomAbout(1.5, view.u, view.v),
    "-": () => view.zoomAbout(1 / 1.5, view.u, view.v), 0: () => view.whole(),
    Enter: () => click(view.u, view.v), Escape: () => leave(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    focus();
  });
  canvas.addEventListener("blur", leave);
}
