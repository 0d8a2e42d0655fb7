import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineNode } from '../../node/define-node.ts'
import type { MadeFile } from '../../node/node-context.ts'
import { MemoryLedger } from '../../tensor/tensor.ts'
import { createNodeCalls } from './call-node.ts'

const LIMIT = 1_048_576

const file = (bytes: number): MadeFile => ({
  kind: 'file',
  filename: 'made.bin',
  subfolder: '',
  folder: 'output',
  contentType: 'application/octet-stream',
  bytes: new Uint8Array(bytes),
})

function open(bytes: number) {
  const ledger = new MemoryLedger({ limitBytes: LIMIT, evict: () => false, collectGarbage() {} })
  const node = defineNode({
    classType: 'MakesFile',
    displayName: 'Makes a file',
    category: 'test',
    description: '',
    style: 'schema',
    required: {},
    outputs: [],
    cost: 'inline',
    run: () => ({ outputs: [], report: { files: [file(bytes)] } }),
  })
  const none = { size: 0, call: () => Promise.reject(new Error('there is no pool')) }
  const cancelFlag = new Int32Array(new SharedArrayBuffer(4))
  const callNode = createNodeCalls({ ledger, pools: { compute: none, isolated: none }, cancelFlag })
  return { ledger, call: () => callNode(node, {}, { call: { nodeId: '1' } as never, host: {} as never }) }
}

test('the files that a call made count until its memory is given back', async () => {
  const { ledger, call } = open(100_000)
  const { free } = await call()
  assert.equal(ledger.liveBytes(), 100_000)
  free()
  assert.equal(ledger.liveBytes(), 0)
})

test('files beyond the limit fail their call, and leave nothing', async () => {
  const { ledger, call } = open(2 * LIMIT)
  await assert.rejects(async () => await call(), /memory limit of 1 MiB reached: this node asked for 2 MiB/)
  assert.equal(ledger.liveBytes(), 0)
})
