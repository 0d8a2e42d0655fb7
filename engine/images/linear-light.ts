/** Display values back to linear light. Nothing is clamped. */

export const LIGHT_SPACES = ['sRGB', 'HDR', 'linear'] as const
export type LightSpace = (typeof LIGHT_SPACES)[number]

const TO_LINEAR: Readonly<Record<LightSpace, (value: number) => number>> = {
  sRGB: (x) => (x <= 0.040_45 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4),
  // Hybrid log-gamma.
  HDR: (x) => (x <= 0.5 ? (x * x) / 3 : (Math.exp((x - 0.559_910_729_28) / 0.178_832_77) + 0.284_668_92) / 12),
  linear: (x) => x,
}

const ALPHA = 3
const CHECK_EVERY = 65_536

/** A copy in linear light; alpha is no light and stays. */
export function toLinearLight(
  pixels: Float32Array,
  { channels, space, checkpoint }: { readonly channels: number; readonly space: LightSpace; checkpoint(): void },
): Float32Array {
  const linear = new Float32Array(pixels.length)
  const convert = TO_LINEAR[space]
  for (let i = 0; i < pixels.length; i++) {
    if (i % CHECK_EVERY === 0) checkpoint()
    linear[i] = i % channels === ALPHA ? pixels[i] : convert(pixels[i])
  }
  return linear
}
