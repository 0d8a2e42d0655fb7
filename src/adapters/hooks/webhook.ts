/** A pool event as a POST. Redirects are not followed, and the answer is not read: only its status counts. */
import type { CallHook, PoolEvent } from '../../domain/deployments/pool-hooks.ts'

export function createWebhook(url: string): CallHook {
  return async (event, signal) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'atelier' },
      body: toBody(event),
      redirect: 'error',
      signal,
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the hook answered ${response.status}`)
  }
}

export function toBody({ event, pool, queued, running, at }: PoolEvent): string {
  return JSON.stringify({ event, pool, queued, running, at: at.toISOString() })
}
