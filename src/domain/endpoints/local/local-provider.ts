/**
 * `local/*`: workflows as models. A file of the catalogue runs at once on the engine of this process; an endpoint of an account is a
 * job, on whichever engine runs it.
 */
import type { Engine } from '../../engine/engine-port.ts'
import type { Provider } from '../../models/provider.ts'
import type { createEndpointCalls } from './endpoint-calls.ts'
import { checkLocalModel } from './local-rules.ts'
import { createRunAtOnce } from './run-at-once.ts'
import { LOCAL } from './service-endpoints.ts'

interface LocalProviderParts {
  /** null: this process has none, so files of the catalogue cannot be run. */
  readonly engine: Pick<Engine, 'catalog' | 'run'> | null
  readonly calls: ReturnType<typeof createEndpointCalls>
}

export function createLocalProvider({ engine, calls }: LocalProviderParts): Provider {
  const runAtOnce = engine === null ? null : createRunAtOnce(engine)
  return {
    name: LOCAL,
    access: () => (runAtOnce === null ? 'none' : 'service_key'),
    absence: 'it is a workflow, and this process has no built-in engine to run it on',
    checkModel: (model) => checkLocalModel(model, engine?.catalog() ?? null),
    // A run at once has no effect outside, and of a call there is one job.
    deduplicates: () => true,
    async submit(call, options) {
      if (call.model.isOwn === true) return calls.submit(call, options)
      if (runAtOnce === null) throw new Error('a model that is a workflow was run without an engine')
      return runAtOnce(call, options)
    },
    poll: calls.poll,
    cancel: calls.cancel,
  }
}
