import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toRegions } from './compute.ts'

const facts = { kinds: ['nvidia', 'cpu'] as const, memoryBytes: 2 ** 34, freeRoom: 2 }
const classesOf = (devices: Parameters<typeof toRegions>[0]['devices']) =>
  toRegions({ ...facts, devices })[0]?.gpus.map(({ gpuClass }) => gpuClass)

test('a class that was offered before any card was seen is offered beside the cards, too', () => {
  assert.deepEqual(classesOf([]), ['nvidia', 'cpu'])
  const card = { name: 'cuda:0 NVIDIA GeForce RTX 4090 : cudaMallocAsync', vramTotalBytes: 24 * 2 ** 30 }
  assert.deepEqual(classesOf([card as never]), ['rtx-4090', 'nvidia', 'cpu'])
})
