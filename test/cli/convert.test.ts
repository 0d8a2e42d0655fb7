/** `atelier convert`, and `atelier run` for what the editor saves: on the built-in engine and on a fleet. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { readChunks, writeChunks } from '../../lib/files/png-chunks.ts'
import { startFleetApp } from '../support/app/fleet-app.ts'
import { startTestApp } from '../support/app/start-app.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { savedCard, savedPicture, submittedPicture } from '../support/workflows/saved-workflow.ts'

let folder: string
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-convert-'))
  const saved = JSON.stringify(savedPicture('made'))
  writeFileSync(path.join(folder, 'saved.json'), saved)
  writeFileSync(path.join(folder, 'card.json'), JSON.stringify(savedCard('card')))
  const plain = await sharp({ create: { width: 2, height: 2, channels: 3, background: '#102030' } })
    .png()
    .toBuffer()
  const [head, ...rest] = readChunks(plain)
  const text = { type: 'tEXt', body: Buffer.from(`workflow\0${saved}`, 'latin1') }
  writeFileSync(path.join(folder, 'picture.png'), writeChunks([head, text, ...rest]))
  writeFileSync(path.join(folder, 'plain.png'), plain)
})
after(() => rmSync(folder, { recursive: true, force: true }))

const atelier = (...args: string[]) => runAtelier(args, { cwd: folder })
const TITLES = { EmptyImage: 'Empty Image', SaveImage: 'Save Image' }

describe('atelier convert', () => {
  test('prints the graph that the editor would submit, for files and for pictures that carry one', async () => {
    for (const file of ['saved.json', 'picture.png']) {
      const { code, stdout, stderr } = await atelier('convert', file, '--local')
      assert.equal(code, 0, stderr)
      const graph = JSON.parse(stdout) as Record<string, { _meta: { title: string } }>
      const titles = { EmptyImage: graph['5:2']._meta.title, SaveImage: graph['7']._meta.title }
      assert.deepEqual(graph, submittedPicture('made', titles))
      assert.equal(stderr, '')
    }
  })

  test('with --json prints everything, and writes the graph where --out says', async () => {
    const { code, stdout } = await atelier('convert', 'saved.json', '--local', '--json', '--out', 'graph.json')
    assert.equal(code, 0)
    const { workflow, parameters, missing } = JSON.parse(stdout)
    assert.deepEqual(JSON.parse(readFileSync(path.join(folder, 'graph.json'), 'utf8')), workflow)
    assert.deepEqual(
      parameters.map(({ name, node_id }: { name: string; node_id: string }) => [name, node_id]),
      [
        ['width', '5:2'],
        ['height', '5:2'],
        ['batch_size', '5:2'],
      ],
    )
    assert.deepEqual(missing, { classes: [], weights: [] })
  })

  test('says what is wrong with a file', async () => {
    const plain = await atelier('convert', 'plain.png', '--local')
    assert.equal(plain.code, 2)
    assert.match(plain.stderr, /plain\.png does not hold a workflow: it carries neither a workflow nor a prompt/)
    const nodes = [{ id: 4, type: 'GetNode', mode: 0, outputs: [], properties: { cnr_id: 'comfyui-kjnodes' } }]
    writeFileSync(path.join(folder, 'foreign.json'), JSON.stringify({ nodes, links: [] }))
    const foreign = await atelier('convert', 'foreign.json', '--local')
    assert.equal(foreign.code, 1)
    assert.match(foreign.stderr, /node 4 \(GetNode, from comfyui-kjnodes\)/)
  })
})

describe('atelier run', () => {
  test('takes what the editor saves, and inputs by name, without a server', async () => {
    const { code, stdout, stderr } = await atelier(
      'run',
      'saved.json',
      '--local',
      '--input',
      'width=40',
      '--input',
      '5:2.height=6',
      '--out',
      'results',
    )
    assert.equal(code, 0, stderr)
    const file = path.join(folder, 'results', 'made_00001_.png')
    assert.equal(stdout, `${file}\n`)
    const { width, height } = await sharp(file).metadata()
    assert.deepEqual([width, height], [40, 6])
    const { data } = await sharp(file).raw().toBuffer({ resolveWithObject: true })
    assert.deepEqual(
      [...data.subarray(0, 3)],
      [0, 255, 0],
      'the Primitive node set the colour, and nothing inverted it',
    )
    const card = await atelier('run', 'card.json', '--local', '--input', 'prompt=a red fox', '--out', 'card')
    assert.equal(card.code, 0, card.stderr)
    assert.equal(readFileSync(path.join(folder, 'card', '11_text_1.txt'), 'utf8'), 'a red fox')
    const wrong = await atelier('run', 'saved.json', '--local', '--input', 'prompt=x')
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /the workflow has width, height, batch_size/)
  })

  test('does so on a service with the built-in engine, and on a fleet', async () => {
    {
      await using service = await startTestApp({ settings: { workers: '1' } })
      const args = ['run', 'picture.png', '--base-url', service.url, '-i', 'height=5', '--out', 'served']
      const { code, stderr } = await atelier(...args)
      assert.equal(code, 0, stderr)
      const { width, height } = await sharp(path.join(folder, 'served', 'made_00001_.png')).metadata()
      assert.deepEqual([width, height], [24, 5])
    }
    await using fleet = await startFleetApp({ servers: [{}, {}] })
    const args = ['--base-url', fleet.url, '--input', 'prompt=a blue fox', '--out', 'fleet']
    const { code, stdout, stderr } = await atelier('run', 'card.json', ...args)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /fleet.card/)
    assert.equal(readFileSync(path.join(folder, 'fleet', '11_text_1.txt'), 'utf8'), 'a blue fox')
    const converted = await atelier('convert', 'saved.json', '--base-url', fleet.url)
    assert.deepEqual(JSON.parse(converted.stdout), submittedPicture('made', TITLES))
  })
})
