/** `atelier endpoints limits`, `callers` and `usage`: what the owner of an endpoint allows, and how it was used. */
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { toTable } from '../admin/admin-command.ts'
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT } from '../terminal.ts'
import { askEndpoints, type EndpointWire, pathOf } from './endpoint-api.ts'

interface Used {
  readonly now: number | string
  readonly maximum: number | string
}

interface Sums {
  readonly runs: number
  readonly queued: number
  readonly running: number
  readonly succeeded: number
  readonly failed: number
  readonly canceled: number
  readonly expired: number
  readonly seconds: number
  readonly usd: string
}

interface UsageWire {
  readonly by: string
  readonly total: Sums
  readonly rows: readonly (Sums & { readonly key: string | null })[]
  readonly limits: {
    readonly in_flight: Used | null
    readonly runs: Readonly<Record<string, Used>>
    readonly spend_usd: Readonly<Record<string, Used>>
  }
}

const NONE = 'none'

/** Without flags it tells the limits, and what counts for them now. */
export async function limits(client: RunClient, [name]: readonly string[], options: Options): Promise<Said> {
  const wanted = readLimits(options)
  if (wanted !== undefined) await askEndpoints(client, pathOf(name), { method: 'PATCH', body: { limits: wanted } })
  const usage = await askEndpoints<UsageWire>(client, pathOf(name, 'usage'))
  return { answer: { limits: usage.limits }, lines: toLimitLines(usage.limits) }
}

/** undefined: none is to be changed. */
function readLimits(options: Options): JsonObject | null | undefined {
  const [inFlight, runs, spend] = [textOf(options, 'inFlight'), textOf(options, 'runs'), textOf(options, 'spend')]
  const given = [inFlight, runs, spend].filter((text) => text !== null)
  if (options['none'] === true) {
    if (given.length > 0) throw new CommandError('give --none, or limits, and not both', EXIT.usage)
    return null
  }
  if (given.length === 0) return undefined
  return {
    ...(inFlight !== null && { in_flight: inFlight === NONE ? null : readCount('--in-flight', inFlight) }),
    ...(runs !== null && { runs: readPeriods('--runs', runs, (text) => readCount('--runs', text)) }),
    ...(spend !== null && { spend_usd: readPeriods('--spend', spend, (text) => text.replace(/^\$/, '')) }),
  }
}

function readCount(flag: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new CommandError(`${flag} ${JSON.stringify(text)} is no whole number above zero, and not ${NONE}`, EXIT.usage)
}

/** `100/day,10/hour`; `none/day` takes one away. */
function readPeriods<Value extends string | number>(flag: string, text: string, read: (text: string) => Value) {
  const pairs = text.split(',').map((part) => {
    const match = /^([^/]+)\/(hour|day|month|ever)$/.exec(part.trim())
    if (match === null)
      throw new CommandError(`${flag} takes limits such as 100/day, by hour, day, month or ever`, EXIT.usage)
    const [, most, period] = match
    return [period, most === NONE ? null : read(most)]
  })
  return Object.fromEntries(pairs) as Record<string, Value | null>
}

const WORDS: Readonly<Record<string, string>> = { hour: 'an hour', day: 'a day', month: 'a month', ever: 'in all' }

function toLimitLines({ in_flight: inFlight, runs, spend_usd: spend }: UsageWire['limits']): string[] {
  const lines = [
    ...(inFlight === null ? [] : [`${inFlight.now} of ${inFlight.maximum} runs at a time`]),
    ...Object.entries(runs).map(([period, { now, maximum }]) => `${now} of ${maximum} runs ${WORDS[period]}`),
    ...Object.entries(spend).map(([period, { now, maximum }]) => `$${now} of $${maximum} ${WORDS[period]}`),
  ]
  return lines.length === 0 ? ['it has no limits'] : lines
}

/** Which other accounts may call it; with names, or a flag, it is these from now on. */
export async function callers(client: RunClient, [name, ...named]: readonly string[], options: Options): Promise<Said> {
  const flags = [...(options['everyone'] === true ? [['*']] : []), ...(options['nobody'] === true ? [[]] : [])]
  const wanted = [...flags, ...(named.length > 0 ? [named] : [])]
  if (wanted.length > 1)
    throw new CommandError('give accounts, --everyone or --nobody, and not two of them', EXIT.usage)
  const change = wanted.length === 0 ? {} : ({ method: 'PATCH', body: { callers: wanted[0] } } as const)
  const answer = await askEndpoints<EndpointWire>(client, pathOf(name), change)
  const told = answer.callers.includes('*') ? 'every account' : answer.callers.join(', ')
  const line = told === '' ? `no other account may call ${name}` : `${told} may call it, as OWNER/${name}`
  return { answer: { callers: answer.callers }, lines: [line] }
}

export async function usage(client: RunClient, [name]: readonly string[], options: Options): Promise<Said> {
  const asked = ['from', 'to', 'tz', 'by'].flatMap((flag) => {
    const text = textOf(options, flag)
    return text === null ? [] : [[flag, text] as [string, string]]
  })
  if (options['others'] === true) asked.push(['of', 'others'])
  const path = `${pathOf(name, 'usage')}?${new URLSearchParams(asked)}`
  const answer = await askEndpoints<UsageWire>(client, path)
  const used = answer.rows.filter(({ runs, usd }) => runs > 0 || Number(usd) !== 0)
  const rows = [...used, { ...answer.total, key: 'in all' }].map((row) => [
    ...[row.key, row.runs, row.succeeded, row.failed, row.canceled + row.expired, row.queued + row.running],
    ...[row.seconds, `$${row.usd}`],
  ])
  const headings = [answer.by, 'runs', 'succeeded', 'failed', 'canceled', 'under way', 'seconds', 'spent']
  return { answer, lines: [toTable(headings, rows, { empty: '' })] }
}
