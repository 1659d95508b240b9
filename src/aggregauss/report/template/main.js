// Puts the parts in their places.

const DATA = JSON.parse($("data").textContent);
const WORLD = makeWorld(DATA);
const REGIONS = readRegions(DATA, WORLD);
const MAPS = makeMaps(DATA, REGIONS, WORLD);

document.body.append(tip.node);
addEventListener("scroll", () => tip.hide(), { passive: true });

fill("facts", facts(DATA.facts));
fill("warnings", DATA.warnings.length ? [h("h2", {}, DATA.warnings.length > 1 ? "Warnings" : "Warning"), items(DATA.warnings)] : null);
fill("map", MAPS.nodes);
fill("fit", h("div", { class: "pair" }, makeScatter(REGIONS, MAPS.show), makeCalibration(DATA.calibration)));
fill("effects", makeEffects(DATA.effects));
fill("regions", REGIONS.length ? makeRegionTable(DATA.table, REGIONS, MAPS.show) : null);
fill("validation", DATA.validation && plainTable(DATA.validation));
fill("model", [makeTrace(DATA.trace), DATA.parameters.rows.length
  ? h("figure", {}, h("figcaption", {}, h("h3", {}, "Parameters")), plainTable(DATA.parameters)) : null]);
fill("notes", items(DATA.notes));
fill("record", record(DATA.record));
document.documentElement.dataset.ready = "yes";
