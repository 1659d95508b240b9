// Puts the parts in their places.

const DATA = JSON.parse($("data").textContent);
const WORLD = makeWorld(DATA);
const REGIONS = readRegions(DATA, WORLD);
const MAPS = makeMaps(DATA, REGIONS, WORLD);

document.body.append(tip.node);
for (const event of ["scroll", "pointerdown"]) addEventListener(event, () => tip.hide(), { passive: true });

fill("facts", facts(DATA.facts));
fill("warnings", DATA.warnings.length ? [h("h2", {}, DATA.warnings.length > 1 ? "Warnings" : "Warning"), items(DATA.warnings)] : null);
fill("map", MAPS.nodes);
fill("fit", sideBySide(makeScatter(REGIONS, MAPS.show), makeCalibration(DATA.calibration)));
fill("effects", makeEffects(DATA.effects, DATA.unit));
fill("regions", REGIONS.length ? makeRegionTable(DATA.table, REGIONS, DATA.unit, MAPS.show) : null);
fill("validation", DATA.validation && plainTable(DATA.validation));
fill("model", sideBySide(makeTrace(DATA.trace), makeParameters(DATA.parameters)));
fill("notes", items(DATA.notes));
fill("record", record(DATA.record));
document.documentElement.dataset.ready = "yes";
