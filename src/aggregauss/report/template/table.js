// The regions as a table: sorted by any column, filtered by name, picked by a click, saved as CSV.

function plainTable({ columns, rows }) {
  const numeric = columns.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  const kind = (i) => (numeric[i] ? "number" : null);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((name, i) => h("th", { scope: "col", class: kind(i) }, heading(name))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => h("td", { class: kind(i) }, show(value))))))));
}

function csv({ columns, rows }) {
  const field = (value) => {
    const text = value == null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

function makeRegionTable(table, regions, unit, reveal) {
  const sorting = { column: null, down: false };
  const numeric = table.columns.map((_, i) => table.rows.some((row) => typeof row[i] === "number"));
  const rowOf = new Map(regions.map((region) => [region, h("tr", {
    click: () => pickAndReveal(region, reveal),
    pointerenter: () => selection.point(region),
    pointerleave: () => selection.point(null),
  }, region.row.map((value, i) => (i === table.columns.indexOf("label")
    ? h("th", { scope: "row" }, h("button", { type: "button" }, show(value)))
    : h("td", { class: numeric[i] && "number" }, show(value)))))]));
  const body = h("tbody");
  const count = h("span", { class: "count", "aria-live": "polite" });
  const filter = h("input", { type: "search", placeholder: "Find a region", "aria-label": "Find a region", input: () => arrange() });
  const heads = table.columns.map((name, i) => h("th", { scope: "col", class: numeric[i] && "number" },
    h("button", { type: "button", click: () => sortBy(i) }, heading(name))));

  function sortBy(column) {
    sorting.down = sorting.column === column ? !sorting.down : numeric[column];
    sorting.column = column;
    arrange();
  }
  function compare(a, b) {
    const [x, y] = [a.row[sorting.column], b.row[sorting.column]];
    if (x == null || y == null) return (x == null) - (y == null);
    const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
    return sorting.down ? -order : order;
  }
  function arrange() {
    const wanted = filter.value.trim().toLocaleLowerCase();
    const kept = regions.filter((region) => String(region.get("label")).toLocaleLowerCase().includes(wanted));
    if (sorting.column != null) kept.sort(compare);
    body.replaceChildren(...kept.map((region) => rowOf.get(region)));
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== sorting.column ? "none" : sorting.down ? "descending" : "ascending"));
    count.textContent = kept.length === regions.length ? `${show(regions.length)} regions` : `${show(kept.length)} of ${show(regions.length)} regions`;
  }
  const download = h("a", { class: "button", download: "regions.csv", href: "#", click: (event) => {
    const file = new Blob(["\ufeff", csv(table)], { type: "text/csv;charset=utf-8" });
    event.currentTarget.href = URL.createObjectURL(file);
    setTimeout(() => URL.revokeObjectURL(download.href), 60000);
  } }, "Download as CSV");
  const box = h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Table of regions" },
    h("table", { class: "regions" }, h("thead", {}, h("tr", {}, heads)), body));

  followSelection(rowOf);
  let last = null;
  selection.listen(({ picked }) => {
    if (picked === last) return;
    last = picked;
    const row = rowOf.get(picked);
    if (row?.isConnected && !row.matches(":hover")) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  });
  arrange();
  const rates = unit ? h("p", { class: "hint" }, `Rates are in ${unit}. Click a row to find the region on the map.`) : null;
  return [h("div", { class: "options" }, filter, count, download), rates, box];
}
