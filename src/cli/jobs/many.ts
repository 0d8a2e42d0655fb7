/** `atelier jobs many`: one thing for all jobs that fit. The service does it; whoever asked may watch, or go away. */
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { Command } from 'commander'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { saveNewFile } from '../run/save-outputs.ts'
import type { RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { type RunContext, readTimeout, StopError, stoppable } from '../server/request.ts'
import { addServerCommands, type Options, type Said, type ServerCommand, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'

const FILTERS = {
  status: ['--status <list>', 'only these, comma separated, such as failed,canceled'],
  like: ['--like <job>', 'only those that failed for the same reason as this job'],
  code: ['--code <code>', 'only those that failed with this code'],
  q: ['--search <text>', 'only those with this in their id, metadata, title, error code, node classes or weights'],
  class: ['--class <name>', 'only those with this node class'],
  weights: ['--weights <file>', 'only those with this weights file'],
  engine: ['--engine <id>', 'only those of this engine'],
  pool: ['--pool <id>', 'only those of this pool'],
  since: ['--since <time>', 'only those submitted then or later'],
  until: ['--until <time>', 'only those submitted before'],
} as const satisfies Readonly<Record<string, readonly [flag: string, help: string]>>
const ALL = ['--all', 'every job that this can be done to'] as const
const DRY = ['--dry-run', 'say how many it would be, and do nothing'] as const
const DETACH = ['--detach', 'print its id and leave the rest to the service'] as const
const TIMEOUT = ['--timeout <duration>', 'stop watching after this long; the service goes on'] as const
const LISTS = [['--metadata <key=value>', 'only those submitted with this; may be given several times']] as const
const COMMON = [...Object.values(FILTERS), ALL, DRY, DETACH, TIMEOUT]

const ID = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'

const COMMANDS: readonly ServerCommand[] = [
  {
    usage: 'cancel',
    description: 'cancel all that fit',
    flags: [...COMMON, ['--only-waiting', 'leave those that run']],
    lists: LISTS,
    example: 'atelier jobs many cancel --all --only-waiting',
    ask: (client, _args, options, terminal) => start(client, options, terminal, 'cancel'),
  },
  {
    usage: 'rerun',
    description: 'submit all that fit again, each once',
    flags: COMMON,
    lists: LISTS,
    example: `atelier jobs many rerun --like ${ID}`,
    ask: (client, _args, options, terminal) => start(client, options, terminal, 'rerun'),
  },
  {
    usage: 'prioritize <priority>',
    description: 'give all that wait and fit this priority; higher runs first',
    flags: COMMON,
    lists: LISTS,
    example: 'atelier jobs many prioritize 10 --metadata project=cards',
    ask: (client, [text], options, terminal) =>
      start(client, options, terminal, 'prioritize', { priority: readPriority(text) }),
  },
  {
    usage: 'download',
    description: 'fetch what all that fit have made, as archives',
    flags: [...COMMON, ['-o, --out <folder>', 'where to write them; default: the current folder']],
    lists: LISTS,
    example: 'atelier jobs many download --metadata project=cards -o cards',
    ask: (client, _args, options, terminal) => start(client, options, terminal, 'download'),
  },
  {
    usage: 'show <id>',
    description: 'how far one of these is',
    ask: (client, [id]) => said(client.read(pathOf(id), within())),
  },
  {
    usage: 'stop <id>',
    description: 'leave the jobs whose turn has not come as they are',
    ask: (client, [id]) => said(call(client, pathOf(id, '/stop'))),
  },
]

export function addMany(jobs: Command, terminal: Terminal, finish: Finish): void {
  const many = jobs.command('many').description('one thing for many jobs: cancel, run again, prioritize, download')
  addServerCommands(many, COMMANDS, { terminal, finish })
}

const WITHIN_MS = 60_000
const within = () => AbortSignal.timeout(WITHIN_MS)
const pathOf = (id: string, rest = '') => `/bulk-actions/${encodeURIComponent(id)}${rest}`

async function call(client: RunClient, link: string): Promise<JsonValue> {
  return (await (await client.call(link, { method: 'POST', signal: within() })).json()) as JsonValue
}

async function said(asked: Promise<JsonValue>): Promise<Said> {
  const answer = await asked
  return { answer, lines: [toLine(answer)] }
}

function readPriority(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value)) return value
  throw new CommandError(`${JSON.stringify(text)} is no whole number`, EXIT.usage)
}

/** A typing error must not widen what is acted on: every job has to be asked for by its own flag. */
function readFilter(options: Options): JsonObject {
  const filter: Record<string, JsonValue> = {}
  for (const [word, [flag]] of Object.entries(FILTERS)) {
    const value = textOf(options, /^--(\w+)/.exec(flag)?.[1] ?? '')
    if (value !== null) filter[word] = value
  }
  for (const pair of (options['metadata'] as string[] | undefined) ?? []) {
    const at = pair.indexOf('=')
    if (at < 1) throw new CommandError(`--metadata ${JSON.stringify(pair)} is not of the form key=value`, EXIT.usage)
    filter[`meta.${pair.slice(0, at)}`] = pair.slice(at + 1)
  }
  const isEmpty = Object.keys(filter).length === 0
  if (isEmpty !== (options['all'] === true))
    throw new CommandError('say which jobs, such as --status failed or --like <job>, or else --all', EXIT.usage)
  return filter
}

async function start(
  client: RunClient,
  options: Options,
  terminal: Terminal,
  action: string,
  more: JsonObject = {},
): Promise<Said> {
  const wish = {
    ...{ action, filter: readFilter(options), ...more },
    ...(options['onlyWaiting'] === true && { only_waiting: true }),
  }
  return stoppable(terminal, readTimeout(options), async (context) => {
    if (options['dryRun'] === true) {
      const answer = await client.post('/bulk-actions', { ...wish, dry_run: true }, context.signal)
      const { count, has_more: hasMore } = toFields(answer)
      return { answer, lines: [`${String(count)} jobs${hasMore === true ? ', and more than one of these takes' : ''}`] }
    }
    const made = await client.post('/bulk-actions', wish, context.signal)
    const id = String(toFields(made)['id'])
    if (options['detach'] === true) return { answer: made, lines: [id] }
    const ended = await follow(client, made, context)
    const { state, refused } = toFields(ended)
    const files = action === 'download' ? await saveArchives(client, ended, options, context) : []
    const isWhole = state === 'done' && refused === 0
    return { answer: ended, lines: [toLine(ended), ...files], exitCode: isWhole ? EXIT.ok : EXIT.failed }
  })
}

const LOOK_MS = 500

async function follow(client: RunClient, made: JsonValue, { display, signal }: RunContext): Promise<JsonValue> {
  const id = String(toFields(made)['id'])
  for (let latest = made; ; latest = await client.read(pathOf(id), signal)) {
    const { state, progress, reason } = toFields(latest)
    if (state !== 'working') return latest
    const message = toFields(reason)['message']
    display.progress({ value: Number(progress), message: typeof message === 'string' ? message : null })
    await sleep(LOOK_MS, signal)
    if (signal.aborted)
      throw new StopError(
        `${(signal.reason as Error).message}; the service goes on: atelier jobs many show ${id}`,
        signal.reason instanceof StopError ? signal.reason.exitCode : EXIT.failed,
      )
  }
}

function toLine(answer: JsonValue): string {
  const { id, action, state, total, done, skipped, refused, has_more: hasMore, reason } = toFields(answer)
  const counts = [
    `${String(done)} of ${String(total)} jobs`,
    ...(Number(skipped) > 0 ? [`${String(skipped)} had ended or gone`] : []),
    ...(Number(refused) > 0 ? [`${String(refused)} were refused`] : []),
    ...(hasMore === true ? ['more fit: ask again for the rest'] : []),
    ...(typeof toFields(reason)['message'] === 'string' ? [String(toFields(reason)['message'])] : []),
  ]
  return `${String(action)} ${String(id)} is ${String(state)}: ${counts.join('; ')}`
}

async function saveArchives(
  client: RunClient,
  ended: JsonValue,
  options: Options,
  { terminal, signal }: RunContext,
): Promise<string[]> {
  const { id, parts } = toFields(ended)
  const folder = path.resolve(terminal.cwd, textOf(options, 'out') ?? '.')
  await mkdir(folder, { recursive: true })
  const files: string[] = []
  for (let part = 1; part <= Number(parts); part += 1) {
    const response = await client.download(pathOf(String(id), `/outputs.zip?part=${part}`), signal)
    const body = Readable.fromWeb(response.body as ReadableStream)
    files.push((await saveNewFile(body, { folder, name: `jobs-${part}.zip`, signal })).file)
  }
  return files
}
