/** `atelier schedules`: what is submitted at given times, on any server that has them. */
import type { Command } from 'commander'
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { toPairs, toTable } from '../admin/admin-command.ts'
import { readWorkflowFile } from '../run/workflow-file.ts'
import type { RunClient } from '../server/client.ts'
import { readJob, toFields } from '../server/job-answers.ts'
import { addServerCommands, type Options, type Said, type ServerCommand, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'

const WHEN = [
  ['--time-zone <name>', 'an IANA name such as Europe/Berlin; default: UTC'],
  ['--overlap <skip|queue|cancel_previous>', 'what happens while the job before goes on; default: skip'],
  ['--catch-up <none|one>', 'what becomes of times that the service was not there for; default: none'],
  ['--endpoint <name>', 'an endpoint to call, perhaps with a version: portrait@stable'],
  ['--workflow <file>', 'a workflow to submit, in either format'],
  ['--priority <number>', 'of its jobs inside the account; default: 0'],
] as const
const LISTS = [
  ['-i, --input <name=value>', 'an input of the endpoint; may be given several times'],
  ['--metadata <key=value>', 'for its jobs, beside schedule=<name>; may be given several times'],
] as const

const COMMANDS: readonly ServerCommand[] = [
  { usage: 'list', description: 'list schedules, the oldest first', ask: list },
  {
    usage: 'create <name>',
    description: 'submit a workflow or call an endpoint at given times',
    flags: [
      ['--cron <fields>', 'minute, hour, day of the month, month, day of the week; or @daily and its like'],
      ...WHEN,
    ],
    lists: LISTS,
    example:
      'atelier schedules create nightly --cron "30 2 * * mon-fri" --time-zone Europe/Berlin --endpoint poster -i headline=News',
    ask: create,
  },
  { usage: 'show <id>', description: 'one schedule: its next times and what became of the last ones', ask: show },
  {
    usage: 'pause <id>',
    description: 'let its times go by',
    flags: [['--reason <text>', 'told to whoever looks at it']],
    ask: (client, [id], options) => change(client, id, 'pause', textOf(options, 'reason')),
  },
  {
    usage: 'resume <id>',
    description: 'go on with its next time, in the name of this token',
    ask: (client, [id]) => change(client, id, 'resume', null),
  },
  { usage: 'run <id>', description: 'submit now what it submits; its times stay as they are', ask: runNow },
  { usage: 'remove <id>', description: 'remove it; its jobs stay', ask: remove },
]

export function addSchedules(program: Command, terminal: Terminal, finish: Finish): void {
  const schedules = program.command('schedules').description('what is submitted at given times')
  addServerCommands(schedules, COMMANDS, { terminal, finish })
}

const WITHIN_MS = 60_000
const pathOf = (id: string, rest = '') => `/schedules/${encodeURIComponent(id)}${rest}`

async function ask(client: RunClient, link: string, method = 'GET', body?: JsonObject): Promise<JsonObject> {
  const init = body && { headers: { 'content-type': 'application/json' }, body: stringifyLosslessJson(body) }
  const answer = await client.call(link, { method, ...init, signal: AbortSignal.timeout(WITHIN_MS) })
  const text = await answer.text()
  return text === '' ? {} : (parseLosslessJson(text) as JsonObject)
}

async function list(client: RunClient): Promise<Said> {
  const answer = await ask(client, '/schedules')
  const rows = (answer['schedules'] as JsonObject[]).map((each) => [
    ...[each['id'], each['name'], each['cron'], each['time_zone'], each['endpoint'] ?? 'a workflow'],
    ...[each['state'], each['next_at'], toFields(each['last_error'])['code']],
  ])
  const head = ['id', 'name', 'cron', 'zone', 'submits', 'state', 'next', 'error']
  return { answer, lines: [toTable(head, rows, { empty: 'there are no schedules' })] }
}

async function create(
  client: RunClient,
  [name]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const [cron, endpoint, file] = [textOf(options, 'cron'), textOf(options, 'endpoint'), textOf(options, 'workflow')]
  if (cron === null) throw new CommandError('say --cron: when it submits, such as "30 2 * * *"', EXIT.usage)
  if ((endpoint === null) === (file === null))
    throw new CommandError('say either --endpoint or --workflow: what it submits', EXIT.usage)
  const body: Record<string, JsonValue> = { name, cron }
  const flags = { timeZone: 'time_zone', overlap: 'overlap', catchUp: 'catch_up' }
  for (const [flag, field] of Object.entries(flags)) {
    const value = textOf(options, flag)
    if (value !== null) body[field] = value
  }
  const priority = textOf(options, 'priority')
  if (priority !== null) body['priority'] = Number(priority)
  const inputs = readPairs(options, 'input', readValue)
  if (endpoint !== null) Object.assign(body, { endpoint, inputs })
  else if (Object.keys(inputs).length > 0)
    throw new CommandError('--input is for endpoints; the values of a workflow are in its file', EXIT.usage)
  if (file !== null) {
    const signal = AbortSignal.timeout(WITHIN_MS)
    body['workflow'] = (await client.convert(readWorkflowFile(file, terminal.cwd), signal)).workflow
  }
  const metadata = readPairs(options, 'metadata', (text) => text)
  if (Object.keys(metadata).length > 0) body['metadata'] = metadata
  const answer = await ask(client, '/schedules', 'POST', body)
  return { answer, lines: [`${String(answer['id'])} submits for the first time at ${String(answer['next_at'])}`] }
}

/** `name=value`, as often as it was given. */
function readPairs(options: Options, name: string, read: (text: string) => JsonValue): JsonObject {
  const pairs = ((options[name] as string[] | undefined) ?? []).map((pair): [string, JsonValue] => {
    const at = pair.indexOf('=')
    if (at < 1) throw new CommandError(`--${name} ${JSON.stringify(pair)} is not of the form name=value`, EXIT.usage)
    return [pair.slice(0, at), read(pair.slice(at + 1))]
  })
  return Object.fromEntries(pairs)
}

/** What is no JSON is a text. */
function readValue(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    return text
  }
}

async function show(client: RunClient, [id]: readonly string[]): Promise<Said> {
  const [schedule, history] = await Promise.all([ask(client, pathOf(id)), ask(client, pathOf(id, '/runs'))])
  const error = toFields(schedule['last_error'])
  const pairs: (readonly [string, unknown])[] = [
    ['schedule', id],
    ['name', schedule['name']],
    ['times', `${String(schedule['cron'])} (${String(schedule['time_zone'])})`],
    ['submits', schedule['endpoint'] ?? 'a workflow'],
    ['overlap', schedule['overlap']],
    ['catch up', schedule['catch_up']],
    ['state', [schedule['state'], schedule['reason']].filter(Boolean).join(': ')],
    ['next', (schedule['upcoming'] as string[]).join(' ')],
    ['error', error['message']],
  ]
  const lines = toPairs(pairs.filter(([, value]) => value))
  const runs = history['runs'] as JsonObject[]
  const rows = runs.map((each) => [
    ...[each['due_at'], each['by_hand'] === true ? 'by hand' : '', each['outcome']],
    each['job_id'] ?? each['message'],
  ])
  const table = toTable(['due', '', 'outcome', 'job'], rows, { empty: '' })
  const answer = { ...schedule, runs }
  return { answer, lines: [lines, ...(runs.length === 0 ? [] : ['', table])] }
}

async function change(client: RunClient, id: string, deed: 'pause' | 'resume', reason: string | null): Promise<Said> {
  const answer = await ask(client, pathOf(id, `/${deed}`), 'POST', reason === null ? undefined : { reason })
  const next = answer['next_at']
  return { answer, lines: [typeof next === 'string' ? `${id} goes on at ${next}` : `${id} is paused`] }
}

async function runNow(client: RunClient, [id]: readonly string[]): Promise<Said> {
  const job = readJob(await ask(client, pathOf(id, '/run'), 'POST'))
  return { answer: job.answer, lines: [job.id] }
}

async function remove(client: RunClient, [id]: readonly string[]): Promise<Said> {
  await ask(client, pathOf(id), 'DELETE')
  return { answer: {}, lines: [`${id} is removed; its jobs stay`] }
}
