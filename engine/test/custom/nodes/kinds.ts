/** Well-behaved custom nodes that between them use every kind of input and output. */
import {
  anything,
  audio,
  boolean,
  choice,
  defineNode,
  float,
  image,
  int,
  latent,
  mask,
  newTensor,
  ofType,
  optional,
  seed,
  string,
} from '@atelier/engine/nodes'

const inputs = {
  image: image(),
  mask: mask(),
  latent: latent(),
  audio: audio(),
  int: int({ default: 1, min: 0, max: 10 }),
  seed: seed(),
  float: float({ default: 1, min: 0, max: 8 }),
  string: string({ multiline: true }),
  boolean: boolean({ default: true }),
  choice: choice(['red', 'green'], { default: 'green' }),
  anything: anything(),
  palette: ofType('PALETTE'),
  absent: optional(string({ tooltip: 'not needed' })),
}

export const makePalette = defineNode({
  classType: 'MakePalette',
  displayName: 'Make a palette',
  outputs: { palette: 'PALETTE' },
  run: () => ({ palette: { colors: ['red', 'green'], weights: newTensor([2]), count: 2n } }),
})

export const makeLatent = defineNode({
  classType: 'MakeLatent',
  outputs: { latent: 'latent', audio: 'audio' },
  run: () => ({
    latent: { samples: newTensor([1, 4, 2, 2]), batch_index: [3] },
    audio: { waveform: newTensor([1, 2, 5]), sampleRate: 8000 },
  }),
})

/** Gives everything back that it was given, and a description of it. */
export const echo = defineNode({
  classType: 'Echo',
  category: 'test',
  inputs,
  outputs: {
    image: 'image',
    mask: 'mask',
    latent: 'latent',
    audio: 'audio',
    int: 'int',
    seed: 'int',
    float: 'float',
    string: 'string',
    boolean: 'boolean',
    anything: 'anything',
    palette: 'PALETTE',
    absent: 'boolean',
  },
  run({ absent, choice: color, string: text, ...rest }) {
    return { ...rest, string: `${text} ${color}`, absent: absent === undefined }
  },
})

/** An output node without outputs: it only acts. */
export const acts = defineNode({
  classType: 'Acts',
  isOutputNode: true,
  async run(_inputs, { log }) {
    log('acted')
  },
})

/** Shows what a node can tell while it works. */
export const tells = defineNode({
  classType: 'Tells',
  inputs: { steps: int({ default: 3 }) },
  outputs: { id: 'string' },
  async run({ steps }, { progress, preview, log, nodeId }) {
    const picture = newTensor([1, 600, 8, 3])
    for (let step = 1; step <= steps; step++) progress(step, steps)
    log('a line of the log')
    console.error('an error line')
    preview(picture)
    return { id: nodeId }
  },
})

/** Shows a picture with every step, as a sampler does. */
export const samples = defineNode({
  classType: 'Samples',
  inputs: { steps: int({ default: 3 }) },
  outputs: { done: 'boolean' },
  async run({ steps }, { progress, preview }) {
    for (let step = 1; step <= steps; step++) {
      await new Promise((resolve) => setTimeout(resolve, 40))
      progress(step, steps)
      preview({ contentType: 'image/jpeg', bytes: new Uint8Array([0xff, 0xd8, step]) })
    }
    return { done: true }
  },
})
