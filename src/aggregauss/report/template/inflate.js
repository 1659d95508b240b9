// Gunzip (RFC 1951, 1952) for browsers without DecompressionStream.

function gunzip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out = new Uint8Array(view.getUint32(bytes.length - 4, true));
  let [at, bits, held, end] = [10, 0, 0, 0]; // our own files have no optional fields in the header

  function take(count) {
    while (held < count) {
      bits |= bytes[at++] << held;
      held += 8;
    }
    const value = bits & ((1 << count) - 1);
    bits >>>= count;
    held -= count;
    return value;
  }

  // Canonical Huffman code: how many codes of each length, and the symbols in order.
  function code(lengths) {
    const count = new Uint16Array(16);
    for (const length of lengths) count[length]++;
    count[0] = 0;
    const offset = new Uint16Array(16);
    for (let i = 1; i < 16; i++) offset[i] = offset[i - 1] + count[i - 1];
    const symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => {
      if (length) symbols[offset[length]++] = symbol;
    });
    return { count, symbols };
  }

  function symbol({ count, symbols }) {
    let [value, first, index] = [0, 0, 0];
    for (let length = 1; length < 16; length++) {
      value |= take(1);
      if (value - first < count[length]) return symbols[index + value - first];
      index += count[length];
      first = (first + count[length]) << 1;
      value <<= 1;
    }
    throw new Error("The compressed data are damaged.");
  }

  function dynamicCodes() {
    const [literals, distances, lengthCodes] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const lengths = new Array(19).fill(0);
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    for (let i = 0; i < lengthCodes; i++) lengths[order[i]] = take(3);
    const lengthCode = code(lengths);
    const all = [];
    while (all.length < literals + distances) {
      const next = symbol(lengthCode);
      if (next < 16) all.push(next);
      else {
        const repeated = next === 16 ? all[all.length - 1] : 0;
        const times = next === 16 ? 3 + take(2) : next === 17 ? 3 + take(3) : 11 + take(7);
        for (let i = 0; i < times; i++) all.push(repeated);
      }
    }
    return [code(all.slice(0, literals)), code(all.slice(literals))];
  }

  function fixedCodes() {
    const lengths = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
    return [code(lengths), code(new Array(30).fill(5))];
  }

  // Lengths and distances: a base and some extra bits.
  const extraLength = (i) => (i < 4 || i === 28 ? 0 : (i >> 2) - 1);
  const baseLength = (i) => (i === 28 ? 258 : i < 4 ? 3 + i : 3 + ((4 + (i & 3)) << extraLength(i)));
  const extraDistance = (i) => (i < 2 ? 0 : (i >> 1) - 1);
  const baseDistance = (i) => (i < 2 ? 1 + i : 1 + ((2 + (i & 1)) << extraDistance(i)));

  function compressed([literal, distance]) {
    for (;;) {
      const next = symbol(literal);
      if (next === 256) return;
      if (next < 256) out[end++] = next;
      else {
        const length = baseLength(next - 257) + take(extraLength(next - 257));
        const index = symbol(distance);
        const back = baseDistance(index) + take(extraDistance(index));
        for (let i = 0; i < length; i++, end++) out[end] = out[end - back];
      }
    }
  }

  function stored() {
    [bits, held] = [0, 0];
    const length = view.getUint16(at, true);
    out.set(bytes.subarray(at + 4, at + 4 + length), end);
    at += 4 + length;
    end += length;
  }

  for (let last = 0; !last; ) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) stored();
    else compressed(kind === 1 ? fixedCodes() : dynamicCodes());
  }
  return out;
}
