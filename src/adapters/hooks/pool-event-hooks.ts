/** How an event of a pool reaches the operator's own tools: as a POST, or as a program that is run. */
import { spawn } from 'node:child_process'
import { sendOnce } from '../../../lib/outbound/outbound-client.ts'
import type { CallHook, PoolEvent } from '../../domain/deployments/pool-hooks.ts'

const HEADERS = { 'content-type': 'application/json', 'user-agent': 'atelier' }
// The caller's signal comes much earlier; this only bounds a call that was given none.
const CALL_MAX_MS = 600_000
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** A 2xx answer means "taken". Redirects are not followed, and the answer's body is not read. */
export function createWebhook(url: string): CallHook {
  return async (event, signal) => {
    const request = { url, method: 'POST', headers: HEADERS, body: toBody(event), wantsBody: false } as const
    const { status } = await sendOnce(request, { signal, totalTimeMs: CALL_MAX_MS, maxBytes: Number.POSITIVE_INFINITY })
    if (status < 200 || status > 299) throw new Error(`the hook answered ${status}`)
  }
}

/** The program gets the JSON on its input and nothing of our own environment. Exit code 0 means "taken". */
export function createCommandHook(program: string): CallHook {
  return (event, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // No shell: the path is a program and nothing in the event can become a command.
    const child = spawn(program, [event.event, event.pool], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { PATH },
      signal,
      killSignal: 'SIGKILL',
    })
    child.once('error', reject)
    child.once('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`the hook ended with ${code ?? 'a signal'}`))
    })
    // A program that does not read its input is fine.
    child.stdin.on('error', () => {})
    child.stdin.end(toBody(event))
    return promise
  }
}

function toBody({ event, pool, queued, running, at, signal }: PoolEvent): string {
  const figures = signal !== null && {
    workers: signal.workers,
    wanted_workers: signal.wantedWorkers,
    oldest_wait_seconds: signal.oldestWaitMs / 1000,
  }
  return JSON.stringify({ event, pool, queued, running, at: at.toISOString(), ...figures })
}
