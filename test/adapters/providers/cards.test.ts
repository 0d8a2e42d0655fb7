/**
 * Every provider's card, played through against its fake with the shipped data files: what a success looks like, and how each
 * refusal, whatever HTTP status it hides behind, comes out as the one word that decides who pays and who may retry.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { PollOutcome, SubmitOutcome } from '../../../src/domain/models/provider.ts'
import { type FakeProvider, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import {
  openProviderUnderTest,
  type ProviderUnderTest,
  shippedModel,
} from '../../support/providers/provider-under-test.ts'
import { CARDS } from './card-cases.ts'

/** `finished 1` or `policy 200 ended 1`: the outcome, the provider's status, what is left there, and how many were made. */
function inShort(outcome: SubmitOutcome | PollOutcome, generations: number): string {
  if (outcome.outcome !== 'refused') return `${outcome.outcome} ${generations}`
  const { reason, upstreamStatus, generation } = outcome.refusal
  return `${reason} ${upstreamStatus} ${generation} ${generations}`
}

for (const { card, settings, models } of CARDS) {
  describe(`${card.provider} as its card says`, () => {
    let fake: FakeProvider
    let under: ProviderUnderTest
    before(async () => {
      fake = await startFakeProvider(card)
      under = await openProviderUnderTest(fake, { values: settings })
    })
    after(async () => {
      await under[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    })

    for (const [id, scenarios] of Object.entries(models)) {
      for (const [scenario, expected] of Object.entries(scenarios)) {
        test(`${id}, ${scenario}: ${expected}`, async () => {
          fake.reset(scenario)
          const model = await shippedModel(id)
          const outcome = await under.run(id, model.input.example ?? {})
          assert.equal(inShort(outcome, fake.generations), expected)
          if (outcome.outcome === 'refused') assert.doesNotMatch(outcome.refusal.message, new RegExp(card.key))
        })
      }
    }

    test('a wrong key is logged for the operator as a refused account, without the key', async () => {
      await using wrong = await openProviderUnderTest(fake, { key: 'wrong-key-1', values: settings })
      fake.reset('success')
      const [id] = Object.keys(models)
      const { input } = await shippedModel(id)
      const outcome = await wrong.run(id, input.example ?? {})
      assert.match(inShort(outcome, fake.generations), /^failed (401|403|200) none 0$/)
      assert.equal(
        wrong.logged.some((line) => line.startsWith('the provider refuses our account')),
        true,
      )
      assert.equal(
        wrong.logged.some((line) => line.includes('wrong-key-1')),
        false,
      )
    })
  })
}
