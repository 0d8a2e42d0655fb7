/** Everything that a command uses of its process, as one record. The entry point passes in the real process. */

import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Environment } from '../config/settings/setting.ts'

type StopSignal = 'SIGINT' | 'SIGTERM'

export interface Terminal {
  /** The script of this process, for the command that starts a second process with it. */
  readonly program: string
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly stdin: Readable
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream & { readonly fd: number }
  /** Calls back on Ctrl-C and on SIGTERM, which then no longer end the process by themselves. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  /** Calls back on SIGHUP, the usual signal to read files again. */
  onHangup(listener: () => void): () => void
  /** For the second Ctrl-C only: everything else ends by returning. */
  exitNow(code: number): never
}

/** Takes the exit code. */
export type Finish = (code: number) => void

/** The last two are those of `timeout` and of a shell. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, timedOut: 124, interrupted: 130 } as const

/** Ends a command with one line and an exit code. */
export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** A store that cannot be opened: a mistake in the settings stays one however often the command is started again. */
export function exitOfStore(error: Error): number {
  return 'reason' in error && error.reason === 'misconfigured' ? EXIT.usage : EXIT.failed
}

export function printLine(stream: NodeJS.WritableStream, text: string): void {
  stream.write(`${text}\n`)
}

// C0 and C1 control characters, which can control a terminal, except line end and tab; and those that show a line in another order.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Text from a server, a file or a workflow, made safe to print: it cannot move the cursor, change colours or turn lines around. */
export function toPrintable(text: string): string {
  return text.replaceAll(CONTROLS, '\ufffd')
}

/** The version of the package that these sources belong to. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return (manifest as { version: string }).version
}
