/**
 * The service in a process of its own, in which each model call stops at the step that the parent chose for it, until the parent kills the
 * process. The provider runs in the parent and is called over plain HTTP, with a key that makes a repeated submit harmless. With `jobs` as
 * the third argument the service runs workflows, too.
 */

import { silentLog } from '../../../lib/log.ts'
import { startApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { Json } from '../../../src/domain/models/catalog/model.ts'
import type { Provider, SubmitOutcome } from '../../../src/domain/models/provider.ts'
import { PRICE } from '../../support/app/start-router.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { done, fakeModel } from '../../support/providers/fake-provider.ts'
import { type CrashPlan, type CrashStep, MOST_CALLS } from './router-steps.ts'

const [, , dataDir, providerUrl, mode] = process.argv as [string, string, string, string, 'jobs' | undefined]
const runsJobs = mode === 'jobs'
/** By the name of a call: its key, or the model that only this call uses. */
const steps = new Map<string, CrashStep>()
const names = new Map<string, string>()

/** Never goes on where this call is to be cut. */
async function pass(step: CrashStep, name: string | undefined): Promise<void> {
  if (name === undefined || steps.get(name) !== step) return
  process.send?.({ reached: name })
  await new Promise(() => {})
}

function withSteps(calls: CallStore): CallStore {
  return {
    ...calls,
    async admit(call, ...rest) {
      const name = call.key !== null && steps.has(call.key) ? call.key : call.modelId
      await pass('before it is let in', name)
      const outcome = await calls.admit(call, ...rest)
      names.set(call.id, name)
      await pass('let in, not dispatched', name)
      return outcome
    },
    async keepProgress(ref, progress) {
      await pass('accepted, handle not stored', names.get(ref.id))
      const isHeld = await calls.keepProgress(ref, progress)
      await pass('handle stored', names.get(ref.id))
      return isHeld
    },
    async finish(ref, end) {
      await pass('finished, not settled', names.get(ref.id))
      const outcome = await calls.finish(ref, end)
      await pass('settled, not answered', names.get(ref.id))
      return outcome
    },
  }
}

async function ask(path: string, body: object): Promise<{ status: string; output: object }> {
  const answer = await fetch(`${providerUrl}${path}`, { method: 'POST', body: JSON.stringify(body) })
  return (await answer.json()) as { status: string; output: object }
}

const provider: Provider = {
  name: 'crash',
  access: () => 'service_key',
  checkModel: () => [],
  deduplicates: () => true,
  async submit({ submitKey, model }): Promise<SubmitOutcome> {
    const { output } = await ask('/submit', { key: submitKey })
    await pass('the provider has it', model.id)
    if (model.returns === 'direct') return done(output)
    return { outcome: 'accepted', handle: { key: submitKey }, pollAfterMs: 1 }
  },
  async poll({ handle, model }) {
    const { output } = await ask('/poll', handle as Record<string, Json>)
    await pass('while it is polled', model.id)
    return done(output)
  },
}

const { config, secrets } = loadConfig({
  flags: { kind: 'cloud', port: '0', dataDir, workers: runsJobs ? '8' : '0' },
  env: {
    ATELIER_SECRET_KEY: process.env['ATELIER_SECRET_KEY'],
    ATELIER_DATABASE: process.env['ATELIER_DATABASE'],
    ATELIER_PRICES: process.env['ATELIER_PRICES'],
  },
  cwd: dataDir,
})
const models = Array.from({ length: MOST_CALLS }, (_, index) => [
  fakeModel(`crash/direct-${index}`, { price: PRICE }),
  fakeModel(`crash/polled-${index}`, { price: PRICE, returns: 'poll' }),
]).flat()
const app = await startApp(config, secrets, {
  log: silentLog,
  version: 'test',
  overrides: {
    ...(!runsJobs && { engine: createFakeEngine() }),
    models: { providers: [provider], models, wrapCalls: withSteps },
  },
})
process.on('message', (message: CrashPlan | 'stop') => {
  if (message === 'stop') return void app[Symbol.asyncDispose]().then(() => process.disconnect())
  for (const [name, step] of Object.entries(message)) steps.set(name, step)
  process.send?.('armed')
})
process.send?.(app.url)
