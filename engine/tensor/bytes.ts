/** Between float pixels and 8-bit ones: `trunc(clip(255·x))` one way, `n/255` the other, as ComfyUI does everywhere. */

/** n/255 for every byte, rounded to single precision once. */
export const BYTE_TO_FLOAT: Float32Array = Float32Array.from({ length: 256 }, (_, byte) => byte / 255)

/** The product is rounded to single precision first: without that, 3/255 would come back as 2. */
export function byteOf(value: number): number {
  const scaled = Math.fround(255 * value)
  // NaN compares false both times and becomes 0.
  return scaled >= 255 ? 255 : scaled > 0 ? scaled | 0 : 0
}

/** Writes `count` values. */
export function toBytes(
  source: Float32Array,
  target: Uint8Array | Uint8ClampedArray,
  { from, to, count }: { readonly from: number; readonly to: number; readonly count: number },
): void {
  for (let i = 0; i < count; i++) target[to + i] = byteOf(source[from + i])
}
