/** The port of the router over plain undici: what is measured is the router, not the rules of an adapter. */
import { Pool } from 'undici'
import type { Provider } from '../../src/domain/models/provider.ts'

export function createBenchProvider(url: string): Provider & AsyncDisposable {
  const pool = new Pool(url, { connections: 256 })
  return {
    name: 'bench',
    access: () => 'service_key',
    checkModel: () => [],
    deduplicates: () => false,
    async submit({ model, body }) {
      // A generation that runs for minutes: its call is held, and hardly ever looked at.
      if (model.returns === 'poll') return { outcome: 'accepted', handle: { task: 1 }, pollAfterMs: 120_000 }
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
