// From values to positions: linear or logarithmic, with round ticks.

function makeScale({ domain, range = [0, 1], log = false }) {
  const t = log ? Math.log : (v) => v;
  const [low, high] = domain.map(t);
  const per = (range[1] - range[0]) / (high - low || 1);
  const scale = (value) => range[0] + (t(value) - low) * per;
  scale.ticks = (count) => (log ? logTicks(domain, count) : linearTicks(domain, count));
  scale.domain = domain;
  scale.log = log;
  return scale;
}

function linearTicks([low, high], count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((candidate) => candidate >= rough * 0.7);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks([low, high], count) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return linearTicks([low, high], count);
  const every = Math.max(1, Math.ceil(decades / count));
  const factors = decades * 3 <= count + 1 ? [1, 2, 5] : decades * 2 <= count + 2 ? [1, 3] : [1];
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    if (p % every === 0) for (const f of factors) ticks.push(Number(`${f}e${p}`));
  }
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return inside.length > 1 ? inside : linearTicks([low, high], count);
}

// The range of some values, a little wider; on a log scale of the positive ones.
function spread(values, { log = false, margin = 0.04 } = {}) {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) if (v != null && Number.isFinite(v) && (!log || v > 0)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (low === high) return log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  if (log) return [low * (low / high) ** margin, high * (high / low) ** margin];
  return [low - (high - low) * margin, high + (high - low) * margin];
}
