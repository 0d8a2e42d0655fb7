/** How an event of a pool reaches the operator's own tools: as a program that is run, or in the words of a webhook. */
import { spawn } from 'node:child_process'
import type { CallHook, PoolEvent } from '../../domain/deployments/pool-hooks.ts'

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

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
    child.stdin.end(JSON.stringify(toPoolFacts(event)))
    return promise
  }
}

export function toPoolFacts({ event, pool, queued, running, at, signal }: PoolEvent): object {
  const figures = signal !== null && {
    workers: signal.workers,
    wanted_workers: signal.wantedWorkers,
    oldest_wait_seconds: signal.oldestWaitMs / 1000,
  }
  return { event, pool, queued, running, at: at.toISOString(), ...figures }
}
