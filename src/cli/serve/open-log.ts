/**
 * The service's log: JSON lines for machines, short lines for a person at a terminal. It goes to standard error, so that
 * standard output keeps what a command answers. Credentials are cut out here as well, in case one ever reaches a log call.
 */
import { pino } from 'pino'
import type { Log } from '../../../lib/log.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { LogConfig } from '../../config/config.ts'

const SECRET_NAMES = ['authorization', 'token', 'extra_data', 'extraData', 'secretKey', 'cookie', 'apiKey', 'api_key']
const REDACTED = SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
// Lines that wait while the reader of standard error does not read. Beyond this, new lines are dropped.
const MAX_WAITING_BYTES = 16 * 2 ** 20
// How long a reader that does not read may delay the end of the process.
const FINISH_WITHIN_MS = 1000

/** Disposing of it waits until everything that was logged is written. */
interface ServiceLog extends AsyncDisposable {
  readonly log: Log
}

interface LogTarget {
  readonly descriptor: number
  readonly isTerminal: boolean
}

export function openLog({ level }: LogConfig, { descriptor, isTerminal }: LogTarget): ServiceLog {
  const destination = pino.destination({ dest: descriptor, sync: false, maxLength: MAX_WAITING_BYTES })
  const stream = isTerminal ? { write: (line: string) => void destination.write(toReadableLine(line)) } : destination
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: '[secret]' },
    },
    stream,
  )
  return {
    log,
    [Symbol.asyncDispose]: () => finish(destination),
  }
}

/** Avoids `flushSync`: while a write is under way it would write the same line a second time. */
async function finish(destination: ReturnType<typeof pino.destination>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  destination.once('finish', resolve)
  // Standard error is closed, so there is nowhere to report this.
  destination.once('error', () => resolve())
  destination.end()
  await settlesWithin(promise, FINISH_WITHIN_MS)
}

/** `12:00:01 info  listening url=http://…` from one JSON line. */
export function toReadableLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const clock = String(time).slice(11, 19)
  const pairs = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? `\n${String(err.stack)}` : ''
  return `${[clock, String(level).padEnd(5), String(msg ?? ''), ...pairs].join(' ')}${stack}\n`
}
