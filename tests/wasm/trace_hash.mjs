// Runs the simulator's torture in wasm and prints the trace hash of each seed, 16 hexadecimal digits a line.
// Usage: node trace_hash.mjs MODULE.wasm SEED ...
import { readFileSync } from "node:fs";

const [path, ...seeds] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path), {});
for (const seed of seeds) {
  const hash = BigInt.asUintN(64, instance.exports.torture_hash(BigInt(seed), 0n));
  console.log(hash.toString(16).padStart(16, "0"));
}
