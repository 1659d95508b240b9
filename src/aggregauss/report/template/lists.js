// The parts that are only text: facts, warnings, notes and the record of the run.

const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
const items = (sentences) => (sentences.length ? h("ul", {}, sentences.map((sentence) => h("li", {}, sentence))) : null);

const makeParameters = (table) => (table.rows.length ? h("figure", {}, h("figcaption", {}, h("h3", {}, "Parameters"),
  h("p", {}, "What the search found.")), plainTable(table)) : null);

function tree(value) {
  if (value === null || typeof value !== "object") return h("span", { class: "leaf" }, value === null ? "–" : String(value));
  if (Array.isArray(value) && value.every((item) => item === null || typeof item !== "object")) {
    return h("span", { class: "leaf" }, value.map((item) => (item === null ? "–" : String(item))).join(", ") || "none");
  }
  return h("dl", { class: "tree" }, Object.entries(value).map(([name, item]) => h("div", {}, h("dt", {}, name), h("dd", {}, tree(item)))));
}

const record = (value) => (Object.keys(value).length
  ? h("details", {}, h("summary", {}, "Data, versions, seeds, settings and timings, so that the run can be repeated"), tree(value)) : null);
