/** Custom nodes that do on purpose what no node should: each kind is one way to hurt, and must hurt its own job only. */
import { parentPort } from 'node:worker_threads'
import { choice, defineNode, newTensor, type RunContext, type Tensor } from '@atelier/engine/nodes'

const circle: Record<string, unknown> = {}
circle['self'] = circle
const forever = new Promise<never>(() => {})
const tensor = (shape: readonly number[], length = 0): Tensor => ({ shape, data: new Float32Array(length) })
const throwing = (error: unknown) => () => {
  throw error
}
const unprintable = Object.assign(new Error('x'), { message: Object.create(null) })

/** What `run` does, by the name of the fault. */
export const FAULTS: Readonly<Record<string, (context: RunContext) => unknown>> = {
  'throws an error': throwing(new TypeError('no such colour')),
  'throws a text': throwing('just a text'),
  'throws null': throwing(null),
  'throws what has no text': throwing(Object.create(null)),
  'throws an unprintable error': throwing(unprintable),
  'returns nothing': () => undefined,
  'returns a list': () => [tensor([1, 1, 1, 3], 3)],
  'returns too little': () => ({}),
  'returns too much': () => ({ image: tensor([1, 1, 1, 3], 3), value: 1, more: 2 }),
  'returns a wrong type': () => ({ image: 'a picture', value: 1 }),
  'returns a promise inside': () => ({ image: forever, value: 1 }),
  'returns a function inside': () => ({ image: tensor([1, 1, 1, 3], 3), value: { now: () => 1 } }),
  'returns a map': () => ({ image: tensor([1, 1, 1, 3], 3), value: new Map() }),
  'returns a circle': () => ({ image: tensor([1, 1, 1, 3], 3), value: circle }),
  'returns NaN as a side': () => ({ image: tensor([1, Number.NaN, 1, 3]), value: 1 }),
  'returns a negative side': () => ({ image: tensor([1, -1, 1, 3]), value: 1 }),
  'returns too few pixels': () => ({ image: tensor([1, 100, 100, 3], 3), value: 1 }),
  'returns a wrong rank': () => ({ image: tensor([3], 3), value: 1 }),
  'returns huge tensors': () => {
    const huge = newTensor([1, 2500, 2500, 3])
    return { image: huge, value: huge }
  },
  'returns a huge text': () => ({ image: tensor([1, 1, 1, 3], 3), value: 'x'.repeat(50_000_000) }),
  'makes an impossible tensor': () => newTensor([1e9, 1e9, 1, 3]),
  'throws in a getter': () => ({
    image: tensor([1, 1, 1, 3], 3),
    get value() {
      throw new Error('caught you')
    },
  }),
  'ends the process': () => process.exit(0),
  'rejects without a handler': () => {
    void Promise.reject(new Error('nobody handles this'))
    return { image: tensor([1, 1, 1, 3], 3), value: 1 }
  },
  'throws in a timer': () => {
    setTimeout(throwing(new Error('thrown in a timer')), 1)
    return forever
  },
  'loops without end': () => {
    for (;;) Math.random()
  },
  'never settles': () => forever,
  'fills the heap': () => {
    const kept: unknown[] = []
    for (;;) kept.push({ kept: kept.length, more: [kept.length] })
  },
  'fills buffers': async () => {
    const kept: Float32Array[] = []
    for (;;) {
      kept.push(new Float32Array(2_000_000))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  },
  'reports nonsense': ({ progress }) => progress(Number.NaN, 3),
}

/** Strange, but the job succeeds. */
export const ODDITIES: Readonly<Record<string, (context: RunContext) => unknown>> = {
  'prints megabytes': () => {
    const line = 'x'.repeat(1000)
    for (let i = 0; i < 20_000; i++) console.log(line)
    return { image: tensor([1, 1, 1, 3], 3), value: 'printed' }
  },
  'leaves a timer behind': () => {
    setTimeout(throwing(new Error('too late')), 50)
    return { image: tensor([1, 1, 1, 3], 3), value: 'left a timer' }
  },
  'speaks to the wrong port': () => {
    parentPort?.postMessage({ type: 'done', result: 'forged' })
    parentPort?.postMessage(17)
    return { image: tensor([1, 1, 1, 3], 3), value: 'posted' }
  },
  'is well': () => ({ image: tensor([1, 1, 1, 3], 3), value: 'well' }),
}

const all = { ...FAULTS, ...ODDITIES }

export const misbehaves = defineNode({
  classType: 'Misbehaves',
  inputs: { how: choice(Object.keys(all)) },
  outputs: { image: 'image', value: 'anything' },
  isCached: false,
  run({ how }, context) {
    console.log(`begins: ${how}`)
    return all[how](context) as never
  },
})

/** Waits for its signal and tells when it was heard. */
export const waits = defineNode({
  classType: 'Waits',
  outputs: { value: 'string' },
  isCached: false,
  async run(_inputs, { signal, log }) {
    log('waiting')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return { value: 'stopped' }
  },
})

/** Writes into what it was given, which is its own copy. */
export const scribbles = defineNode({
  classType: 'Scribbles',
  inputs: { source: { kind: 'image', options: {} } },
  outputs: { image: 'image' },
  run({ source }) {
    const given = source as Tensor
    given.data.fill(0.25)
    return { image: given }
  },
})
