/** The port of the router over plain undici: what is measured is the router, not the rules of an adapter. */
import { Pool } from 'undici'
import type { Provider } from '../../src/domain/models/provider.ts'

export interface BenchProvider extends Provider, AsyncDisposable {
  /** Generations that run. */
  accepted(): number
}

export function createBenchProvider(url: string): BenchProvider {
  const pool = new Pool(url, { connections: 256 })
  let count = 0
  return {
    name: 'bench',
    accepted: () => count,
    access: () => 'service_key',
    checkModel: () => [],
    deduplicates: () => false,
    async submit({ model, body }) {
      // A generation that runs for minutes: its call is held, and hardly ever looked at.
      if (model.returns === 'poll') {
        count++
        return { outcome: 'accepted', handle: { task: 1 }, pollAfterMs: 120_000 }
      }
      const answer = await pool.request({
        path: '/generate',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      const bytes = Buffer.from(await answer.body.arrayBuffer())
      return {
        outcome: 'finished',
        result: { body: bytes, contentType: 'application/json', usage: null, costMicros: null },
      }
    },
    poll: async () => ({ outcome: 'pending', pollAfterMs: 120_000 }),
    [Symbol.asyncDispose]: () => pool.close(),
  }
}
