import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRecord, ShownItem } from '../../../domain/jobs/run/record/run-record.ts'
import { summarize } from './node-output.ts'

function runOf(nodes: Readonly<Record<string, Readonly<Record<string, readonly ShownItem[]>>>>): RunRecord {
  return {
    startedAtMs: 0,
    endedAtMs: 1,
    cached: { nodeIds: [], atMs: 0 },
    executed: [],
    stoppedAt: null,
    failure: null,
    nodes: Object.entries(nodes).map(([nodeId, output]) => ({
      nodeId,
      displayNodeId: nodeId,
      parentNodeId: null,
      output,
    })),
  }
}

const file = (filename: string, type: 'output' | 'temp' = 'output') => ({ filename, subfolder: '', type })

test('files count, flags and texts do not, and a model named by a text does', () => {
  const run = runOf({
    '1': { images: [file('a.png', 'temp')], animated: [true] },
    '2': { latents: [file('x.latent')] },
    '3': { text: ['words'], result: ['scene.glb'] },
  })
  const { outputs_count, previewable_outputs_count } = summarize(run)
  assert.deepEqual([outputs_count, previewable_outputs_count], [3, 2])
})

test('the preview is a kept picture before a passing one, then a saved text, then a text that was shown', () => {
  const preview = (nodes: Parameters<typeof runOf>[0]) => summarize(runOf(nodes)).preview_output
  const kept = { '1': { images: [file('t.png', 'temp')] }, '2': { images: [file('o.png')] } }
  assert.deepEqual(preview(kept), { ...file('o.png'), nodeId: '2', mediaType: 'images' })
  assert.deepEqual(preview({ '1': kept['1'] }), { ...file('t.png', 'temp'), nodeId: '1', mediaType: 'images' })
  assert.deepEqual(preview({ '3': { text: ['t'], files: [file('n.txt')] } }), {
    ...file('n.txt'),
    nodeId: '3',
    mediaType: 'files',
  })
  assert.deepEqual(preview({ '4': { text: ['x'.repeat(2000)] } }), {
    content: 'x'.repeat(1024),
    truncated: true,
    nodeId: '4',
    mediaType: 'text',
  })
  assert.equal(preview({}), null)
})
