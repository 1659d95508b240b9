// How the prediction changes with each covariate, all on one vertical axis so that they can be compared.

function makeEffects(effects, unit) {
  if (!effects.length) return [];
  const domain = spread(effects.flatMap((effect) => [...effect.lower, ...effect.upper]));
  const figures = effects.map((effect) => {
    const chart = makeChart({
      title: `Effect of ${effect.name}`, width: 340, height: 250, ticks: 4,
      x: { domain: spread(effect.x, { margin: 0.02 }), label: effect.unit ? `${effect.name} (${effect.unit})` : effect.name },
      y: { domain, label: unit ? `Rate, ${unit}` : "Effect" },
    });
    const { inside, X, path, band, box } = chart;
    inside.append(
      s("path", { class: "band", d: band(effect.x, effect.lower, effect.upper) }),
      s("path", { class: "curve series0", d: path(effect.x, effect.mean) }),
      s("path", { class: "rug", d: effect.rug.filter((value) => X(value) >= box.left && X(value) <= box.right)
        .map((value) => `M${X(value).toFixed(1)},${box.bottom}v-7`).join("") }));
    return h("figure", {}, chart.svg);
  });
  return [h("p", {}, "The line shows how the prediction changes with one covariate while the others stay as they are, the band its " +
    "interval. The marks at the bottom are values that occur in the data: where there are none, the curve is a guess."),
    h("div", { class: "multiples" }, figures)];
}
