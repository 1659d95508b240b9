// Elements from short descriptions. Data enters as text nodes only, so nothing in it can act as markup.

const SVG = "http://www.w3.org/2000/svg";

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

const h = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);
const $ = (id) => document.getElementById(id);

// A section without content disappears, with its link in the contents.
function fill(id, ...children) {
  const present = children.flat().filter((child) => child != null);
  if (present.length) $(id).append(...present);
  else {
    $(id).hidden = true;
    document.querySelector(`nav a[href="#${id}"]`)?.remove();
  }
}

function sideBySide(...figures) {
  const present = figures.filter((figure) => figure != null);
  return present.length ? h("div", { class: "pair" }, present) : null;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
