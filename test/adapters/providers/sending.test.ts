/** When a submit is sent again, when it waits, and when it is not sent at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRetryAfterMs } from '../../../src/adapters/providers/declarative/calls/call-api.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import { type FakeCard, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { klingFake } from '../../support/providers/fake-providers/kling.ts'
import { openProviderUnderTest, shippedModel } from '../../support/providers/provider-under-test.ts'

const INPUT = { prompt: 'x' }

/** OpenAI whose every answer is decided here. */
function openaiWith(answer: FakeCard['routes'][number][2]): FakeCard {
  return { ...openaiFake, routes: [['POST', /.*/, answer]] }
}

test('a busy provider is waited for as long as it asks, but never more than 150 seconds at once', async () => {
  const pauses = ['3', '900']
  await using fake = await startFakeProvider(
    openaiWith((call) => {
      const pause = pauses[call.submits - 1]
      if (pause !== undefined)
        return { status: 429, headers: { 'retry-after': pause }, json: { error: { code: 'rate_limit_exceeded' } } }
      call.begin()
      return { json: { data: [{ b64_json: 'eA==' }] } }
    }),
  )
  await using under = await openProviderUnderTest(fake)
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome, 'finished')
  assert.deepEqual(under.waits, [3000, 150_000])
  assert.deepEqual(under.sends, ['begins', 'leftNothing', 'begins', 'leftNothing', 'begins'])
})

test('a provider that is busy and does not say how long is asked again for half a minute, and no longer', async () => {
  await using fake = await startFakeProvider(
    openaiWith(() => ({ status: 429, json: { error: { code: 'rate_limit_exceeded' } } })),
  )
  await using under = await openProviderUnderTest(fake)
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome, 'refused')
  if (outcome.outcome !== 'refused') return
  assert.partialDeepStrictEqual(outcome.refusal, { reason: 'failed', upstreamStatus: 429, generation: 'none' })
  assert.ok(under.waits.length > 2)
  assert.equal(Math.round(under.waits.reduce((sum, ms) => sum + ms, 0)), 30_000)
})

test('a provider that stays busy ends in its own 429 before the deadline, and nothing was made', async () => {
  await using fake = await startFakeProvider(
    openaiWith(() => ({
      status: 429,
      headers: { 'retry-after': '120' },
      json: { error: { code: 'rate_limit_exceeded' } },
    })),
  )
  await using under = await openProviderUnderTest(fake)
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome, 'refused')
  const { reason, upstreamStatus, generation } = outcome.refusal
  assert.deepEqual(
    { reason, upstreamStatus, generation },
    { reason: 'failed', upstreamStatus: 429, generation: 'none' },
  )
  assert.ok(under.waits.reduce((sum, ms) => sum + ms, 0) < 600_000)
})

test('a refused connection is tried again, since nothing was sent', async () => {
  const fake = await startFakeProvider(openaiFake)
  await using under = await openProviderUnderTest(fake)
  await fake[Symbol.asyncDispose]()
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome === 'refused' && outcome.refusal.generation, 'none')
  assert.equal(under.waits.length, 2)
  assert.equal(under.sends.at(-1), 'leftNothing')
})

test('an answer that was lost is never asked for again: the generation may exist', async () => {
  let asked = 0
  await using fake = await startFakeProvider(
    openaiWith(() => {
      asked++
      return { breaksOff: true }
    }),
  )
  await using under = await openProviderUnderTest(fake)
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome === 'refused' && outcome.refusal.generation, 'possible')
  assert.equal(asked, 1)
  assert.deepEqual(under.sends, ['begins'])
})

test('a redirect of the API is not followed: the key would go along', async () => {
  await using fake = await startFakeProvider(
    openaiWith(() => ({ status: 307, headers: { location: 'http://127.0.0.1:1/' } })),
  )
  await using under = await openProviderUnderTest(fake)
  const outcome = await under.submit('openai/gpt-image-1', INPUT)
  assert.equal(outcome.outcome === 'refused' && outcome.refusal.upstreamStatus, 307)
  assert.equal(fake.requests.length, 1)
})

test('a running task holds its slot at the provider until it has ended', async () => {
  await using fake = await startFakeProvider(bflFake)
  fake.pendingPolls = 0
  await using under = await openProviderUnderTest(fake, { concurrency: 1 })
  const first = await under.submit('bfl/flux-2-pro', INPUT)
  const second = under.submit('bfl/flux-2-pro', INPUT)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(under.provider.health(), { taken: 1, waiting: 1 })
  assert.equal(first.outcome, 'accepted')
  await under.poll('bfl/flux-2-pro', first.outcome === 'accepted' ? first.handle : null)
  assert.equal((await second).outcome, 'accepted')
  assert.equal(fake.generations, 2)
})

test('a call with a key of the account itself takes no slot, and its refusals are not logged as trouble of ours', async () => {
  await using fake = await startFakeProvider(bflFake)
  await using under = await openProviderUnderTest(fake, { concurrency: 1, isOwnKey: true })
  assert.equal(under.provider.access('a'), 'own_key')
  await under.submit('bfl/flux-2-pro', INPUT)
  await under.submit('bfl/flux-2-pro', INPUT)
  fake.scenario = 'arrears'
  await under.submit('bfl/flux-2-pro', INPUT)
  assert.deepEqual(under.logged, [])
})

test('a wait is asked for in seconds or as a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  assert.equal(readRetryAfterMs('2', now), 2000)
  assert.equal(readRetryAfterMs('Thu, 01 Jan 2026 00:00:10 GMT', now), 10_000)
  assert.equal(readRetryAfterMs('Thu, 01 Jan 2020 00:00:10 GMT', now), 0)
  assert.equal(readRetryAfterMs('86400', now), 150_000)
  for (const nonsense of [undefined, '', 'soon', '-5'])
    assert.equal(readRetryAfterMs(nonsense, now), null, String(nonsense))
})

test('a task whose answer was lost is found by its reference, and sent only where there is none', async () => {
  await using fake = await startFakeProvider(klingFake)
  await using under = await openProviderUnderTest(fake)
  const submit = (isRepeat: boolean) => under.submit('kling/kling-v2-6', INPUT, { isRepeat })
  const first = await submit(false)
  assert.equal(fake.requests[0].json?.['external_task_id'], '01890a5d-ac96-774b-bcce-b302099a8057')
  const again = await submit(true)
  assert.deepEqual(again, { ...first, pollAfterMs: 0 })
  assert.equal(fake.generations, 1)
  fake.scenario = 'down'
  const unknown = await submit(true)
  assert.equal(unknown.outcome === 'refused' && unknown.refusal.generation, 'possible')
  fake.reset('success')
  assert.equal((await submit(true)).outcome, 'accepted')
  assert.equal(fake.generations, 1)
})

test('only a reference of our own is looked for', async () => {
  await using fake = await startFakeProvider(klingFake)
  await using under = await openProviderUnderTest(fake)
  const model = await shippedModel('kling/kling-v2-6')
  assert.equal(under.provider.deduplicates(model, INPUT), true)
  assert.equal(under.provider.deduplicates(model, { ...INPUT, external_task_id: 'somebody-else' }), false)
  assert.equal(under.provider.deduplicates(model, null), false)
})
