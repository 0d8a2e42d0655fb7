/** The nodes that the pictures of the documentation are made with: one that paints, step by step, and one that asks for too much. */
import { setTimeout as pause } from 'node:timers/promises'
import { choice, defineNode, image, int, newTensor, seed } from 'atelier/nodes'

const WIDTH = 480
const HEIGHT = 320
const RIDGES = 4

type Colour = readonly [number, number, number]

const PALETTES: Readonly<Record<string, readonly [sky: Colour, low: Colour, near: Colour, sun: Colour]>> = {
  dusk: [
    [0.1, 0.14, 0.42],
    [0.95, 0.5, 0.28],
    [0.1, 0.09, 0.2],
    [1, 0.9, 0.7],
  ],
  dawn: [
    [0.45, 0.66, 0.87],
    [0.99, 0.83, 0.72],
    [0.19, 0.27, 0.4],
    [1, 0.98, 0.9],
  ],
  forest: [
    [0.62, 0.8, 0.78],
    [0.93, 0.96, 0.86],
    [0.05, 0.22, 0.17],
    [1, 1, 0.92],
  ],
  desert: [
    [0.36, 0.6, 0.83],
    [0.99, 0.87, 0.62],
    [0.52, 0.2, 0.11],
    [1, 0.95, 0.78],
  ],
}

const mix = (a: number, b: number, share: number) => a + (b - a) * share

/** How high the ridge stands at this place, from a few waves that the seed shifts. */
function ridgeAt(x: number, ridge: number, shift: number): number {
  const far = ridge / RIDGES
  const wave = Math.sin(x * 5 + shift + ridge * 2.1) * 0.5 + Math.sin(x * 13 + shift * 1.7 + ridge) * 0.25
  return 0.45 + far * 0.5 - (wave + Math.sin(x * 37 + shift * 3) * 0.08) * 0.16
}

export const landscape = defineNode({
  classType: 'Landscape',
  category: 'image/paint',
  description: 'Paints hills under a sky.',
  inputs: {
    seed: seed(),
    palette: choice(['dusk', 'dawn', 'forest', 'desert'], { default: 'dusk' }),
    steps: int({ default: 12, min: 1, max: 200 }),
    pause_ms: int({ default: 0, min: 0, max: 60_000 }),
  },
  outputs: { image: 'image' },
  async run({ seed: given, palette, steps, pause_ms: wait }, { progress, preview }) {
    const shift = Number(given) % 100
    const [sky, low, near, sun] = PALETTES[palette]
    const picture = newTensor([1, HEIGHT, WIDTH, 3])
    const paint = (share: number) => {
      for (let row = 0; row < HEIGHT; row++)
        for (let column = 0; column < WIDTH; column++) {
          const [x, y] = [column / WIDTH, row / HEIGHT]
          const ridge = Array.from({ length: RIDGES }, (_, index) => index).findLast(
            (each) => y > ridgeAt(x, each, shift),
          )
          const fromSun = Math.hypot((x - 0.2 - (shift % 6) / 10) * 1.5, y - 0.28)
          for (let channel = 0; channel < 3; channel++) {
            const air = mix(sky[channel], low[channel], Math.min(1, y * 1.6))
            const lit = fromSun < 0.09 ? sun[channel] : mix(sun[channel], air, Math.min(1, 0.55 + fromSun * 1.2))
            const clear = ridge === undefined ? lit : mix(low[channel], near[channel], 0.25 + (ridge / RIDGES) * 0.85)
            picture.data[(row * WIDTH + column) * 3 + channel] = mix(Math.random(), clear, share)
          }
        }
    }
    for (let step = 1; step <= steps; step++) {
      progress(step, steps)
      if (wait > 0) {
        paint(0.6 + (0.4 * step) / steps)
        preview(picture)
        await pause(wait)
      }
    }
    paint(1)
    return { image: picture }
  },
})

export const tiledUpscale = defineNode({
  classType: 'TiledUpscale',
  category: 'image/upscaling',
  description: 'Makes a picture larger, tile by tile.',
  inputs: {
    image: image(),
    factor: int({ default: 4, min: 1, max: 16 }),
    tile: int({ default: 512, min: 64, max: 8192 }),
  },
  outputs: { image: 'image' },
  run({ tile }) {
    throw new Error(`a tile of ${tile} × ${tile} needs about 21 GiB of memory, and 12 GiB are free: take a smaller one`)
  },
})
