/** Which machine gets which copies. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WantedCopy } from '../../../src/domain/deployments/released/copy-engines.ts'
import { type Machine, type MachinePlan, planMachines } from '../../../src/domain/deployments/released/machine-plan.ts'

const CPU = { os: 'linux', gpu: 'cpu' } as const
const NVIDIA = { os: 'linux', gpu: 'nvidia' } as const

function copy(pool: string, engines: number, gpuClass = 'cpu'): WantedCopy {
  return { pool, accountId: 'ana', releaseId: `rel-${pool}`, gpuClass, engines }
}

function machine(
  id: string,
  room: number,
  up: Readonly<Record<string, number>> = {},
  targets = [CPU] as Machine['targets'],
) {
  return { id, room, targets, up: (pool: string) => up[pool] ?? 0 }
}

function plan(
  wanted: readonly WantedCopy[],
  machines: readonly Machine[],
  { before = new Map(), bad = [] }: { readonly before?: MachinePlan; readonly bad?: readonly string[] } = {},
) {
  const planned = planMachines(wanted, machines, { before, isBad: (id, pool) => bad.includes(`${id} ${pool}`) })
  const told = [...planned].map(([id, copies]) => [id, copies.map(({ pool, engines }) => `${pool} ${engines}`)])
  return { planned, told: Object.fromEntries(told) as Record<string, string[]> }
}

describe('copies on several machines', () => {
  test('go where most room is left, the first engine of each before the second of any', () => {
    const { told } = plan([copy('a', 2), copy('b', 1)], [machine('small', 1), machine('large', 3)])
    assert.deepEqual(told, { small: ['a 1'], large: ['a 1', 'b 1'] })
  })

  test('stay where they are when a machine with more room comes', () => {
    const first = plan([copy('a', 1)], [machine('one', 1)])
    const { told } = plan([copy('a', 1)], [machine('one', 1, { a: 1 }), machine('two', 9)], { before: first.planned })
    assert.deepEqual(told, { one: ['a 1'], two: [] })
  })

  test('move when their machine is gone', () => {
    const first = plan([copy('a', 2)], [machine('one', 2)])
    const { told } = plan([copy('a', 2)], [machine('two', 2)], { before: first.planned })
    assert.deepEqual(told, { two: ['a 2'] })
  })

  test('run only on machines of their class, and one that comes first takes over where there is no other', () => {
    const machines = [machine('cpu', 5), machine('gpu', 1, {}, [NVIDIA])]
    const first = plan([copy('old', 1, 'nvidia')], machines)
    const { told } = plan([copy('trial', 1, 'nvidia'), copy('old', 1, 'nvidia')], machines, { before: first.planned })
    assert.deepEqual(told, { cpu: [], gpu: ['trial 1', 'old 0'] })
  })

  test('that need no engine now keep a machine, so that their folder stays', () => {
    const { told } = plan([copy('a', 0)], [machine('one', 1)])
    assert.deepEqual(told, { one: ['a 0'] })
  })

  test('leave a machine on which they cannot be started for one that did not try yet, and only then', () => {
    const wanted = [copy('a', 1)]
    const both = [machine('one', 1, { a: 1 }), machine('two', 1)]
    const first = plan(wanted, [machine('one', 1)])
    assert.deepEqual(plan(wanted, both, { before: first.planned, bad: ['one a'] }).told, { one: ['a 0'], two: ['a 1'] })
    const alone = plan(wanted, [machine('one', 1)], { before: first.planned, bad: ['one a'] })
    assert.deepEqual(alone.told, { one: ['a 1'] })
  })

  test('that are not wanted any more are named until their last engine has ended', () => {
    const first = plan([copy('a', 1)], [machine('one', 1)])
    assert.deepEqual(plan([], [machine('one', 1, { a: 1 })], { before: first.planned }).told, { one: ['a 0'] })
    assert.deepEqual(plan([], [machine('one', 1)], { before: first.planned }).told, { one: [] })
  })

  test('never take more room than there is', () => {
    const { told } = plan([copy('a', 3), copy('b', 3)], [machine('one', 2), machine('two', 1)])
    const engines = Object.values(told)
      .flat()
      .map((text) => Number(text.split(' ')[1]))
    assert.equal(
      engines.reduce((sum, each) => sum + each, 0),
      3,
    )
  })
})
