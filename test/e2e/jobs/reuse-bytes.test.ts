/**
 * Results that answer further jobs, through the whole service with the built-in engine: whenever one does, an engine that runs the
 * same graph for the first time makes the same bytes; and the graphs that must always be run are.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { openEngine, type ReportedItem } from '../../../engine/index.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { assetRef, CheckedClient, node, type WireJob, type Workflow } from '../../support/clients/checked-client.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

type Reused = WireJob & { readonly reused_from?: string }
const EXACT = { reuse: 'exact' }

const NODES = `import { defineNode } from 'atelier/nodes'
export const dice = defineNode({ classType: 'Dice', inputs: {}, outputs: { text: 'string' }, run: () => ({ text: String(Math.random()) }) })
export const clock = defineNode({ classType: 'Clock', inputs: {}, outputs: { text: 'string' }, run: () => ({ text: String(Date.now()) }) })`

describe('with the built-in engine', () => {
  let service: TestApp | null = null
  let client: CheckedClient
  let nodesDir = ''
  before(async () => {
    nodesDir = await mkdtemp(path.join(tmpdir(), 'atelier-reuse-'))
    await writeFile(path.join(nodesDir, 'odd.ts'), NODES)
    const settings = { workers: '1', engineThreads: '1' }
    service = await startTestApp({ settings: { ...settings, nodes: nodesDir } })
    client = new CheckedClient(service.url)
    await client.uploaded('in.png', await picture('#204060'))
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await rm(nodesDir, { recursive: true, force: true })
  })

  const run = async (workflow: Workflow, more: object = EXACT) => (await client.run(workflow, more)) as Reused

  test('whenever a result answers, running for real gives the same bytes', async () => {
    const random = seededRandom(18)
    await using engine = await openEngine({ threads: 1 })
    const bytes = await picture('#204060')
    const asked: { readonly workflow: Workflow; readonly notes: object | null }[] = []
    let hits = 0
    for (let count = 0; count < 60; count += 1) {
      const earlier = asked.length > 0 && random.next() < 0.6 ? random.pick(asked) : null
      const workflow = earlier === null ? randomGraph(random) : nudge(earlier.workflow, random)
      const notes = random.next() < 0.7 ? (earlier?.notes ?? null) : { workflow: { n: random.between(0, 2) } }
      asked.push({ workflow, notes })
      const where = JSON.stringify([workflow, notes])
      const job = await run(workflow, { ...EXACT, ...(notes !== null && { extra_data: { extra_pnginfo: notes } }) })
      assert.equal(job.status, 'succeeded', `${where} ${JSON.stringify(job.error)}`)
      if (job.reused_from === undefined) continue
      hits += 1
      // Another owner each time: nothing comes from a cache.
      const options = { owner: String(count), inputs: { 'in.png': bytes }, extraPngInfo: notes as JsonValue }
      const made: Buffer[] = []
      for await (const event of engine.run(workflow as JsonObject, options)) {
        if (event.type === 'failed') assert.fail(event.failure.message)
        if (event.type === 'node_report')
          for (const items of Object.values(event.report)) made.push(...(await Promise.all(items.map(toBytes))))
      }
      const answered = await Promise.all(
        job.outputs.map(async ({ id }) => (await client.call(`/api/v2/assets/${id}/content`)).bytes),
      )
      assert.deepEqual(answered, made, where)
    }
    assert.ok(hits >= 8, `${hits} hits`)
  })

  const image = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 255 })
  const save = (from: string, more: object = {}) =>
    node('SaveImage', { images: [from, 0], filename_prefix: 'a', ...more })
  const saved = (value: unknown, name = 'value') => ({
    '1': image,
    '2': node('ImageBlend', {
      image1: ['1', 0],
      image2: ['1', 0],
      blend_factor: 1,
      blend_mode: 'normal',
      [name]: value,
    }),
    '3': save('2'),
  })
  const written = (source: object) => ({ '1': source, '2': node('PreviewAny', { source: ['1', 0] }) })
  const plain: Workflow = { '1': image, '2': save('1') }

  /** Each is sent twice, or first the one and then the other: both must be run. */
  const NEVER: readonly (readonly [
    name: string,
    first: readonly [Workflow, object?],
    second?: readonly [Workflow, object?],
  ])[] = [
    ['a node that rolls dice', [written(node('Dice'))]],
    ['a node that reads the clock', [written(node('Clock'))]],
    ['a name that holds the time', [{ '1': image, '2': save('1', { filename_prefix: 'a_%hour%%minute%' }) }]],
    [
      'a name that another node makes',
      [
        {
          '0': node('PrimitiveString', { value: '%second%' }),
          '1': image,
          '2': save('1', { filename_prefix: ['0', 0] }),
        },
      ],
    ],
    ['what is only shown', [{ '1': image, '2': node('SaveImageWebsocket', { images: ['1', 0] }), '3': save('1') }]],
    ['previews', [{ '1': image, '2': node('PreviewImage', { images: ['1', 0] }), '3': save('1') }]],
    ['a partner node', [written(node('RunModel', { model: 'local/none', input: '{}' }))]],
    ['credentials', [plain, { ...EXACT, extra_data: { api_key_comfy_org: 'secret-of-the-test' } }]],
    [
      'a graph that says none',
      [plain, { ...EXACT, extra_data: pngInfo(1) }],
      [plain, { reuse: 'none', extra_data: pngInfo(1) }],
    ],
    [
      'a first job that did not ask',
      [plain, { extra_data: pngInfo(2) }],
      [plain, { ...EXACT, extra_data: pngInfo(2) }],
    ],
    [
      'other notes in the files',
      [plain, { ...EXACT, extra_data: pngInfo(3) }],
      [plain, { ...EXACT, extra_data: pngInfo(4) }],
    ],
    [
      'another title of a node',
      [{ ...plain, '2': { ...save('1'), _meta: { title: 'a' } } }],
      [{ ...plain, '2': { ...save('1'), _meta: { title: 'b' } } }],
    ],
    ['another order of nodes', [{ w: image, x: save('w') }], [{ x: save('w'), w: image }]],
    [
      'another order of inputs',
      [{ '1': image, y: save('1') }],
      [{ '1': image, y: node('SaveImage', { filename_prefix: 'a', images: ['1', 0] }) }],
    ],
    ['other ids of nodes', [{ a: image, '2': save('a') }], [{ b: image, '2': save('b') }]],
    ['another row of a batch', [saved(0.25, 'blend_factor')], [saved(0.5, 'blend_factor')]],
    ['a file that cannot be read', [{ '1': node('LoadImage', { image: 'text.png' }), '2': save('1') }]],
  ]
  for (const [index, [name, first, second]] of NEVER.entries()) {
    // A picture of its own: nothing of it is in the engine's cache.
    const own = (workflow: Workflow): Workflow =>
      JSON.parse(JSON.stringify(workflow).replaceAll('"color":255', `"color":${1000 + index}`))
    test(`never: ${name}`, async () => {
      if (name.includes('cannot be read')) await client.uploaded('text.png', 'no picture at all')
      const jobs: Reused[] = []
      for (const [workflow, more = EXACT] of [first, second ?? first]) jobs.push(await run(own(workflow), more))
      assert.deepEqual(
        jobs.map((job) => [job.reused_from, job.started_at === null]),
        [
          [undefined, false],
          [undefined, false],
        ],
      )
      if (second === undefined || name.includes('did not ask')) return
      const [workflow, more] = first
      assert.equal((await run(own(workflow), more)).reused_from, jobs[0]?.id, 'what is really equal is answered')
    })
  }

  test('never: numbers that are written otherwise, or differ in their last digit', async () => {
    const noise = (text: string) =>
      JSON.stringify({
        ...EXACT,
        workflow: {
          '1': image,
          '4': node('ImageAddNoise', { image: ['1', 0], seed: 7, strength: 0.5 }),
          '5': save('4'),
        },
      }).replace('"seed":7', `"seed":${text}`)
    const factor = (text: string) =>
      JSON.stringify({ ...EXACT, workflow: saved('F', 'blend_factor') }).replace('"F"', text)
    const bodies = ['0', '0.0', '-0.0', '1', '1.0', '1e0'].map(factor)
    bodies.push(...['18446744073709551614', '18446744073709551615', '9007199254740992', '9007199254740993'].map(noise))
    const recorded = new Set<string>()
    for (const body of bodies) {
      const answer = await client.submit(body)
      assert.equal(answer.status, 201, answer.text)
      const { id } = answer.json
      const job = (await client.until(id, ({ status }) => status === 'succeeded')) as Reused
      // A whole number for a fraction is recorded, and run, as the fraction.
      const { text } = await client.call(`/api/v2/jobs/${id}/workflow`)
      const graph = text.replaceAll(id, '')
      assert.equal(job.reused_from !== undefined, recorded.has(graph), body)
      recorded.add(graph)
    }
    assert.ok(recorded.size >= 7, `${recorded.size} of them differ`)
  })

  test('never: other bytes under the same name; the same bytes by another reference answer', async () => {
    const workflow = { '1': node('LoadImage', { image: 'in.png' }), '2': save('1') }
    const first = await run(workflow)
    assert.equal((await run(workflow)).reused_from, first.id)
    const asset = await client.uploaded('in.png', await picture('#802010'))
    const changed = await run(workflow)
    assert.equal(changed.reused_from, undefined)
    assert.notEqual(digest(changed), digest(first))
    const byReference = { '1': node('LoadImage', { image: assetRef(asset.id) }), '2': save('1') }
    const referred = await run(byReference)
    assert.equal(referred.reused_from, undefined)
    assert.equal((await run(byReference)).reused_from, referred.id)
  })

  test('the stream of an answered job says at once that it has succeeded, with its outputs', async () => {
    await run(plain, { ...EXACT, extra_data: pngInfo(4) })
    const first = await run(plain, { ...EXACT, extra_data: pngInfo(5) })
    const second = await run(plain, { ...EXACT, extra_data: pngInfo(5) })
    // The picture is in the engine's cache with other notes, so neither is kept.
    assert.deepEqual([first.reused_from, second.reused_from], [undefined, undefined])
    const fresh = { '1': node('EmptyImage', { width: 3, height: 3, batch_size: 1, color: 3 }), '2': save('1') }
    const made = await run(fresh)
    const answered = await run(fresh)
    assert.equal(answered.reused_from, made.id)
    const frames = (await client.events(answered.id)).map(({ event }) => event)
    assert.deepEqual([frames.includes('output'), frames.at(-1)], [true, 'status'])
  })

  test('lists of results answer with all of their files, in order and by the names they had', async () => {
    const workflow = {
      '1': node('EmptyImage', { width: 4, height: 4, batch_size: 3, color: 1 }),
      '2': save('1', { filename_prefix: 'list' }),
    }
    const [first, second] = [await run(workflow), await run(workflow)]
    assert.equal(second.reused_from, first.id)
    const named = ({ outputs }: WireJob) => outputs.map(({ name, hash, node_id: id }) => [name, hash, id])
    assert.deepEqual(named(second), named(first))
    assert.equal(second.outputs.length, 3)
    assert.equal(new Set([...first.outputs, ...second.outputs].map(({ id }) => id)).size, 6)
  })

  test('never: bytes that are gone from the storage', async () => {
    const workflow = {
      '1': node('EmptyImage', { width: 5, height: 4, batch_size: 1, color: 9 }),
      '2': save('1', { filename_prefix: 'gone' }),
    }
    const first = await run(workflow)
    await removeBytes(service?.dataDir ?? '', first.outputs[0]?.hash.replace('blake3:', '') ?? '')
    const second = await run(workflow)
    assert.equal(second.reused_from, undefined)
    assert.equal((await client.call(`/api/v2/assets/${second.outputs[0]?.id}/content`)).status, 200)
  })
})

async function removeBytes(dataDir: string, hash: string): Promise<void> {
  await rm(path.join(dataDir, 'blobs', hash.slice(0, 2), hash.slice(2, 4), hash))
}

function picture(background: string): Promise<Buffer> {
  return sharp({ create: { width: 8, height: 8, channels: 3, background } })
    .png()
    .toBuffer()
}

function pngInfo(n: number) {
  return { extra_pnginfo: { workflow: { n } } }
}

/** What a job made: which node, of what kind, and the bytes by their hash. */
function digest({ outputs }: WireJob): string {
  return JSON.stringify(outputs.map(({ node_id: id, type, hash }) => [id, type, hash]).sort())
}

/** A picture or a text through a few nodes, with few enough values that graphs come back. */
function randomGraph(random: SeededRandom): Workflow {
  const nodes: Record<string, object> = {}
  let last = '0'
  const add = (classType: string, inputs: object) => {
    last = String(Object.keys(nodes).length)
    nodes[last] = node(classType, inputs as Record<string, unknown>)
  }
  if (random.next() < 0.3) {
    add('PrimitiveString', { value: random.pick(['a Lake', 'ÄöÜ 😀', '']) })
    add('CaseConverter', { string: [last, 0], mode: random.pick(['UPPERCASE', 'lowercase']) })
    add(random.pick(['PreviewAny']), { source: [last, 0] })
    return nodes
  }
  if (random.next() < 0.3) add('LoadImage', { image: 'in.png' })
  else
    add('EmptyImage', {
      width: random.pick([8, 12]),
      height: 8,
      batch_size: random.pick([1, 2]),
      color: random.pick([0, 255]),
    })
  for (let steps = random.between(1, 4); steps > 0; steps -= 1) {
    const from = { image: [last, 0] }
    random.pick([
      () => add('ImageInvert', from),
      () =>
        add('ImageScale', {
          ...from,
          upscale_method: random.pick(['bilinear', 'lanczos']),
          width: 10,
          height: random.pick([6, 9]),
          crop: 'disabled',
        }),
      () => add('ImageBlur', { ...from, blur_radius: random.pick([1, 2]), sigma: 0.5 }),
      () => add('ImageAddNoise', { ...from, seed: random.pick([1, 2]), strength: 0.5 }),
      () => add('ImageFlip', { ...from, flip_method: 'y-axis: horizontally' }),
    ])()
  }
  add('SaveImage', { images: [last, 0], filename_prefix: random.pick(['one', 'two/three']) })
  return nodes
}

async function toBytes(item: ReportedItem): Promise<Buffer> {
  return item.kind === 'value' ? Buffer.from(String(item.value)) : Buffer.concat(await Array.fromAsync(item.read()))
}

/** The same graph, or the same with one value changed. */
function nudge(workflow: Workflow, random: SeededRandom): Workflow {
  if (random.next() < 0.6) return workflow
  const [id = '', first] = random.pick(Object.entries(workflow)) as [string, { inputs: Record<string, unknown> }]
  const numbers = Object.entries(first.inputs).filter(
    ([name, value]) => typeof value === 'number' && name !== 'batch_size' && name !== 'blur_radius',
  )
  if (numbers.length === 0) return workflow
  const [name, value] = random.pick(numbers) as [string, number]
  return {
    ...workflow,
    [id]: { ...first, inputs: { ...first.inputs, [name]: Number.isInteger(value) ? value + 1 : value / 2 } },
  }
}
