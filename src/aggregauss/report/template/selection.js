// The region that the reader picked, and the one under the pointer: one state that map, plot and table share.

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
