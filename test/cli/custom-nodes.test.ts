import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { spawnServer } from '../support/app/spawn-server.ts'
import { runAtelier } from '../support/cli/atelier.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))

let folder: string
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-own-nodes-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

function writeNodes(name: string, text: string): string {
  const nodes = path.join(folder, name)
  mkdirSync(nodes)
  writeFileSync(path.join(nodes, 'node.ts'), text)
  return nodes
}

const HANGS = `import { defineNode } from 'atelier/nodes'
  export const hangs = defineNode({ classType: 'Hangs', outputs: { n: 'int' }, run() { for (;;); } })`

function writeGraph(name: string, graph: unknown): string {
  const file = path.join(folder, name)
  writeFileSync(file, JSON.stringify(graph))
  return file
}

describe('atelier serve --nodes', () => {
  test('runs nodes of several folders, and one that hangs fails its own job only', async () => {
    const nodes = writeNodes('hanging', HANGS)
    await using server = await spawnServer(
      ['--data-dir', path.join(folder, 'data'), '--nodes', path.join(EXAMPLES, 'nodes'), '--nodes', nodes],
      { ATELIER_NODE_TIMEOUT: '8s' },
    )
    const graph = writeGraph('hang.json', {
      1: { class_type: 'Hangs', inputs: {} },
      2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
    })
    const hung = await runAtelier(['run', graph, '--base-url', server.url])
    assert.equal(hung.code, 1)
    assert.match(hung.stderr, /Hangs did not finish within 8 s/)

    const out = path.join(folder, 'out')
    const run = ['run', path.join(EXAMPLES, 'vignette.json'), '--base-url', server.url, '--out', out]
    const result = await runAtelier(run)
    assert.equal(result.code, 0, result.stderr)
    const { data, info } = await sharp(readFileSync(path.join(out, 'vignette_00001_.png')))
      .raw()
      .toBuffer({ resolveWithObject: true })
    const middle = ((info.height / 2) * info.width + info.width / 2) * info.channels
    assert.ok(data[0] < data[middle], 'the corner is darker than the middle')
    assert.equal(await server.terminate(), 0)
  })

  test('nodes that cannot be loaded stop the start with one line and exit code 2', async () => {
    const serve = (nodes: string) =>
      runAtelier(['serve', '--port', '0', '--data-dir', path.join(folder, 'other'), '--nodes', nodes])
    const clash = await serve(writeNodes('clash', HANGS.replace("'Hangs'", "'LoadImage'")))
    assert.equal(clash.code, 2)
    assert.match(clash.stderr, /^atelier: cannot start: .*node\.ts defines LoadImage, which is a built-in node.*\n$/m)
    const missing = await serve(path.join(folder, 'nowhere'))
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /^atelier: cannot start: the nodes folder .* cannot be read \(ENOENT\).*\n$/m)
  })
})
