/** A pool event as a program: the JSON on its input, exit code 0 for "taken". It gets nothing of our own environment. */
import { spawn } from 'node:child_process'
import type { CallHook } from '../../domain/deployments/pool-hooks.ts'
import { toBody } from './webhook.ts'

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

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
