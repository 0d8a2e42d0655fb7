import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import {
  countReachable,
  namesToUpload,
  rewriteGraph,
  withoutFolder,
} from '../../../src/adapters/engines/comfyui/run/rewrite-graph.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog()
const HASH_NAME = `${'a1'.repeat(32)}.png`
const graph = readGraph({
  load: { class_type: 'LoadImage', inputs: { image: 'photo.png' } },
  text: { class_type: 'PreviewAny', inputs: { source: { deep: [HASH_NAME, 'photo.png', 1] } } },
  weights: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'sd.safetensors' } },
  save: { class_type: 'SaveImage', inputs: { images: ['load', 0], filename_prefix: 'a/b_%width%' } },
  linked: { class_type: 'SaveImage', inputs: { images: ['load', 0], filename_prefix: ['text', 0] } },
  out: { class_type: 'SaveImage', inputs: { images: ['load', 0], filename_prefix: 'x/../../y' } },
  alone: { class_type: 'ImageInvert', inputs: { image: ['load', 0] } },
} as JsonValue)

test('files are uploaded when a file input or a resolved reference names them; weights never are', () => {
  const names = new Set(['photo.png', HASH_NAME, 'sd.safetensors', 'unused.png'])
  assert.deepEqual(namesToUpload(graph, catalog, names), new Set(['photo.png', HASH_NAME]))
})

test('names are replaced where they are names, prefixes get the folder, and everything else stays', () => {
  const staged = new Map([
    ['photo.png', 'atelier/p.png'],
    [HASH_NAME, 'atelier/h.png'],
  ])
  const result = rewriteGraph(graph, { catalog, staged, folder: 'atelier/job-1', fresh: null })
  const inputsOf = (id: string) => result.get(id)?.inputs
  assert.deepEqual(inputsOf('load'), { image: 'atelier/p.png' })
  // A text that only looks like the name of a file is a text.
  assert.deepEqual(inputsOf('text'), { source: { deep: ['atelier/h.png', 'photo.png', 1] } })
  assert.deepEqual(inputsOf('save')?.filename_prefix, 'atelier/job-1/a/b_%width%')
  assert.deepEqual(inputsOf('linked')?.filename_prefix, ['text', 0])
  assert.deepEqual(inputsOf('out')?.filename_prefix, 'x/../../y')
  assert.deepEqual(inputsOf('weights'), { ckpt_name: 'sd.safetensors' })
})

test('an undeclared input makes cached outputs run again, and only those that were asked for', () => {
  const rewrite = (nodeIds: ReadonlySet<string> | null) =>
    [...rewriteGraph(graph, { catalog, staged: new Map(), folder: 'f', fresh: { token: 't', nodeIds } })]
      .filter(([, { inputs }]) => inputs.atelier_run === 't')
      .map(([id]) => id)
  assert.deepEqual(rewrite(null), ['text', 'save', 'linked', 'out'])
  assert.deepEqual(rewrite(new Set(['save', 'load'])), ['save'])
})

test('the folder of an attempt is not shown to the user', () => {
  assert.equal(withoutFolder('atelier/job-1', 'atelier/job-1'), '')
  assert.equal(withoutFolder('atelier\\job-1\\sub', 'atelier/job-1'), 'sub')
  assert.equal(withoutFolder('atelier/job-12', 'atelier/job-1'), 'atelier/job-12')
})

test('only nodes that outputs depend on are counted', () => {
  assert.equal(countReachable(graph, catalog), 5)
})
