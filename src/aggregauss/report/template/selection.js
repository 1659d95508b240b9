// The region that the reader picked, and the one under the pointer: one state that maps, plot and table share.

const selection = {
  picked: null,
  pointed: null,
  listeners: [],
  listen(listener) {
    this.listeners.push(listener);
  },
  pick(region) {
    this.picked = this.picked === region ? null : region;
    this.tell();
  },
  point(region) {
    if (this.pointed === region) return;
    this.pointed = region;
    this.tell();
  },
  tell() {
    for (const listener of this.listeners) listener(this);
  },
};

// Classes `picked` and `pointed` on the element of the region that they are about.
function followSelection(elements) {
  const marked = { picked: null, pointed: null };
  selection.listen((state) => {
    for (const kind of ["pointed", "picked"]) {
      elements.get(marked[kind])?.classList.remove(kind);
      marked[kind] = state[kind];
      elements.get(marked[kind])?.classList.add(kind);
    }
  });
}

// A click on something that stands for a region picks it, and brings it into view unless it was let go.
function pickAndReveal(region, reveal) {
  selection.pick(region);
  if (selection.picked) reveal(region);
}
