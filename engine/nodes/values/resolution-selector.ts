/** A width and a height for an aspect ratio and a number of megapixels. */
import { roundHalfEven } from '../../../lib/python/numbers.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { combo, float, int } from '../../node/input-kinds.ts'

const RATIOS = [
  '1:1 (Square)',
  '2:3 (Portrait Photo)',
  '3:2 (Photo)',
  '3:4 (Portrait Standard)',
  '4:3 (Standard)',
  '9:16 (Portrait Widescreen)',
  '16:9 (Widescreen)',
  '21:9 (Ultrawide)',
] as const

const MEGAPIXEL = 1024 * 1024

/** "16:9 (Widescreen)" as 16 and 9. */
function sidesOf(ratio: string): { readonly width: number; readonly height: number } {
  const [width, height] = ratio.split(' ')[0].split(':').map(Number)
  return { width, height }
}

export const resolutionSelector = defineNode({
  classType: 'ResolutionSelector',
  displayName: 'Resolution Selector',
  category: 'utilities',
  description: 'Width and height for an aspect ratio and a number of megapixels, as multiples of a step.',
  style: 'schema',
  required: {
    aspect_ratio: combo(RATIOS, { default: '1:1 (Square)' }),
    megapixels: float({ default: 1, min: 0.1, max: 16, step: 0.1 }),
    multiple: int({ advanced: true, default: 8, min: 8, max: 128, step: 4 }),
  },
  outputs: [
    { type: 'INT', name: 'width' },
    { type: 'INT', name: 'height' },
  ],
  cost: 'inline',
  run({ aspect_ratio, megapixels, multiple }) {
    const { width, height } = sidesOf(aspect_ratio)
    const scale = Math.sqrt((megapixels * MEGAPIXEL) / (width * height))
    const side = (ratio: number) => roundHalfEven((ratio * scale) / multiple) * multiple
    return values(side(width), side(height))
  },
})
