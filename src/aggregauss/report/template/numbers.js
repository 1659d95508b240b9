// Numbers as people write them.

function show(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-4)) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

const interval = (lower, upper) => `${show(lower)} to ${show(upper)}`;
const withUnit = (value, unit) => (unit ? `${show(value)} ${unit}` : show(value));
const percent = (value) => `${Math.round(value * 1000) / 10}%`;

const HEADINGS = {
  label: "Region", observed: "Observed", fitted: "Fitted", lower: "Lower limit", upper: "Upper limit", rate: "Observed rate",
  fitted_rate: "Fitted rate", population: "Population", examined: "Examined",
};

function heading(column) {
  const words = HEADINGS[column] ?? column.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
