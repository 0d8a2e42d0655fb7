import { defineNode, values } from '../../node/define-node.ts'
import { NodeError } from '../../node/node-error.ts'
import { color } from '../../node/value-kinds.ts'
import { fromPyNumber } from '../../python/python-value.ts'

const COLOR = /^#([0-9a-f]{6})([0-9a-f]{2})?$/i

export const colorToRgbInt = defineNode({
  classType: 'ColorToRGBInt',
  displayName: 'Color Picker',
  category: 'utilities',
  description: 'A colour as one integer, as #RRGGBB text, and its opacity from 0 to 1.',
  style: 'schema',
  required: { color: color({ default: '#ffffff', socketless: true }) },
  outputs: [
    { type: 'INT', name: 'rgb_int' },
    { type: 'COLOR', name: 'hex' },
    { type: 'FLOAT', name: 'alpha' },
  ],
  cost: 'inline',
  run(inputs) {
    const match = COLOR.exec(inputs.color)
    if (match === null) throw new NodeError('ValueError', 'Color must be in format #RRGGBB or #RRGGBBAA')
    const [, rgb, alpha = 'ff'] = match
    return values(Number.parseInt(rgb, 16), `#${rgb}`, fromPyNumber(Number.parseInt(alpha, 16) / 255))
  },
})
