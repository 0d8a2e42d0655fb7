/** `atelier run --local`: a graph without a service, by the same conventions as with one. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { runAtelier } from '../support/cli/atelier.ts'

const NODES = fileURLToPath(new URL('../../examples/nodes/', import.meta.url))

let folder: string
before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-local-'))
  const cat = await sharp({ create: { width: 4, height: 2, channels: 3, background: '#102030' } })
    .png()
    .toBuffer()
  mkdirSync(path.join(folder, 'pictures'))
  for (const name of ['cat.png', 'pictures/cat.png']) writeFileSync(path.join(folder, name), cat)
  for (const [name, graph] of Object.entries(GRAPHS)) writeFileSync(path.join(folder, name), JSON.stringify(graph))
})
after(() => rmSync(folder, { recursive: true, force: true }))

const save = (from: string, prefix: string) => ({
  class_type: 'SaveImage',
  inputs: { images: [from, 0], filename_prefix: prefix },
})
const empty = (width: number) => ({ class_type: 'EmptyImage', inputs: { width, height: 8, batch_size: 1, color: 255 } })
const blur = (from: string) => ({ class_type: 'ImageBlur', inputs: { image: [from, 0], blur_radius: 31, sigma: 10 } })

const GRAPHS = {
  'paint.json': {
    1: empty(16),
    2: save('1', 'deep/paint'),
    3: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
  },
  'load.json': { 1: { class_type: 'LoadImage', inputs: { image: 'cat.png' } }, 2: save('1', 'cat') },
  'text.json': {
    1: { class_type: 'PreviewAny', inputs: { source: ['2', 0] } },
    2: { class_type: 'PrimitiveString', inputs: { value: 'hello' } },
  },
  'wrong.json': { 1: { class_type: 'EmptyImage', inputs: { height: 8, batch_size: 1, color: 0 } }, 2: save('1', 'x') },
  'fails.json': { 1: empty(16), 2: save('1', '../../out') },
  'own.json': {
    1: empty(16),
    2: { class_type: 'Vignette', inputs: { image: ['1', 0], strength: 0.8, shape: 'round' } },
    3: save('2', 'own'),
  },
  'slow.json': Object.fromEntries([
    ['0', { class_type: 'EmptyImage', inputs: { width: 4096, height: 4096, batch_size: 1, color: 1 } }],
    ...Array.from({ length: 30 }, (_, index) => [String(index + 1), blur(String(index))]),
    ['99', save('30', 'slow')],
  ]),
}

const local = (...args: string[]) => runAtelier(['run', '--local', ...args], { cwd: folder })

describe('atelier run --local', () => {
  test('writes outputs into the folder, shows progress and prints the paths', async () => {
    const first = await local('paint.json', '--out', 'made')
    assert.equal(first.code, 0, first.stderr)
    const file = path.join(folder, 'made', 'paint_00001_.png')
    assert.equal(first.stdout, `${file}\n`)
    const { width, height } = await sharp(file).metadata()
    assert.deepEqual([width, height], [16, 8])
    assert.match(first.stderr, /^running\n(\d+%.*\n)*output paint_00001_\.png\n[\s\S]*succeeded\n$/)
    const again = await local('paint.json', '--out', 'made', '-i', '1.color=65280')
    assert.equal(again.stdout, `${path.join(folder, 'made', 'paint_00001_-2.png')}\n`)
    assert.deepEqual(readdirSync(path.join(folder, 'made')), ['paint_00001_-2.png', 'paint_00001_.png'])
  })

  test('without --out the outputs go into the current folder; texts are outputs too', async () => {
    const result = await local('text.json', '--json')
    assert.equal(result.code, 0, result.stderr)
    const file = path.join(folder, '1_text_1.txt')
    const { status, outputs, error, files } = JSON.parse(result.stdout)
    assert.deepEqual([status, error, files], ['succeeded', null, [file]])
    assert.deepEqual(outputs, [{ node_id: '1', name: '1_text_1.txt', size_bytes: 5 }])
    assert.equal(readFileSync(file, 'utf8'), 'hello')
  })

  test('input files lie in the current folder, or are named with @', async () => {
    for (const args of [[], ['-i', '1.image=pictures/cat.png'], ['-i', '1.image=@pictures/../cat.png']]) {
      const result = await local('load.json', '--out', 'loaded', ...args)
      assert.equal(result.code, 0, result.stderr)
      assert.deepEqual([...(await sharp(result.stdout.trim()).raw().toBuffer()).subarray(0, 3)], [0x10, 0x20, 0x30])
    }
    const refused = await local('load.json', '-i', '1.image=../cat.png')
    assert.equal(refused.code, 1)
    assert.match(
      refused.stderr,
      /^invalid_workflow: Node 1 \(LoadImage\)[^\n]*\n {2}node 1, input image: image - Invalid image file: /,
    )
  })

  test('nodes of the user come from the same setting as for a service', async () => {
    const result = await runAtelier(['run', '--local', 'own.json', '--out', 'own'], {
      cwd: folder,
      env: { ATELIER_NODES: NODES },
    })
    assert.equal(result.code, 0, result.stderr)
  })

  test('exit 1 when the graph is refused or fails, with node and reason', async () => {
    const refused = await local('wrong.json')
    assert.equal(refused.code, 1)
    assert.equal(
      refused.stderr,
      'invalid_workflow: Node 1 (EmptyImage): required input width is missing\n  node 1, input width: required input width is missing\n',
    )
    const failed = await local('fails.json')
    assert.equal(failed.code, 1)
    assert.match(failed.stderr, /the run failed in node 2 \(SaveImage\): node_execution_error: /)
  })

  test('exit 2 for a mistake in the call', async () => {
    for (const args of [
      ['none.json'],
      ['paint.json', '-i', '1.image=@none.png'],
      ['paint.json', '--base-url', 'http://127.0.0.1:9'],
      ['paint.json', '--token', 'x'],
    ]) {
      const result = await local(...args)
      assert.equal(result.code, 2, `${args.join(' ')}: ${result.stderr}`)
      assert.match(result.stderr, /^atelier: .+\n$/)
    }
  })

  test('Ctrl-C and a timeout cancel the run', async () => {
    const stopped = await runAtelier(['run', '--local', 'slow.json'], {
      cwd: folder,
      onStderr: (text, child) => {
        if (text.includes('ImageBlur') && !child.killed) child.kill('SIGINT')
      },
    })
    assert.equal(stopped.code, 130, stopped.stderr)
    assert.match(
      stopped.stderr,
      /stopped by SIGINT; canceling the run \(once more to leave at once\)\n[\s\S]*the run was canceled\n$/,
    )
    const timedOut = await local('slow.json', '--timeout', '2s')
    assert.equal(timedOut.code, 124)
    assert.match(timedOut.stderr, /the time is over; canceling/)
  })
})
