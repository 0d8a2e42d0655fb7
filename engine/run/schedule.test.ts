import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Schedule } from './schedule.ts'

type Links = Readonly<Record<string, readonly string[]>>

function scheduleOf(links: Links, { outputs, cached = [] }: { outputs: string[]; cached?: string[] }): Schedule {
  const schedule = new Schedule({
    producersOf: (id) => links[id] ?? [],
    isCached: (id) => cached.includes(id),
    isOutput: (id) => outputs.includes(id),
  })
  schedule.add(outputs)
  return schedule
}

function drain(schedule: Schedule): string[] {
  const order: string[] = []
  for (let id = schedule.next(); id !== null; id = schedule.next()) {
    order.push(id)
    schedule.complete(id)
  }
  return order
}

test('an output that is ready comes before everything else', () => {
  const links = { 2: ['1'], 3: ['2'], 4: ['3'], 5: ['2'] }
  assert.deepEqual(drain(scheduleOf(links, { outputs: ['4', '5'] })), ['1', '2', '5', '3', '4'])
})

test('a node that feeds an output comes before one that is two steps away, and that before the rest', () => {
  const links = { far: ['f3'], f3: ['f2'], f2: ['f1'], mid: ['m2'], m2: ['m1'], near: ['n1'] }
  assert.deepEqual(drain(scheduleOf(links, { outputs: ['far', 'mid', 'near'] })).slice(0, 2), ['n1', 'near'])
  const rest = drain(
    scheduleOf({ far: ['f3'], f3: ['f2'], f2: ['f1'], mid: ['m2'], m2: ['m1'] }, { outputs: ['far', 'mid'] }),
  )
  assert.deepEqual(rest.slice(0, 3), ['m1', 'm2', 'mid'])
})

test('what a cached node was made from is not run', () => {
  const links = { out: ['b'], b: ['a'] }
  assert.deepEqual(drain(scheduleOf(links, { outputs: ['out'], cached: ['b'] })), ['out'])
  assert.deepEqual(drain(scheduleOf(links, { outputs: ['out'], cached: ['out'] })), ['out'])
})

test('a node that asks for more waits for it and comes back', () => {
  const schedule = scheduleOf({ out: ['switch'] }, { outputs: ['out'] })
  assert.equal(schedule.next(), 'switch')
  schedule.addLink('wanted', 'switch')
  schedule.putBack('switch')
  assert.deepEqual(drain(schedule), ['wanted', 'switch', 'out'])
  assert.ok(schedule.isEmpty())
})

test('a node that is running is not given out again', () => {
  const schedule = scheduleOf({ out: ['a', 'b'] }, { outputs: ['out'] })
  const first = schedule.next()
  const second = schedule.next()
  assert.deepEqual([first, second].sort(), ['a', 'b'])
  assert.equal(schedule.next(), null)
})

test('nodes that wait for each other are found', () => {
  const schedule = scheduleOf({ out: ['a'], a: ['b'], b: ['c'], c: ['a'] }, { outputs: ['out'] })
  assert.equal(schedule.next(), null)
  assert.deepEqual([...schedule.findCycle()].sort(), ['a', 'b', 'c'])
})

test('a wide graph is scheduled in the order in which its nodes stand', () => {
  const outputs = Array.from({ length: 2000 }, (_, index) => `o${index}`)
  assert.deepEqual(drain(scheduleOf({}, { outputs })), outputs)
})
