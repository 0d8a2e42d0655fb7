/** Nodes of the user's own, through the real engine and its threads. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { cachedIds, dumped, type GraphJson, lastOf, openTestEngine, type TestEngine } from '../support/harness.ts'

const EXAMPLES = fileURLToPath(new URL('../../../examples/nodes', import.meta.url))
const OWN = fileURLToPath(new URL('./nodes', import.meta.url))

let folder: string
let engine: TestEngine
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-nodes-'))
  engine = await openTestEngine({ customNodes: { folders: [EXAMPLES, OWN, EXAMPLES], timeoutMs: 60_000 } })
})
after(async () => {
  await engine[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const white = { class_type: 'EmptyImage', inputs: { width: 4, height: 4, batch_size: 1, color: 0xffffff } }
const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })

function floatsOf(value: unknown): Float32Array {
  const bytes = Buffer.from((value as JsonObject)['f32_b64'] as string, 'base64')
  return new Float32Array(new Uint8Array(bytes).buffer)
}

describe('custom nodes', () => {
  test('the example computes what it says, and its result is cached', async () => {
    const vignette = { class_type: 'Vignette', inputs: { image: ['1', 0], strength: 1, shape: 'square' } }
    const graph: GraphJson = { 1: white, 2: vignette, 3: dump('2') }
    const events = await engine.run(graph)
    const [image] = dumped(events, '3')
    assert.deepEqual((image as JsonObject)['shape'], [1, 4, 4, 3])
    const pixels = floatsOf(image)
    assert.equal(pixels[0], 0.4375) // a corner: three quarters of the way out
    assert.equal(pixels[(1 * 4 + 1) * 3], 0.9375)
    assert.equal(lastOf(events, 'node_progress').value, 4)
    assert.deepEqual(cachedIds(await engine.run(graph)), ['1', '2', '3'])
  })

  test('the documentation shows the example as it is', () => {
    const document = readFileSync(path.join(EXAMPLES, '../../docs/custom-nodes.md'), 'utf8')
    assert.ok(document.includes(readFileSync(path.join(EXAMPLES, 'vignette.ts'), 'utf8')))
  })

  test('are listed like built-in ones', () => {
    const catalog = engine.engine.catalog()
    assert.ok(catalog.classTypes().includes('Vignette'))
    const echo = catalog.find('Echo')
    assert.equal(echo?.category, 'test')
    assert.equal(echo?.display_name, 'Echo')
    assert.deepEqual(echo?.input.required?.['int'], ['INT', { default: 1, min: 0, max: 10 }])
    assert.deepEqual(echo?.input.required?.['palette'], ['PALETTE', {}])
    assert.deepEqual(echo?.input.optional?.['absent'], ['STRING', { tooltip: 'not needed' }])
    assert.deepEqual(echo?.output.slice(0, 4), ['IMAGE', 'MASK', 'LATENT', 'AUDIO'])
    assert.deepEqual(echo?.output_name.slice(-2), ['palette', 'absent'])
    assert.equal(catalog.find('MakePalette')?.display_name, 'Make a palette')
  })

  test('take and give every kind of value unchanged', async () => {
    const given = { int: 3, seed: 2n ** 63n + 1n, float: 4, string: 'deep', boolean: false, choice: 'red' }
    const links = { image: ['1', 0], mask: ['2', 0], latent: ['4', 0], audio: ['4', 1], palette: ['3', 0] }
    const graph: GraphJson = {
      1: white,
      2: { class_type: 'TestMask', inputs: { value: 0.5, width: 2, height: 3 } },
      3: { class_type: 'MakePalette', inputs: {} },
      4: { class_type: 'MakeLatent', inputs: {} },
      5: { class_type: 'Echo', inputs: { ...given, ...links, anything: ['2', 0] } },
    }
    for (let slot = 0; slot < 12; slot++) graph[`d${slot}`] = dump('5', slot)
    const events = await engine.run(graph)
    const seen = Array.from({ length: 12 }, (_, slot) => dumped(events, `d${slot}`)[0] as JsonObject)
    const shapeOf = (value: unknown) => (value as JsonObject)['shape']
    assert.deepEqual(
      [shapeOf(seen[0]), shapeOf(seen[1]), shapeOf(seen[9])],
      [
        [1, 4, 4, 3],
        [1, 3, 2],
        [1, 3, 2],
      ],
    )
    assert.deepEqual([...floatsOf(seen[1])], Array(6).fill(0.5))
    const latent = seen[2]['value'] as JsonObject
    assert.deepEqual(shapeOf(latent['samples']), [1, 4, 2, 2])
    assert.deepEqual(latent['batch_index'], { kind: 'list', value: [{ kind: 'int', value: 3 }] })
    const audio = seen[3]['value'] as JsonObject
    assert.deepEqual(audio['sample_rate'], { kind: 'int', value: 8000 })
    assert.deepEqual(seen.slice(4, 9), [
      { kind: 'int', value: 3 },
      { kind: 'int', value: 2n ** 63n + 1n },
      { kind: 'float', value: 4 },
      { kind: 'str', value: 'deep red' },
      { kind: 'bool', value: false },
    ])
    const palette = seen[10]['value'] as JsonObject
    assert.deepEqual(shapeOf(palette['weights']), [2])
    assert.deepEqual(seen[11], { kind: 'bool', value: true })
  })

  test('a node that writes into its input changes its own copy only', async () => {
    const scribbles = { class_type: 'Scribbles', inputs: { source: ['1', 0] } }
    const events = await engine.run({ 1: white, 2: scribbles, 3: dump('2'), 4: dump('1') })
    assert.equal(floatsOf(dumped(events, '3')[0])[0], 0.25)
    assert.equal(floatsOf(dumped(events, '4')[0])[0], 1)
    const later = await engine.run({
      1: white,
      4: { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
      5: dump('4'),
    })
    assert.equal(floatsOf(dumped(later, '5')[0])[0], 0)
  })

  test('progress, previews, the log and what is printed arrive', async () => {
    const events = await engine.run({ 7: { class_type: 'Tells', inputs: { steps: 5 } }, 8: dump('7') })
    assert.deepEqual(dumped(events, '8'), [{ kind: 'str', value: '7' }])
    assert.equal(lastOf(events, 'node_progress').max, 5)
    const preview = lastOf(events, 'preview')
    assert.equal(preview.contentType, 'image/jpeg')
    assert.deepEqual([...preview.bytes.subarray(0, 2)], [0xff, 0xd8])
    const log = events.flatMap((event) => (event.type === 'log' ? [event.text] : [])).join('')
    assert.match(log, /^a line of the log\nan error line\n/)
  })

  test('each step and the picture that was shown with it arrive together, none is left out', async () => {
    const events = await engine.run({ 7: { class_type: 'Samples', inputs: { steps: 5 } }, 8: dump('7') })
    const told = events.flatMap((event) => {
      if (event.type === 'node_progress') return [`step ${event.value}`]
      return event.type === 'preview' ? [`picture ${event.bytes[2]}`] : []
    })
    assert.deepEqual(
      told,
      [1, 2, 3, 4, 5].flatMap((step) => [`step ${step}`, `picture ${step}`]),
    )
  })

  test('an output node without outputs runs by itself', async () => {
    const events = await engine.run({ 1: { class_type: 'Acts', inputs: {} } })
    assert.ok(events.some((event) => event.type === 'log' && event.text === 'acted\n'))
    assert.equal(events.at(-1)?.type, 'succeeded')
  })

  test('what a link brings is judged before the node runs', async () => {
    const text = { class_type: 'PrimitiveString', inputs: { value: 'no picture' } }
    const events = await engine.run({
      1: text,
      2: { class_type: 'Scribbles', inputs: { source: ['1', 0] } },
      3: dump('2'),
    })
    assert.equal(lastOf(events, 'failed').failure.nodeId, '2')
  })

  test('modules outside the package import atelier/nodes and their own files, in TypeScript and in JavaScript', async () => {
    const nodes = path.join(folder, 'mixed')
    mkdirSync(path.join(nodes, 'lib'), { recursive: true })
    writeFileSync(path.join(nodes, 'lib', 'words.ts'), `export const greeting: string = 'hello'\n`)
    const body = (name: string, first: string, result: string) => `${first}
      import { defineNode } from 'atelier/nodes'
      export default defineNode({ classType: '${name}', outputs: { text: 'string' }, run: () => ({ text: ${result} }) })`
    writeFileSync(
      path.join(nodes, 'one.ts'),
      body('One', `import { greeting } from './lib/words.ts'`, 'greeting as string'),
    )
    writeFileSync(path.join(nodes, 'two.js'), body('Two', '', `'from js'`))
    writeFileSync(path.join(nodes, 'three.mjs'), body('Three', '', `'from mjs'`))
    writeFileSync(path.join(nodes, 'types.d.ts'), 'export interface Nothing {}')
    writeFileSync(path.join(nodes, 'notes.txt'), 'no module')
    await using mixed = await openTestEngine({ customNodes: { folders: [nodes], timeoutMs: 60_000 } })
    const graph: GraphJson = {}
    for (const name of ['One', 'Two', 'Three']) {
      graph[name] = { class_type: name, inputs: {} }
      graph[`${name}-out`] = dump(name)
    }
    const events = await mixed.run(graph)
    const seen = ['One', 'Two', 'Three'].map((name) => (dumped(events, `${name}-out`)[0] as JsonObject)['value'])
    assert.deepEqual(seen, ['hello', 'from js', 'from mjs'])
  })

  test('a file that changes after the start changes nothing, also in a new thread', async () => {
    const nodes = path.join(folder, 'changing')
    cpSync(path.join(folder, 'mixed'), nodes, { recursive: true })
    writeFileSync(
      path.join(nodes, 'exits.ts'),
      `import { defineNode } from 'atelier/nodes'
       export const exits = defineNode({ classType: 'Exits', outputs: { n: 'int' }, run: () => process.exit(1) })`,
    )
    await using changing = await openTestEngine({ customNodes: { folders: [nodes], timeoutMs: 60_000 } })
    writeFileSync(path.join(nodes, 'lib', 'words.ts'), `export const greeting: string = 'changed'\n`)
    writeFileSync(path.join(nodes, 'one.ts'), 'this is no program')
    const lost = await changing.run({ 1: { class_type: 'Exits', inputs: {} }, 2: dump('1') })
    assert.match(lastOf(lost, 'failed').failure.message, /Exits ended its thread/)
    const events = await changing.run({ 1: { class_type: 'One', inputs: {} }, 2: dump('1') })
    assert.deepEqual(dumped(events, '2'), [{ kind: 'str', value: 'hello' }])
  })
})
