/** Pictures for the image scenarios, made by a formula, with the smooth parts, edges and grain of a photograph. */
import sharp from 'sharp'

/** The same numbers every time, so that runs can be compared. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
}

export interface PhotoOptions {
  readonly side: number
  readonly seed: number
}

export async function makePhoto({ side, seed }: PhotoOptions): Promise<Buffer> {
  const random = createRandom(seed)
  const pixels = new Uint8ClampedArray(side * side * 3)
  const waves = Array.from({ length: 12 }, () => [random() * 6, random() * 6, random() * 6, random() * 20 + 8])
  for (let y = 0, at = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const [u, v] = [x / side, y / side]
      let light = 0
      for (const [across, down, turn, height] of waves) light += height * Math.sin(across * u * 6 + down * v * 6 + turn)
      // Hard edges here and there, and the grain of a sensor.
      const edge = Math.sin(u * 40) * Math.sin(v * 36) > 0.6 ? 40 : 0
      const grain = (random() - 0.5) * 6
      pixels[at++] = 128 + light + edge + grain
      pixels[at++] = 118 + light * 0.8 - edge * 0.5 + grain
      pixels[at++] = 98 + light * 0.5 + 60 * v + grain
    }
  }
  return sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .png({ compressionLevel: 4 })
    .toBuffer()
}

/** White in the middle, black at the corners, every grey between. */
export async function makeMask(side: number): Promise<Buffer> {
  const pixels = new Uint8ClampedArray(side * side * 3)
  for (let y = 0, at = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const distance = Math.hypot(x / side - 0.5, y / side - 0.5)
      const value = 255 * (1.3 - 2 * distance)
      pixels[at++] = value
      pixels[at++] = value
      pixels[at++] = value
    }
  }
  return sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .png()
    .toBuffer()
}
