/** The engine's door, as a program outside of this folder uses it: without any option, with graphs as they come. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { readGraph } from '../graph/graph-json.ts'
import {
  type Engine,
  type EngineEvent,
  type GraphError,
  type GraphSource,
  openEngine,
  type RunOptions,
} from '../index.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const RED = 0xff0000

let engine: Engine
let folder: string
before(async () => {
  engine = await openEngine()
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-door-'))
  mkdirSync(path.join(folder, 'inputs', 'set'), { recursive: true })
  const picture = await sharp({ create: { width: 3, height: 2, channels: 3, background: '#0000ff' } })
    .png()
    .toBuffer()
  for (const name of ['secret.png', 'inputs/cat.png', 'inputs/set/one.png', 'inputs/set/two.png']) {
    writeFileSync(path.join(folder, name), picture)
  }
})
after(async () => {
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

const painting = (color = RED) => ({
  1: { class_type: 'EmptyImage', inputs: { width: 16, height: 8, batch_size: 1, color } },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'painting' } },
})

const loading = (image: string) => ({
  1: { class_type: 'LoadImage', inputs: { image } },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'loaded' } },
})

const endless = () => ({
  1: { class_type: 'EmptyImage', inputs: { width: 2048, height: 2048, batch_size: 1, color: 1 } },
  2: { class_type: 'ImageBlur', inputs: { image: ['1', 0], blur_radius: 31, sigma: 5 } },
  3: { class_type: 'ImageBlur', inputs: { image: ['2', 0], blur_radius: 31, sigma: 5 } },
  4: { class_type: 'PreviewImage', inputs: { images: ['3', 0] } },
})

async function pictures(graph: GraphSource, options?: RunOptions) {
  const events = await Array.fromAsync(engine.run(graph, options))
  assert.deepEqual(events.at(-1), { type: 'succeeded' })
  const items = events.flatMap((event) => (event.type === 'node_report' ? (event.report.images ?? []) : []))
  return Promise.all(
    items.map(async (item) => {
      assert.ok(item.kind === 'file')
      const png = Buffer.concat(await Array.fromAsync(item.read()))
      const { data, info } = await sharp(png).raw().toBuffer({ resolveWithObject: true })
      return { filename: item.filename, size: [info.width, info.height], pixel: [...data.subarray(0, 3)], png }
    }),
  )
}

async function refusal(graph: unknown, options?: RunOptions): Promise<GraphError> {
  const events = engine.run(graph as GraphSource, options)
  const error = await events.next().then(
    () => assert.fail('the graph was accepted'),
    (reason: GraphError) => reason,
  )
  assert.equal(error.name, 'GraphError', error.stack)
  return error
}

describe('a graph', () => {
  test('may be an object, text, or a graph that was read before', async () => {
    const graph = painting()
    for (const source of [graph, JSON.stringify(graph), readGraph(graph)]) {
      const [{ size, pixel }] = await pictures(source)
      assert.deepEqual(
        [size, pixel],
        [
          [16, 8],
          [255, 0, 0],
        ],
      )
    }
  })

  test('keeps every digit of a number when it is text', async () => {
    const text = JSON.stringify({ ...painting(5), 3: { class_type: 'PrimitiveInt', inputs: { value: 7 } } })
    const [{ png }] = await pictures(text.replace(':7}', ':9223372036854775807}'))
    assert.ok(png.includes('"value": 9223372036854775807'))
  })

  test('that cannot be run is refused with node and field before anything happens', async () => {
    const cases: [unknown, GraphError['problem'], RegExp, unknown][] = [
      ['{', 'malformed', /^the graph is not valid JSON/, {}],
      [undefined, 'malformed', /must be an object/, {}],
      [{ 1: 'x' }, 'malformed', /^Node 1 must be an object/, { 1: [''] }],
      [{ nodes: [], links: [] }, 'ui_format', /Export \(API\)/, {}],
      [{ 1: { class_type: 'KSampler', inputs: {} } }, 'invalid', /^Node 1 \(KSampler\): the node class/, { 1: [''] }],
      [
        { ...painting(), 1: { class_type: 'EmptyImage', inputs: {} } },
        'invalid',
        /width is missing/,
        { 1: ['width', 'height', 'batch_size', 'color'] },
      ],
      [{ 1: painting()[1] }, 'invalid', /no outputs/, {}],
    ]
    for (const [graph, problem, message, fields] of cases) {
      const error = await refusal(graph)
      assert.equal(error.problem, problem, error.message)
      assert.match(error.message, message)
      const found = Object.entries(error.nodeErrors).map(([id, errors]) => [id, errors.map(({ field }) => field)])
      assert.deepEqual(Object.fromEntries(found), fields)
    }
    const loop: Record<string, unknown> = {}
    loop.self = loop
    assert.equal((await refusal(loop)).problem, 'malformed')
  })
})

describe('input files', () => {
  test('are found in the folder by name', async () => {
    const inputFolder = path.join(folder, 'inputs')
    for (const name of ['cat.png', 'cat.png [input]', 'set/one.png']) {
      const [{ size, pixel }] = await pictures(loading(name), { inputFolder })
      assert.deepEqual(
        [size, pixel],
        [
          [3, 2],
          [0, 0, 255],
        ],
        name,
      )
    }
  })

  test('are never looked for outside of it', async () => {
    const inputFolder = path.join(folder, 'inputs')
    for (const name of [
      '../secret.png',
      'set/../../secret.png',
      path.join(folder, 'secret.png'),
      'set',
      '..',
      'a\0b',
      'no.png',
    ]) {
      const error = await refusal(loading(name), { inputFolder })
      assert.match(error.message, /^Node 1 \(LoadImage\): .*Invalid image file/, name)
      assert.deepEqual(
        error.nodeErrors['1'].map(({ field }) => field),
        ['image'],
      )
    }
    assert.match((await refusal(loading('cat.png'))).message, /Invalid image file/)
  })

  test('may be given as paths and bytes, under any name', async () => {
    const green = await sharp({ create: { width: 1, height: 1, channels: 3, background: '#00ff00' } })
      .png()
      .toBuffer()
    const inputs = { '../mine.png': path.join(folder, 'secret.png'), 'green.png': green }
    assert.deepEqual((await pictures(loading('../mine.png'), { inputs }))[0].pixel, [0, 0, 255])
    assert.deepEqual(
      (await pictures(loading('green.png'), { inputs: new Map(Object.entries(inputs)) }))[0].pixel,
      [0, 255, 0],
    )
  })

  test('a changed file is read again', async () => {
    const inputs = (background: string) =>
      sharp({ create: { width: 1, height: 1, channels: 3, background } })
        .png()
        .toBuffer()
    const inputFolder = path.join(folder, 'inputs')
    for (const [background, pixel] of [
      ['#010203', [1, 2, 3]],
      ['#040506', [4, 5, 6]],
    ] as const) {
      writeFileSync(path.join(inputFolder, 'changing.png'), await inputs(background))
      assert.deepEqual((await pictures(loading('changing.png'), { inputFolder }))[0].pixel, pixel)
    }
  })
})

describe('runs', () => {
  test('go on side by side, and no two outputs get the same name', async () => {
    const made = await Promise.all([1, 2, 3, 4].map((color) => pictures(painting(color))))
    assert.equal(new Set(made.flat().map(({ filename }) => filename)).size, 4)
    assert.deepEqual(
      made.map(([{ pixel }]) => pixel[2]),
      [1, 2, 3, 4],
    )
  })

  test('end with an interruption when they are aborted, before the start as well', async () => {
    const stop = new AbortController()
    const events: EngineEvent[] = []
    for await (const event of engine.run(endless(), { signal: stop.signal })) {
      events.push(event)
      if (event.type === 'node_started') stop.abort()
    }
    assert.equal(events.at(-1)?.type, 'interrupted')
    const late = await Array.fromAsync(engine.run(painting(), { signal: stop.signal }))
    assert.deepEqual([late[0].type, late.at(-1)?.type], ['started', 'interrupted'])
  })

  test('a node that fails is an event, not an exception', async () => {
    const graph = {
      ...painting(),
      2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: '../x' } },
    }
    const last = (await Array.fromAsync(engine.run(graph))).at(-1)
    assert.ok(last?.type === 'failed')
    assert.deepEqual([last.failure.nodeId, last.failure.classType], ['2', 'SaveImage'])
  })
})

test('results of earlier runs are kept until the engine has rested; the next run starts it again', async () => {
  await using resting = await openEngine({ restMs: 0 })
  await using awake = await openEngine()
  for (const [used, isKept] of [
    [resting, false],
    [awake, true],
  ] as const) {
    for (const isCached of [false, isKept]) {
      const events = await Array.fromAsync(used.run(painting()))
      const cached = events.flatMap((event) => (event.type === 'cached' ? event.nodeIds : []))
      assert.equal(cached.length > 0, isCached)
      assert.equal(events.at(-1)?.type, 'succeeded')
      // Timers of the same length fire in the order in which they were set.
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
})

test('the catalog says what can be run, custom nodes included', async () => {
  assert.notEqual(engine.catalog().find('EmptyImage'), null)
  assert.equal(engine.catalog().find('Vignette'), null)
  await using other = await openEngine({ threads: 1, customNodes: { folders: [path.join(ROOT, 'examples/nodes')] } })
  assert.notEqual(other.catalog().find('Vignette'), null)
})

test('a closed engine runs nothing; closing it twice is harmless', async () => {
  const closed = await openEngine({ threads: 1 })
  await closed.close()
  await closed.close()
  await closed[Symbol.asyncDispose]()
  await assert.rejects(closed.run(painting()).next(), /the engine is closed/)
})

test('a program ends by itself once its engine is closed, also when runs were left alone', async () => {
  const program = `
    import { openEngine } from 'atelier/engine'
    const engine = await openEngine()
    for await (const event of engine.run(${JSON.stringify(painting())})) console.log(event.type)
    const left = engine.run(${JSON.stringify(endless())})
    await left.next()
    await engine.close()
  `
  const args = ['--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  assert.match(stdout, /^started\n[\s\S]*succeeded\n$/)
})
