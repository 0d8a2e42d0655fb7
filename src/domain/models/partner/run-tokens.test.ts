import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import type { Caller } from '../../accounts/caller.ts'
import { ServiceError } from '../../errors.ts'
import { createRunTokens, createSignedClaims } from './run-tokens.ts'

const CALLERS: Readonly<Record<string, Caller>> = {
  'key of a': { accountId: 'a', keyId: 'k', scopes: null, endpoints: null },
  'key that may run no models': { accountId: 'a', keyId: 'r', scopes: new Set(['jobs:write']), endpoints: null },
  'key of b': { accountId: 'b', keyId: 'o', scopes: null, endpoints: null },
}

function open({ hasCredentials = true } = {}) {
  const clock = createFixedClock()
  const running = new Set(['job'])
  const tokens = createRunTokens({
    claims: createSignedClaims('test', [{ id: 'one', secret: Buffer.alloc(32, 1) }], clock),
    hasCredentials,
    keyNames: ['api_key_service_org', 'api_key_comfy_org'],
    identify(credential) {
      const caller = CALLERS[credential ?? '']
      if (caller === undefined) throw new ServiceError('unauthorized', 'nobody')
      return caller
    },
    isRunning: async (_accountId, jobId) => running.has(jobId),
    now: () => clock.now(),
  })
  const equip = (extraData: Record<string, unknown> | null) =>
    tokens.equip({ jobId: 'job', accountId: 'a', attempt: 2, extraData })
  return { clock, running, tokens, equip }
}

test('an engine gets a token instead of the key, for the time that the job runs', async () => {
  const { running, tokens, equip } = open()
  const given = await equip({ api_key_service_org: 'key of a', auth_token_comfy_org: 'x', extra_pnginfo: { a: 1 } })
  const { api_key_comfy_org: token, ...rest } = given as { api_key_comfy_org: string }
  assert.deepEqual(rest, { extra_pnginfo: { a: 1 } })
  assert.ok(tokens.isToken(token) && !tokens.isToken('key of a'))
  const caller = await tokens.open(token)
  assert.deepEqual(
    [caller.accountId, caller.keyId, caller.run, caller.scopes?.has('models:run'), caller.scopes?.has('jobs:read')],
    ['a', 'k', { jobId: 'job', attempt: '2' }, true, false],
  )
  running.clear()
  await assert.rejects(tokens.open(token), /that run is not going on/)
})

test('a key that does not pay for this job is left where it is', async () => {
  const { equip } = open()
  for (const key of ['key of b', 'key that may run no models', 'comfyui-elsewhere']) {
    const extraData = { api_key_comfy_org: key }
    assert.deepEqual(await equip(extraData), extraData)
  }
  assert.equal(await equip(null), null)
})

test('where nobody needs a key, every run gets a token; one that was changed or is old is none', async () => {
  const { clock, tokens, equip } = open({ hasCredentials: false })
  const { api_key_comfy_org: token } = (await equip(null)) as { api_key_comfy_org: string }
  assert.equal((await tokens.open(token)).accountId, 'a')
  await assert.rejects(tokens.open(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`))
  await assert.rejects(tokens.open('atelier-run-'))
  clock.advance(8 * 24 * 60 * 60 * 1000)
  await assert.rejects(tokens.open(token))
})

test('what was signed counts for its purpose alone, and until its time is over', () => {
  const clock = createFixedClock()
  const keys = [{ id: 'one', secret: Buffer.alloc(32, 1) }]
  const claims = createSignedClaims('runs', keys, clock)
  const text = claims.sign({ job: 'j' }, new Date(clock.now().getTime() + 1000))
  assert.equal(claims.verify(text)?.['job'], 'j')
  assert.equal(createSignedClaims('something else', keys, clock).verify(text), null)
  clock.advance(999)
  assert.equal(claims.verify(text)?.['job'], 'j')
  clock.advance(1)
  assert.equal(claims.verify(text), null)
})
