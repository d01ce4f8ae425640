// Five letters, the digits of a number of base 85, are four bytes.
function decode(text) {
  const digits = Object.fromEntries([...LETTERS].map((letter, digit) => [letter, digit]));
  const padding = (5 - (text.length % 5)) % 5;
  const whole = text + LETTERS.at(-1).repeat(padding);
  const view = new DataView(new ArrayBuffer((whole.length / 5) * 4));
  for (let place = 0; place < whole.length; place += 5) {
    let number = 0;
    for (let next = place; next < place + 5; next++) number = number * 85 + digits[whole[next]];
    view.setUint32((place / 5) * 4, number);
  }
  return new Uint8Array(view.buffer, 0, view.byteLength - padding);
}
const unpacked = {};
function unpack(id) {
  return (unpacked[id] ??= (async () => {
    const stream = new Blob([decode(document.getElementById(id).textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  })());
}
