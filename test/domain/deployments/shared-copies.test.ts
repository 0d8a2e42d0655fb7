/** The engines of copies on several machines, as the process sees them that looks after deployments. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CopyEngines, WantedCopy } from '../../../src/domain/deployments/released/copy-engines.ts'
import type { MachinePlan } from '../../../src/domain/deployments/released/machine-plan.ts'
import { type JoinedMachine, SharedCopies } from '../../../src/domain/deployments/released/shared-copies.ts'
import type { ReportedCopy } from '../../../src/domain/service-nodes/machine-report.ts'

const CPU = { os: 'linux', gpu: 'cpu' } as const
const COPY: WantedCopy = { pool: 'a', accountId: 'ana', releaseId: 'rel', gpuClass: 'cpu', engines: 1 }
const SERVES: ReportedCopy = {
  pool: 'a',
  place: 'here',
  reason: null,
  up: 1,
  ready: 1,
  busy: 0,
  failure: null,
  staging: null,
}
const GONE: ReportedCopy = { ...SERVES, place: 'gone', reason: 'no uv', up: 0, ready: 0 }

function machine(id: string, copies: readonly ReportedCopy[] = []): JoinedMachine {
  return { id, targets: [CPU], cuda: null, room: 1, copies }
}

/** A service that starts no engine itself; `machines` are those that are there. */
function open() {
  const idle = { up: 0, ready: 0, busy: 0, failure: null }
  const own: CopyEngines = {
    room: 0,
    place: async () => ({ place: 'gone', reason: 'not here' }),
    keep: async () => {},
    letGo: async () => {},
    look: () => idle,
  }
  const state = { machines: [] as readonly JoinedMachine[], plan: new Map() as MachinePlan, nowMs: 0 }
  const copies = new SharedCopies({
    own,
    targets: [CPU],
    machines: async () => state.machines,
    plans: {
      read: async () => state.plan,
      async write(plan) {
        state.plan = plan
      },
    },
    clock: { now: () => new Date(state.nowMs) },
  })
  const place = () => copies.place('ana', 'rel', 'cpu')
  const planned = () =>
    Object.fromEntries([...state.plan].map(([id, own]) => [id, own.map(({ pool, engines }) => `${pool} ${engines}`)]))
  return { copies, state, place, planned }
}

describe('copies on machines that joined', () => {
  test('are what these machines say of what they were told to have, and of nothing else', async () => {
    const { copies, state, place } = open()
    state.machines = [machine('thief', [SERVES]), machine('one')]
    await copies.keep([])
    assert.deepEqual(copies.look('a'), { up: 0, ready: 0, busy: 0, failure: null })
    state.machines = [machine('one'), machine('thief', [{ ...SERVES, up: 9 }])]
    await copies.keep([COPY])
    assert.equal(copies.look('a').ready, 0)
    assert.deepEqual(await place(), { place: 'coming' })
    state.machines = [machine('one', [SERVES]), machine('thief', [SERVES])]
    await copies.keep([COPY])
    assert.deepEqual(copies.look('a'), { up: 1, ready: 1, busy: 0, failure: null })
    assert.deepEqual(await place(), { place: 'here' })
    assert.equal(copies.room, 2)
  })

  test('stay written down for a machine that is away for a moment, and go on there', async () => {
    const { copies, state, planned } = open()
    state.machines = [machine('one', [SERVES])]
    await copies.keep([COPY])
    state.machines = []
    await copies.keep([COPY])
    assert.deepEqual(planned(), { one: ['a 1'] })
    assert.equal(copies.look('a').ready, 0)
    state.machines = [machine('one', [SERVES])]
    await copies.keep([COPY])
    assert.equal(copies.look('a').ready, 1)
    state.machines = [machine('two')]
    await copies.keep([COPY])
    assert.deepEqual(planned(), { one: ['a 1'], two: ['a 1'] })
    state.nowMs = 120_000
    await copies.keep([COPY])
    assert.deepEqual(planned(), { two: ['a 1'] })
  })

  test('go to a machine that has not tried yet, and are given up with the reason when none is left', async () => {
    const { copies, state, place, planned } = open()
    state.machines = [machine('one'), machine('two')]
    await copies.keep([COPY])
    state.machines = [machine('one', [GONE]), machine('two')]
    assert.deepEqual(await place(), { place: 'coming' })
    await copies.keep([COPY])
    assert.deepEqual(planned(), { one: [], two: ['a 1'] })
    assert.deepEqual(await place(), { place: 'coming' })
    state.machines = [machine('one'), machine('two', [GONE])]
    await copies.keep([COPY])
    assert.deepEqual(await place(), { place: 'gone', reason: 'no uv' })
    // Wanted anew later, it is tried anew.
    await copies.keep([])
    state.machines = [machine('one'), machine('two')]
    await copies.keep([COPY])
    assert.deepEqual(await place(), { place: 'coming' })
  })

  test('wait a while for a machine of their class, and then say that there is none', async () => {
    const { copies, state, place } = open()
    await copies.keep([COPY])
    assert.deepEqual(await place(), { place: 'coming' })
    state.nowMs = 120_000
    await copies.keep([COPY])
    assert.deepEqual(await place(), {
      place: 'gone',
      reason: 'no machine that starts engines of class cpu is there; start one',
    })
  })
})
