/** `atelier endpoints share`, `shares` and `unshare`: links to the page of an endpoint. */

import { readUsd, writeUsd } from '../../../lib/text/usd.ts'
import { readDurationMs, SECOND, YEAR } from '../../config/readers/read-quantity.ts'
import { toTable } from '../admin/admin-command.ts'
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT } from '../terminal.ts'
import { askEndpoints, pathOf } from './endpoint-api.ts'

interface ShareWire {
  readonly id: string
  readonly endpoint: string
  readonly version: string | null
  readonly note: string
  readonly state: string
  readonly runs: number
  readonly spend_usd: string | null
  readonly referrers: readonly string[]
  readonly used: { readonly runs: number; readonly spent_usd: string }
  readonly expires_at: string
}

type CreatedWire = ShareWire & { readonly url: string; readonly embed: string | null }

export const SHARE_FLAGS = [
  ['--runs <count>', 'how many runs it is good for; required'],
  ['--expires <time>', 'when it ends: a span such as 7d, or a time such as 2030-01-31T12:00:00Z; required'],
  ['--spend <amount>', 'what all runs together may cost, such as 5usd; required where runs cost something'],
  ['--per-day <count>', 'how many of the runs in one day of UTC'],
  ['--at-a-time <count>', 'how many of its runs may wait or run at once; default: 2'],
  ['--referrer <hosts...>', 'hosts whose pages may show it in a frame, such as example.com or *.example.com'],
  ['--note <text>', 'for you: where it was given'],
  ['--version <version>', 'a number or an alias; default: whichever is current'],
] as const

export async function share(client: RunClient, [name]: readonly string[], options: Options): Promise<Said> {
  const [perDay, atATime] = [readCount(options, 'perDay', '--per-day'), readCount(options, 'atATime', '--at-a-time')]
  const spend = textOf(options, 'spend')
  const body = {
    runs: mustBeGiven(readCount(options, 'runs', '--runs'), '--runs'),
    expires_at: readEnd(mustBeGiven(textOf(options, 'expires'), '--expires')),
    ...(spend !== null && { spend_usd: readAmount(spend) }),
    ...(perDay !== null && { runs_per_day: perDay }),
    ...(atATime !== null && { at_a_time: atATime }),
    ...(Array.isArray(options['referrer']) && { referrers: options['referrer'] as string[] }),
    ...(textOf(options, 'note') !== null && { note: textOf(options, 'note') }),
    ...(textOf(options, 'version') !== null && { version: textOf(options, 'version') }),
  }
  const answer = await askEndpoints<CreatedWire>(client, pathOf(name, 'shares'), { method: 'POST', body })
  const lines = [
    answer.url,
    `${answer.id}: ${toBounds(answer)}, until ${answer.expires_at}. The address is shown this once.`,
    ...(answer.embed === null ? [] : ['', answer.embed]),
  ]
  return { answer, lines }
}

export async function listShares(client: RunClient, [name]: readonly string[]): Promise<Said> {
  const answer = await askEndpoints<{ readonly shares: readonly ShareWire[] }>(client, pathOf(name, 'shares'))
  const rows = answer.shares.map((each) => [
    ...[each.id, each.state, `${each.used.runs} of ${each.runs}`],
    each.spend_usd === null ? `$${each.used.spent_usd}` : `$${each.used.spent_usd} of $${each.spend_usd}`,
    ...[each.expires_at, each.version ?? 'current', each.referrers.join(', '), each.note],
  ])
  const head = ['id', 'state', 'runs', 'spent', 'until', 'version', 'referrers', 'note']
  return { answer, lines: [toTable(head, rows, { empty: `${name} has no links` })] }
}

export async function unshare(client: RunClient, [name, id]: readonly string[]): Promise<Said> {
  const answer = await askEndpoints<ShareWire>(client, pathOf(name, 'shares', id), { method: 'DELETE' })
  return { answer, lines: [`${id} leads nowhere any more; runs that it began go on`] }
}

function toBounds({ runs, spend_usd: spend }: ShareWire): string {
  return `${runs} ${runs === 1 ? 'run' : 'runs'}${spend === null ? '' : `, $${spend}`}`
}

function mustBeGiven<Value>(value: Value | null, flag: string): Value {
  if (value !== null) return value
  throw new CommandError(`say ${flag}: whoever has the link runs at your cost`, EXIT.usage)
}

function readCount(options: Options, name: string, flag: string): number | null {
  const text = textOf(options, name)
  if (text === null) return null
  if (/^\d{1,7}$/.test(text)) return Number(text)
  throw new CommandError(`${flag} must be a whole number`, EXIT.usage)
}

const SPAN = /^\d+(?:ms|s|m|h|d)$/

function readEnd(text: string): string {
  if (!SPAN.test(text)) return text
  return new Date(Date.now() + readDurationMs({ min: SECOND, max: YEAR })(text)).toISOString()
}

/** `5`, `5usd` or `$5`. */
function readAmount(text: string): string {
  const micros = readUsd(text.replace(/^\$|\s*usd$/gi, ''))
  if (micros !== null && micros > 0) return writeUsd(micros)
  throw new CommandError('--spend must be an amount of dollars, such as 5usd', EXIT.usage)
}
