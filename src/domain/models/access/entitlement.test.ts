import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMayUse, matchesModel } from './entitlement.ts'

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
