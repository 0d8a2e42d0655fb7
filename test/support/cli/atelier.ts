/** The real command in a process of its own, run to its end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { PROGRAM } from '../app/program.ts'
import { refuseInQuickRun } from '../not-quick.ts'

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Called once the process runs, for tests that send it signals. */
  readonly onStart?: (child: ChildProcess) => void
  /** Called with everything that has come on standard error so far. */
  readonly onStderr?: (text: string, child: ChildProcess) => void
}

export function runAtelier(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  refuseInQuickRun('a process of its own')
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: options.cwd,
    // Nothing of the developer's own settings may leak in.
    env: { PATH: process.env['PATH'] ?? '', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  options.onStart?.(child)
  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      options.onStderr?.(stderr, child)
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}
