// Numbers as people write them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const THREE_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

function show(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-4)) return value.toExponential(2).replace("e+", "e");
  return (size >= 1000 ? WHOLE : THREE_DIGITS).format(value);
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
