// The surfaces: from text to codes of 16 bits, and from a code to a value. Code 0 means that there is no value.

async function decompress(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (!("DecompressionStream" in window)) return gunzip(bytes);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function decode(layer, grid) {
  const bytes = await decompress(layer.codes);
  const size = grid.rows * grid.columns;
  const codes = new Uint16Array(size);
  for (let i = 0; i < size; i++) {
    const left = i % grid.columns ? codes[i - 1] : 0;
    codes[i] = left + (bytes[i] | (bytes[size + i] << 8));
  }
  return codes;
}

// How many pixels have each code; ranks of the layer follow from it without sorting.
function tally(codes) {
  const counts = new Uint32Array(65536);
  for (const code of codes) counts[code]++;
  return counts;
}

function codeAtRank(counts, rank) {
  let total = 0;
  for (let code = 1; code < 65536; code++) total += counts[code];
  let left = rank * total;
  for (let code = 1; code < 65536; code++) {
    left -= counts[code];
    if (counts[code] && left <= 0) return code;
  }
  return 1;
}
