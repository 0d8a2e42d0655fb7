import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createFixedClock } from '../../../test/support/fixed-clock.ts'
import { createMemoryNodes } from '../../../test/support/memory-nodes.ts'
import type { Role } from '../../config/blocks/role-config.ts'
import { openServiceNode } from './service-node.ts'

function openProcesses() {
  const clock = createFixedClock()
  const store = { nodes: createMemoryNodes().store, isExclusive: false, schemaNumber: 1 }
  const open = (role: Role) =>
    openServiceNode({
      ...{ store, role, clock },
      version: '1',
      workers: () => ({}),
      takesWorkers: false,
      address: () => null,
      log: silentLog,
    })
  return { clock, store, open }
}

test('a worker does the chores of the service only while no process with APIs lives', async () => {
  const { clock, open } = openProcesses()
  await using worker = await open('worker')
  await worker.heartbeat.beat()
  assert.equal(worker.leadership.isHeld(), true, 'somebody must take back the jobs of the dead')
  const api = await open('api')
  clock.advance(5000)
  await worker.heartbeat.beat()
  await api.heartbeat.beat()
  assert.deepEqual([worker.leadership.isHeld(), api.leadership.isHeld()], [true, false], 'until its time is over')
  clock.advance(10_000)
  await worker.heartbeat.beat()
  await api.heartbeat.beat()
  assert.deepEqual([worker.leadership.isHeld(), api.leadership.isHeld()], [false, true])
  await api[Symbol.asyncDispose]()
  await worker.heartbeat.beat()
  assert.equal(worker.leadership.isHeld(), true)
})

test('other work of the service is held by one of those that can do it, whoever does the chores', async () => {
  const { open } = openProcesses()
  await using leader = await open('all')
  await using other = await open('worker')
  const hooks = other.contend('hooks')
  await leader.heartbeat.beat()
  await other.heartbeat.beat()
  assert.deepEqual([leader.leadership.isHeld(), other.leadership.isHeld(), hooks.isHeld()], [true, false, true])
})

test('a process says where it listens and that it is about to end, and then is gone for good', async () => {
  const { store, open } = openProcesses()
  const node = await open('api')
  node.listensAt('http://127.0.0.1:1')
  node.drain()
  await node[Symbol.asyncDispose]()
  assert.deepEqual(await store.nodes.list(), [], 'no late beat makes it known again')
  assert.partialDeepStrictEqual(node.own.about(), { url: 'http://127.0.0.1:1', isDraining: true, role: 'api' })
})
