import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import type { WindowRate } from '../../credits/rate-limit.ts'
import { RouterError } from '../router-error.ts'
import { createMayUse, createSharedRateWindow, matchesModel } from './model-access.ts'

test('a pattern matches within the provider and within the name', () => {
  const cases: readonly (readonly [pattern: string, id: string, expected: boolean])[] = [
    ['*', 'bfl/flux-pro', true],
    ['bfl/flux-pro', 'bfl/flux-pro', true],
    ['bfl/flux-pro', 'bfl/flux-pro-1.1', false],
    ['bfl/*', 'bfl/flux-pro', true],
    ['bfl/*', 'bfl2/flux-pro', false],
    ['*/flux-*', 'fal/flux-dev', true],
    ['*/flux-*', 'fal/my-flux-dev', false],
    ['bfl/*-pro', 'bfl/flux-pro', true],
    ['bfl/*-pro', 'bfl/flux-pro-1', false],
    ['bfl/f*x*p*', 'bfl/flux-pro', true],
    ['bfl/flux*xpro', 'bfl/fluxpro', false],
    ['bfl/a*a', 'bfl/a', false],
    ['b.l/x', 'bfl/x', false],
    [`bfl/${'*a'.repeat(60)}b`, `bfl/${'a'.repeat(120)}`, false],
  ]
  for (const [pattern, id, expected] of cases) assert.equal(matchesModel(pattern, id), expected, `${pattern} ${id}`)
})

test('what is denied is denied, and what needs an entitlement needs to be allowed', () => {
  const [plain, special] = [
    { id: 'a/plain', entitlement: null },
    { id: 'a/special', entitlement: 'special' },
  ]
  const both = (allowModels: readonly string[] | null, denyModels: readonly string[]) => {
    const mayUse = createMayUse({ allowModels, denyModels })
    return [plain, special, plain].map(mayUse)
  }
  assert.deepEqual(both(null, []), [true, false, true])
  assert.deepEqual(both(['*'], []), [true, true, true])
  assert.deepEqual(both(['a/special'], []), [false, true, false])
  assert.deepEqual(both(['a/*'], ['a/p*']), [false, true, false])
  assert.deepEqual(both([], []), [false, false, false])
  assert.deepEqual(both(null, ['*']), [false, false, false])
})

const RULE: WindowRate = { allowance: 3, windowMs: 10_000 }

function isRefused(retryAfterSeconds: number) {
  return (error: unknown) => error instanceof RouterError && error.retryAfterSeconds === retryAfterSeconds
}

/** Two processes that count in one store. */
function createRig() {
  const clock = createFixedClock()
  const window = { endsAt: 0, used: 0 }
  let asked = 0
  const store = {
    async takeWindow(_accountId: string, { allowance, windowMs }: WindowRate, count: number, now: Date) {
      asked++
      if (window.endsAt <= now.getTime()) Object.assign(window, { endsAt: now.getTime() + windowMs, used: 0 })
      const granted = Math.min(count, allowance - window.used)
      window.used += granted
      return { granted, endsAt: new Date(window.endsAt) }
    },
  }
  const open = () => createSharedRateWindow({ store, clock, ruleFor: (id) => (id === 'free' ? null : RULE) })
  return { clock, asked: () => asked, processes: [open(), open()] as const }
}

test('processes share one allowance, and a refusal says when the window ends', async () => {
  const { clock, processes } = createRig()
  const [one, other] = processes
  await one.take('ada')
  await other.take('ada')
  await one.take('ada')
  clock.advance(4000)
  await assert.rejects(async () => other.take('ada'), isRefused(6))
  clock.advance(6000)
  await other.take('ada')
})

test('whoever keeps asking after a refusal costs the store nothing, and an account without a limit never does', async () => {
  const { asked, processes } = createRig()
  const [one] = processes
  for (let count = 0; count < 3; count++) await one.take('ada')
  await assert.rejects(async () => one.take('ada'), isRefused(10))
  const before = asked()
  for (let count = 0; count < 10; count++) await assert.rejects(async () => one.take('ada'), isRefused(10))
  assert.equal(one.take('free'), undefined)
  assert.equal(asked(), before)
})
