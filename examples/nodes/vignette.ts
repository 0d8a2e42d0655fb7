/** Darkens the corners of images. Load it with `npx atelier serve --nodes examples/nodes`. */
import { choice, defineNode, float, image, newTensor } from 'atelier/nodes'

export const vignette = defineNode({
  classType: 'Vignette',
  category: 'image/filters',
  description: 'Darkens images towards their corners.',
  inputs: {
    image: image(),
    strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
    shape: choice(['round', 'square'], { default: 'round' }),
  },
  outputs: { image: 'image' },
  run({ image: source, strength, shape }, { progress }) {
    const result = newTensor(source.shape)
    const [batch, height, width, channels] = source.shape
    for (let row = 0; row < batch * height; row++) {
      progress(row + 1, batch * height) // also stops here when the job is cancelled
      const y = Math.abs((2 * ((row % height) + 0.5)) / height - 1)
      for (let column = 0; column < width; column++) {
        const x = Math.abs((2 * (column + 0.5)) / width - 1)
        const distance = shape === 'round' ? Math.sqrt((x * x + y * y) / 2) : Math.max(x, y)
        const light = 1 - strength * distance * distance
        const first = (row * width + column) * channels
        for (let i = first; i < first + channels; i++) result.data[i] = source.data[i] * light
      }
    }
    return { image: result }
  },
})
