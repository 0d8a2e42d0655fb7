/**
 * The service in a process of its own that kills itself, without warning, at the step of a model call that its parent chose. The
 * provider runs in the parent and is called over plain HTTP, with a key that makes a repeated submit harmless. With `jobs` as the
 * third argument the service runs workflows, too.
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
import type { CrashStep } from './router-steps.ts'

const [, , dataDir, providerUrl, mode] = process.argv as [string, string, string, string, 'jobs' | undefined]
const runsJobs = mode === 'jobs'
let armed: CrashStep | null = null

function reach(step: CrashStep): void {
  if (armed === step) process.kill(process.pid, 'SIGKILL')
}

function withSteps(calls: CallStore): CallStore {
  return {
    ...calls,
    async admit(...call) {
      reach('before it is let in')
      const outcome = await calls.admit(...call)
      reach('let in, not dispatched')
      return outcome
    },
    async keepProgress(...progress) {
      reach('accepted, handle not stored')
      const isHeld = await calls.keepProgress(...progress)
      reach('handle stored')
      return isHeld
    },
    async finish(...end) {
      reach('finished, not settled')
      const outcome = await calls.finish(...end)
      reach('settled, not answered')
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
    reach('the provider has it')
    if (model.returns === 'direct') return done(output)
    return { outcome: 'accepted', handle: { key: submitKey }, pollAfterMs: 1 }
  },
  async poll({ handle }) {
    const { output } = await ask('/poll', handle as Record<string, Json>)
    reach('while it is polled')
    return done(output)
  },
}

const { config, secrets } = loadConfig({
  flags: { kind: 'cloud', port: '0', dataDir, workers: runsJobs ? '1' : '0' },
  env: {
    ATELIER_SECRET_KEY: process.env['ATELIER_SECRET_KEY'],
    ATELIER_DATABASE: process.env['ATELIER_DATABASE'],
    ATELIER_PRICES: process.env['ATELIER_PRICES'],
  },
  cwd: dataDir,
})
const models = [
  fakeModel('crash/direct', { price: PRICE }),
  fakeModel('crash/polled', { price: PRICE, returns: 'poll' }),
]
const app = await startApp(config, secrets, {
  log: silentLog,
  version: 'test',
  overrides: {
    ...(!runsJobs && { engine: createFakeEngine() }),
    models: { providers: [provider], models, wrapCalls: withSteps },
  },
})
process.on('message', (step: CrashStep | 'stop') => {
  if (step !== 'stop') {
    armed = step
    process.send?.('armed')
    return
  }
  app[Symbol.asyncDispose]().then(() => process.disconnect())
})
process.send?.(app.url)
