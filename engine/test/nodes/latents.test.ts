/** Latents, noise levels and latent files beyond the recordings. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { floatsOf } from '../support/golden-cases.ts'
import {
  bytesOf,
  dumped,
  FIXTURES,
  type GraphJson,
  lastOf,
  openTestEngine,
  reportOf,
  type TestEngine,
} from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine()
})
after(() => engine[Symbol.asyncDispose]())

const FILES = Object.fromEntries(
  ['lat1.latent', 'lat2.latent'].map((name) => [name, `${FIXTURES}golden/inputs/${name}`]),
)
const load = (latent: string) => ({ class_type: 'LoadLatent', inputs: { latent } })
const L1 = load('lat1.latent')
const L2 = load('lat2.latent')

function tensorOf(value: unknown) {
  const { shape, f32_b64 } = value as JsonObject
  return { shape: shape as number[], values: floatsOf(f32_b64 as string) }
}

async function dump(graph: GraphJson, files: Readonly<Record<string, string | Uint8Array>> = FILES) {
  const all = { ...graph, dump: { class_type: 'TestDump', inputs: { source: ['x', 0] } } }
  const events = await engine.run(all, { files })
  assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
  return dumped(events, 'dump') as JsonObject[]
}

const membersOf = async (graph: GraphJson) => (await dump(graph)).map(({ value }) => value as JsonObject)
const listOf = (value: unknown) => ((value as JsonObject).value as JsonObject[]).map((item) => item.value)

async function failureOf(graph: GraphJson, files: Readonly<Record<string, string | Uint8Array>> = FILES) {
  const events = await engine.run(
    { ...graph, out: { class_type: 'PreviewAny', inputs: { source: ['x', 0] } } },
    { files },
  )
  const { failure } = lastOf(events, 'failed')
  return [failure.exceptionType, failure.message]
}

test('a saved latent remembers its workflow, and loads as what it was', async () => {
  const graph: GraphJson = {
    l: L2,
    save: { class_type: 'SaveLatent', inputs: { samples: ['l', 0], filename_prefix: 'latents/ComfyUI' } },
  }
  const events = await engine.run(graph, { files: FILES, extraPngInfo: { workflow: { é: 1 } } })
  const [file] = reportOf(events, 'save', 'latents')
  assert.ok(file.kind === 'file')
  assert.deepEqual(
    [file.subfolder, file.filename, file.contentType],
    ['latents', 'ComfyUI_00001_.latent', 'application/x-latent'],
  )
  const bytes = await bytesOf(file)
  const headerBytes = Number(bytes.readBigUInt64LE())
  assert.equal(headerBytes % 8, 0)
  const header = JSON.parse(bytes.subarray(8, 8 + headerBytes).toString())
  assert.equal(header.__metadata__.workflow, '{"\\u00e9": 1}')
  assert.ok(JSON.parse(header.__metadata__.prompt).save)
  assert.deepEqual(header.latent_format_version_0.shape, [0])
  const [before] = await dump({ x: L2 })
  const [after] = await dump({ x: load('again.latent') }, { 'again.latent': bytes })
  assert.deepEqual(after, before)
})

function safetensors(header: unknown, data = Buffer.alloc(0)): Buffer {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, data])
}

test('half precision is read, and samples of the first format are scaled back', async () => {
  const entry = (dtype: string) => ({ latent_tensor: { dtype, shape: [1, 1, 1, 2], data_offsets: [0, 4] } })
  const half = safetensors(entry('F16'), Buffer.from([0x00, 0x3c, 0x01, 0x00]))
  const brain = safetensors(entry('BF16'), Buffer.from([0x80, 0x3f, 0x00, 0xc0]))
  const read = async (bytes: Buffer) => {
    const [{ value }] = await dump({ x: load('h.latent') }, { 'h.latent': bytes })
    return [...tensorOf((value as JsonObject).samples).values]
  }
  const scale = Math.fround(1 / 0.18215)
  assert.deepEqual(await read(half), [scale, Math.fround(scale * 2 ** -24)])
  assert.deepEqual(await read(brain), [scale, -2 * scale])
})

test('a hostile latent file is refused with a message, before memory is taken for it', async () => {
  const entry = (shape: unknown, offsets: unknown, dtype = 'F32') =>
    safetensors({ latent_tensor: { dtype, shape, data_offsets: offsets } }, Buffer.alloc(16))
  const wanted: [Buffer, RegExp][] = [
    [Buffer.from('tiny'), /HeaderTooSmall/],
    [Buffer.from([255, 255, 255, 255, 255, 255, 255, 255, 0]), /HeaderTooLarge/],
    [Buffer.from([200, 0, 0, 0, 0, 0, 0, 0, 0]), /InvalidHeaderLength/],
    [safetensors('{"latent_tensor":'), /InvalidHeaderDeserialization/],
    [safetensors('[]'), /InvalidHeaderDeserialization/],
    [safetensors({}), /'latent_tensor'/],
    [entry([1e9, 1e9], [0, 16]), /TensorInvalidInfo/],
    [entry([4], [0, 17]), /InvalidOffset/],
    [entry([4], [16, 0]), /InvalidOffset/],
    [entry([-4], [0, 16]), /InvalidShape/],
    [entry([2], [0, 16], 'I64'), /F64, F32, F16 or BF16/],
  ]
  for (const [bytes, message] of wanted) {
    assert.match((await failureOf({ x: load('bad.latent') }, { 'bad.latent': bytes }))[1], message)
  }
})

test('a file that is not a latent at all, and one that is missing, fail by name', async () => {
  assert.deepEqual(await failureOf({ x: load('no.latent') }), ['FileNotFoundError', 'Invalid latent file: no.latent'])
  const graph: GraphJson = {
    s: { class_type: 'PrimitiveString', inputs: { value: 'text' } },
    x: { class_type: 'LatentMultiply', inputs: { samples: ['s', 0], multiplier: 2 } },
  }
  assert.deepEqual(await failureOf(graph), ['TypeError', "samples: expected a latent, got 'str'"])
})

test('a batch that is repeated continues the indexes it was cut out with', async () => {
  const graph: GraphJson = {
    l: L2,
    part: { class_type: 'LatentFromBatch', inputs: { samples: ['l', 0], batch_index: -1, length: 4 } },
    x: { class_type: 'RepeatLatentBatch', inputs: { samples: ['part', 0], amount: 3 } },
  }
  const [{ batch_index, samples }] = await membersOf(graph)
  assert.deepEqual(listOf(batch_index), [1, 2, 3])
  assert.deepEqual(tensorOf(samples).shape, [3, 4, 7, 9])
})

test('latents of two sizes are regrouped apart, and a mask of ones is left away', async () => {
  const graph: GraphJson = {
    a: L1,
    b: L2,
    ones: { class_type: 'SolidMask', inputs: { value: 1, width: 72, height: 56 } },
    masked: { class_type: 'SetLatentNoiseMask', inputs: { samples: ['b', 0], mask: ['ones', 0] } },
    list: {
      class_type: 'CreateList',
      inputs: { 'inputs.input0': ['a', 0], 'inputs.input1': ['masked', 0], 'inputs.input2': ['b', 0] },
    },
    x: { class_type: 'RebatchLatents', inputs: { latents: ['list', 0], batch_size: 3 } },
  }
  const groups = await membersOf(graph)
  assert.deepEqual(
    groups.map(({ samples, batch_index }) => [tensorOf(samples).shape, listOf(batch_index)]),
    [
      [[1, 4, 8, 10], [0]],
      [
        [3, 4, 7, 9],
        [1, 2, 3],
      ],
      [[1, 4, 7, 9], [4]],
    ],
  )
  assert.ok(groups.every((group) => !('noise_mask' in group)))
})

test('a noise mask stays with its latents when others of the group have none', async () => {
  const graph: GraphJson = {
    b: L2,
    half: { class_type: 'SolidMask', inputs: { value: 0.5, width: 72, height: 56 } },
    masked: { class_type: 'SetLatentNoiseMask', inputs: { samples: ['b', 0], mask: ['half', 0] } },
    list: { class_type: 'CreateList', inputs: { 'inputs.input0': ['masked', 0], 'inputs.input1': ['b', 0] } },
    x: { class_type: 'RebatchLatents', inputs: { latents: ['list', 0], batch_size: 4 } },
  }
  const [{ noise_mask }] = await membersOf(graph)
  const { shape, values } = tensorOf(noise_mask)
  assert.deepEqual(shape, [4, 1, 56, 72])
  assert.deepEqual([values[0], values.at(-1)], [0.5, 1])
})

test('a resize to the same size keeps every value, bislerp included', async () => {
  const [{ samples }] = await membersOf({ x: L1 })
  for (const method of ['bilinear', 'bislerp']) {
    const inputs = { samples: ['l', 0], upscale_method: method, width: 80, height: 64, crop: 'center' }
    const [same] = await membersOf({ l: L1, x: { class_type: 'LatentUpscale', inputs } })
    assert.deepEqual(same.samples, samples)
  }
})

test('bislerp with a crop keeps the aspect, and empty latents stay empty', async () => {
  const upscale = (id: string) => ({
    class_type: 'LatentUpscale',
    inputs: { samples: [id, 0], upscale_method: 'bislerp', width: 128, height: 64, crop: 'center' },
  })
  const [cut] = await membersOf({ l: L1, x: upscale('l') })
  assert.deepEqual(tensorOf(cut.samples).shape, [1, 4, 8, 16])
  const zero = { class_type: 'EmptyLatentImage', inputs: { width: 64, height: 64, batch_size: 2 } }
  const [empty] = await membersOf({ l: zero, x: upscale('l') })
  assert.ok(tensorOf(empty.samples).values.every((value) => value === 0))
})

test('a soft edge fades only where it does not lie on the border', async () => {
  const graph: GraphJson = {
    to: { class_type: 'EmptyLatentImage', inputs: { width: 64, height: 16, batch_size: 1 } },
    from: { class_type: 'EmptyLatentImage', inputs: { width: 32, height: 16, batch_size: 1 } },
    add: { class_type: 'LatentAdd', inputs: { samples1: ['to', 0], samples2: ['from', 0] } },
    l: L1,
    part: { class_type: 'LatentCrop', inputs: { samples: ['l', 0], width: 64, height: 64, x: 0, y: 0 } },
    x: {
      class_type: 'LatentComposite',
      inputs: { samples_to: ['add', 0], samples_from: ['part', 0], x: 32, y: 0, feather: 16 },
    },
  }
  const [{ samples }] = await membersOf(graph)
  const [{ samples: part }] = await membersOf({ l: L1, x: graph.part })
  const [to, from] = [tensorOf(samples).values, tensorOf(part).values]
  assert.equal(to[3], 0)
  assert.ok(Math.abs(to[4] - from[0] * 0.5) < 1e-6)
  assert.ok(Math.abs(to[5] - from[1]) < 1e-6)
  assert.ok(Math.abs(to[7] - from[3]) < 1e-6)
})

test('latents of other channels cannot be added, and the failure says so as PyTorch does', async () => {
  const graph: GraphJson = {
    a: { class_type: 'EmptyLatentImage', inputs: { width: 64, height: 64, batch_size: 1 } },
    b: { class_type: 'EmptySD3LatentImage', inputs: { width: 64, height: 64, batch_size: 1 } },
    x: { class_type: 'LatentAdd', inputs: { samples1: ['a', 0], samples2: ['b', 0] } },
  }
  assert.deepEqual(await failureOf(graph), [
    'RuntimeError',
    'The size of tensor a (4) must match the size of tensor b (16) at non-singleton dimension 1',
  ])
})

async function sigmasOf(graph: GraphJson, slot = 0): Promise<number[]> {
  const all = { ...graph, dump: { class_type: 'TestDump', inputs: { source: ['x', slot] } } }
  return [...tensorOf(dumped(await engine.run(all), 'dump')[0]).values]
}
const manual = (sigmas: string) => ({ class_type: 'ManualSigmas', inputs: { sigmas } })

test('numbers are found in any text, and what Python cannot read fails', async () => {
  assert.deepEqual(await sigmasOf({ x: manual('') }), [])
  assert.deepEqual(await sigmasOf({ x: manual('x-.5y+2.z3') }), [-0.5, 2, 3])
  assert.deepEqual(await failureOf({ x: manual('1..5') }), ['ValueError', "could not convert string to float: '1..5'"])
})

test('a long run of dots is read in no time', async () => {
  assert.deepEqual(await sigmasOf({ x: manual(`${'.'.repeat(2_000_000)} 7`) }), [7])
})

test('noise levels are split and reversed, empty ones included', async () => {
  const split = (step: number) => ({ class_type: 'SplitSigmas', inputs: { sigmas: ['s', 0], step } })
  assert.deepEqual(await sigmasOf({ s: manual('3 2 1 0'), x: split(2) }), [3, 2, 1])
  assert.deepEqual(await sigmasOf({ s: manual('3 2 1 0'), x: split(2) }, 1), [1, 0])
  assert.deepEqual(await sigmasOf({ s: manual('3 2 1 0'), x: split(99) }, 1), [])
  const flip = { class_type: 'FlipSigmas', inputs: { sigmas: ['s', 0] } }
  assert.deepEqual(await sigmasOf({ s: manual('3 2 0'), x: flip }), [Math.fround(0.0001), 2, 3])
  assert.deepEqual(await sigmasOf({ s: manual(''), x: flip }), [])
  const first = { class_type: 'SetFirstSigma', inputs: { sigmas: ['s', 0], sigma: 5 } }
  assert.deepEqual(await failureOf({ s: manual(''), x: first }), [
    'IndexError',
    'index 0 is out of bounds for dimension 0 with size 0',
  ])
})

test('schedules fail where Python cannot compute them', async () => {
  const karras = { steps: 3, sigma_max: 10, sigma_min: 0.1, rho: 0 }
  assert.deepEqual(await failureOf({ x: { class_type: 'KarrasScheduler', inputs: karras } }), [
    'ZeroDivisionError',
    'float division by zero',
  ])
  const exponential = { steps: 3, sigma_max: 10, sigma_min: 0 }
  assert.deepEqual(await failureOf({ x: { class_type: 'ExponentialScheduler', inputs: exponential } }), [
    'ValueError',
    'math domain error',
  ])
})
