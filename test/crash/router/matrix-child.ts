/**
 * The service in a process of its own, in which every call of the matrix stops at its step until the parent kills the process.
 * Started without steps it is the ordinary service.
 */

import { silentLog } from '../../../lib/log.ts'
import { startApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config/config.ts'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { createLoopbackNetwork } from '../../support/providers/loopback-network.ts'
import { ALL_CUTS, type CutStep } from './matrix-cases.ts'

const [, , dataDir, mode] = process.argv as [string, string, string, 'cut' | 'whole']
const steps = new Map(mode === 'cut' ? ALL_CUTS.map(({ name, step }) => [name, step]) : [])
const names = new Map<string, string>()

/** Never goes on where this call is to be cut. */
async function pass(step: CutStep, name: string | null | undefined): Promise<void> {
  if (name === undefined || name === null || steps.get(name) !== step) return
  process.send?.({ reached: name })
  await new Promise(() => {})
}

function withSteps(calls: CallStore): CallStore {
  return {
    ...calls,
    async admit(call, ...rest) {
      await pass('before it is let in', call.key)
      const outcome = await calls.admit(call, ...rest)
      if (call.key !== null) names.set(call.id, call.key)
      await pass('let in, not sent', call.key)
      return outcome
    },
    async keepProgress(ref, progress) {
      await pass('handle not stored', names.get(ref.id))
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

const { config, secrets } = loadConfig({
  flags: { kind: 'cloud', port: '0', dataDir, workers: '0', providers: `${dataDir}/providers.json` },
  env: {},
  cwd: dataDir,
})
const app = await startApp(config, secrets, {
  log: silentLog,
  version: 'test',
  overrides: { engine: createFakeEngine(), models: { network: createLoopbackNetwork(), wrapCalls: withSteps } },
})
process.on('message', () => {
  app[Symbol.asyncDispose]().then(() => process.disconnect())
})
process.send?.({ url: app.url })
