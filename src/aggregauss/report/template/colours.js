// Perceptually uniform colour maps: along each, lightness changes evenly, so that equal steps look equal, also to
// colour-blind readers (magma without its black end; blues and greens made in Oklab; a diverging one with a grey middle).
// Each is 17 colours and linear between them. What stands out from the background is read as more: on a light page high
// values are dark, on a dark page they are bright.

const STOPS = {
  log: "1a1042 2f1163 471078 5d177f 752181 8b2981 a1307e b83779 cf4070 e34e65 f2625d f97b5d fd9668 feb078 feca8d fde3a5 fcfdbf",
  sequential: "212341 272d56 2a386b 2b457f 295392 2561a3 2070b2 1a80bf 1c90ca 28a0d2 3cafd9 54bedf 6ecce3 8ad9e8 a8e5ec c5f0f2 e3fbfa",
  probability: "002d2d 013a37 044740 015548 06634f 057154 068156 1f8f57 439b5b 5fa761 7ab269 93bd76 abc885 c1d399 d5deaf e7eac9 f7f6e4",
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

const UPWARD = Object.fromEntries(Object.keys(STOPS).map((kind) => [kind, palette(kind)]));
const DOWNWARD = Object.fromEntries(Object.entries(UPWARD).map(([kind, colours]) => [kind, [...colours].reverse()]));
const night = matchMedia("(prefers-color-scheme: dark)");
const coloursFor = (kind) => (night.matches || kind === "diverging" ? UPWARD : DOWNWARD)[kind];
const shade = (fraction) => Math.max(0, Math.min(255, Math.round(fraction * 255)));
const rgb = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;
