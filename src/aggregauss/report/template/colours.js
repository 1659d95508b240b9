// Perceptually uniform colour maps (viridis, magma, cividis: equal steps look equal, also to colour-blind readers) and a
// diverging one with a grey middle, as 17 colours each and linear between them.

const STOPS = {
  log: "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
  sequential: "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf",
  probability: "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838",
  diverging: "3b4cc0 4e68d8 6282ea 779af7 8db0fe a3c2fe b9d0f9 ccd9ed dddcdc ecd3c5 f5c4ac f7b093 f4987a eb7d62 dd5f4b ca3b37 b40426",
};

// 256 colours as [red, green, blue].
function palette(kind) {
  const stops = STOPS[kind].split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const place = (i / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    return stops[left].map((from, channel) => Math.round(from + (place - left) * (stops[left + 1][channel] - from)));
  });
}

const PALETTES = Object.fromEntries(Object.keys(STOPS).map((kind) => [kind, palette(kind)]));
const shade = (fraction) => Math.max(0, Math.min(255, Math.round(fraction * 255)));
const rgb = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;
