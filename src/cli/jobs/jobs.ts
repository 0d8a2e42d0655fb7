/**
 * `atelier jobs`: the jobs of an account, on any server of the Jobs API v2. Operators cancel and move those of any account, with the
 * flags of an operator.
 */
import type { Command } from 'commander'
import { isJsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { findService } from '../../compose/process/service-file.ts'
import { ENV, OTHER_ENV } from '../../config/env.ts'
import { addAdminFlags, askAdmin, toPairs, toTable } from '../admin/admin-command.ts'
import { addMove } from '../admin/queue.ts'
import { CANCEL_OF_ANY } from '../admin/running.ts'
import { followJob } from '../run/display.ts'
import { saveOutputs, sayEnded, upload } from '../run/run-remote.ts'
import type { RunClient } from '../server/client.ts'
import { describeError, type JobView, readJob, TERMINAL_STATUSES, toFields } from '../server/job-answers.ts'
import { fillIn, type RunContext, readTimeout, StopError, stoppable } from '../server/request.ts'
import {
  addServerCommands,
  type Options,
  type Said,
  type ServerCommand,
  sayAnswer,
  textOf,
} from '../server/server-commands.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { addMany } from './many.ts'

const OUT = ['-o, --out <folder>', 'where to write the outputs; without it their addresses are printed'] as const
const TIMEOUT = ['--timeout <duration>', 'stop watching after this long, such as 10m; the job goes on'] as const
const ID = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'

const COMMANDS: readonly ServerCommand[] = [
  {
    usage: 'list',
    description: 'list jobs, the newest first',
    flags: [
      [
        '--status <list>',
        'only these, comma separated: queued, running, canceling, succeeded, failed, canceled, expired',
      ],
      ['--batch <id>', 'only those of this batch'],
      ['--limit <count>', 'how many, at most 100; default: 20'],
      ['--cursor <text>', 'go on where the list before ended'],
    ],
    lists: [['--metadata <key=value>', 'only those that were submitted with this; may be given several times']],
    example: 'atelier jobs list --status queued,running --metadata project=cards',
    ask: list,
  },
  { usage: 'show <id>', description: 'one job: how far it is, its outputs, what went wrong', ask: show },
  { usage: 'logs <id>', description: 'what the run printed', ask: logs },
  {
    usage: 'watch <id>',
    description: 'follow a job to its end; Ctrl-C leaves it running',
    flags: [OUT, TIMEOUT],
    example: `atelier jobs watch ${ID} -o outputs`,
    ask: watch,
  },
  {
    usage: 'download <id>',
    description: 'fetch the outputs that a job has',
    flags: [['-o, --out <folder>', 'where to write them; default: the current folder']],
    ask: download,
  },
  {
    usage: 'rerun <id>',
    description: 'submit the workflow of a job again, with some inputs changed',
    flags: [OUT, TIMEOUT, ['--watch', 'follow it to its end; so does --out']],
    lists: [['-i, --input <node.field=value>', 'change an input: a value, or @file; may be given several times']],
    example: `atelier jobs rerun ${ID} -i 3.seed=43 -o outputs`,
    ask: rerun,
  },
]

export function addJobs(program: Command, terminal: Terminal, finish: Finish): void {
  const jobs = program
    .command('jobs')
    .description('your jobs: list, show, watch, cancel, download, run again; one or many')
  addServerCommands(jobs, COMMANDS, { terminal, finish })
  addCancel(jobs, terminal, finish)
  addMove(jobs, { terminal, finish })
  addMany(jobs, terminal, finish)
}

/** An operator's flag, or their token where nothing names another server, cancels a job of any account. */
function addCancel(jobs: Command, terminal: Terminal, finish: Finish): void {
  const command = jobs
    .command('cancel')
    .description('cancel a job; with the flags of an operator, whoever owns it')
    .argument('<id>', 'the job')
    .option('--base-url <url>', `the server (env ${OTHER_ENV.baseUrl})`)
    .option('--token <token>', `the bearer token (env ${ENV.token})`)
    .optionsGroup('For operators:')
  addAdminFlags(command).action(async (id: string, options: Options) => {
    const asked = { args: [id], options, terminal }
    finish(await (isOperator(options, terminal) ? askAdmin(CANCEL_OF_ANY, asked) : sayAnswer(cancel, asked)))
  })
}

const OF_OPERATORS = ['url', 'adminToken', 'config', 'database', 'databasePasswordFile', 'tiers']

function isOperator(options: Options, terminal: Terminal): boolean {
  if (OF_OPERATORS.some((name) => options[name] !== undefined)) return true
  if (options['token'] !== undefined || options['baseUrl'] !== undefined) return false
  if (terminal.env[ENV.adminToken] !== undefined) return true
  // A folder that no service holds has jobs, too, and only an operator can open it.
  const dataDir = textOf(options, 'dataDir')
  return dataDir !== null && findService(loadFromCommandLine({ dataDir }, terminal).config).state === 'none'
}

const WITHIN_MS = 60_000
const within = () => AbortSignal.timeout(WITHIN_MS)
const pathOf = (id: string, rest = '') => `/jobs/${encodeURIComponent(id)}${rest}`

async function list(client: RunClient, _args: readonly string[], options: Options): Promise<Said> {
  const query = new URLSearchParams({ limit: textOf(options, 'limit') ?? '20' })
  for (const [flag, name] of Object.entries({ status: 'status', batch: 'batch_id', cursor: 'cursor' })) {
    const value = textOf(options, flag)
    if (value !== null) query.set(name, value)
  }
  for (const pair of (options['metadata'] as string[] | undefined) ?? []) {
    const at = pair.indexOf('=')
    if (at < 1) throw new CommandError(`--metadata ${JSON.stringify(pair)} is not of the form key=value`, EXIT.usage)
    query.append(`metadata[${pair.slice(0, at)}]`, pair.slice(at + 1))
  }
  const answer = await client.read(`/jobs?${query}`, within())
  const { jobs, next_cursor: next } = toFields(answer)
  const rows = (Array.isArray(jobs) ? (jobs as JsonValue[]) : []).map(readJob).map(toRow)
  const table = toTable(['job', 'status', 'submitted', 'outputs', 'note'], rows, { empty: 'there are no such jobs' })
  return { answer, lines: [table, ...(typeof next === 'string' ? [`more: --cursor ${next}`] : [])] }
}

function toRow(job: JobView): unknown[] {
  const { id, status, queuePosition, progress, outputs, error, answer } = job
  const percent = progress === null ? null : `${Math.round(progress.value * 100)} %`
  const note = { queued: queuePosition && `position ${queuePosition}`, running: percent, failed: error?.code }[status]
  return [id, status, answer['created_at'], outputs.length, note ?? endpointOf(job)]
}

function endpointOf({ answer }: JobView): string {
  const { name, version } = toFields(answer['endpoint'])
  return typeof name === 'string' ? `${name} version ${String(version)}` : ''
}

async function show(client: RunClient, [id]: readonly string[]): Promise<Said> {
  const job = await client.job(pathOf(id), within())
  return { answer: job.answer, lines: toJobLines(job) }
}

function toJobLines(job: JobView): string[] {
  const { answer, outputs, progress, error } = job
  const metadata = Object.entries(toFields(answer['metadata'])).map(([key, value]) => `${key}=${value}`)
  const pairs: (readonly [string, unknown])[] = [
    ['job', job.id],
    ['status', job.queuePosition === null ? job.status : `${job.status}, position ${job.queuePosition}`],
    ['progress', progress && `${Math.round(progress.value * 100)} % ${progress.message ?? ''}`.trimEnd()],
    ['error', error && describeError(error).replace(/^:? /, '')],
    ['endpoint', endpointOf(job)],
    ['submitted', answer['created_at']],
    ['held until', answer['not_before']],
    ['started', answer['started_at']],
    ['ended', answer['completed_at']],
    ['kept until', answer['expires_at']],
    ['metadata', metadata.join(' ')],
  ]
  const rows = outputs.map(({ name, id, sizeBytes, url }) => [name, id, sizeBytes, url])
  const table = toTable(['output', 'asset', 'bytes', 'address'], rows, { empty: '' })
  return [toPairs(pairs.filter(([, value]) => value)), ...(outputs.length === 0 ? [] : ['', table])]
}

async function logs(
  client: RunClient,
  [id]: readonly string[],
  _options: Options,
  { stderr }: Terminal,
): Promise<Said> {
  const response = await client.call(pathOf(id, '/logs'), { signal: within() })
  const answer: unknown = response.status === 204 ? null : await response.json()
  const { text, truncated } = toFields(answer)
  if (answer === null) printLine(stderr, 'the run has printed nothing')
  if (truncated === true) printLine(stderr, 'the beginning is not kept')
  return { answer, lines: typeof text === 'string' ? [text.trimEnd()] : [] }
}

async function watch(client: RunClient, [id]: readonly string[], options: Options, terminal: Terminal): Promise<Said> {
  return stoppable(terminal, readTimeout(options), async (context) => {
    const job = await client.job(pathOf(id), context.signal)
    const ended = TERMINAL_STATUSES.has(job.status) ? job : await follow(client, job, context)
    return sayEnded(client, ended, textOf(options, 'out'), context)
  })
}

function follow(client: RunClient, job: JobView, context: RunContext): Promise<JobView> {
  return followJob(client, job, context).catch((error: unknown) => {
    if (!(error instanceof StopError)) throw error
    throw new StopError(`${error.message}; job ${job.id} goes on`, error.exitCode)
  })
}

async function download(
  client: RunClient,
  [id]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  return stoppable(terminal, null, async (context) => {
    const job = await client.job(pathOf(id), context.signal)
    if (job.outputs.length === 0) {
      const later = TERMINAL_STATUSES.has(job.status) ? '' : `; wait for them with: atelier jobs watch ${job.id} -o .`
      throw new CommandError(toPrintable(`job ${job.id} is ${job.status} and has no outputs${later}`), EXIT.failed)
    }
    const files = await saveOutputs(client, job.outputs, textOf(options, 'out') ?? '.', context)
    return { answer: { ...job.answer, files }, lines: files }
  })
}

async function cancel(client: RunClient, [id]: readonly string[]): Promise<Said> {
  const job = await client.cancel(pathOf(id, '/cancel'), within())
  return { answer: job.answer, lines: [`job ${job.id} ${job.status}`] }
}

/** By the two calls that every server of the contract has. A file that an input names goes to the server first. */
async function rerun(client: RunClient, [id]: readonly string[], options: Options, terminal: Terminal): Promise<Said> {
  return stoppable(terminal, readTimeout(options), async (context) => {
    const { signal } = context
    const [before, text] = await Promise.all([
      client.job(pathOf(id), signal),
      client.read(pathOf(id, '/workflow'), signal),
    ])
    const { workflow } = isJsonObject(text) ? text : {}
    if (!isJsonObject(workflow)) throw new CommandError(`the server has no workflow of job ${before.id}`, EXIT.failed)
    const inputs = (options['input'] as string[] | undefined) ?? []
    const changed = await fillIn(workflow, inputs, (file) => upload(client, file, context))
    const { metadata = {}, priority = 0 } = before.answer
    const job = readJob(await client.post('/jobs', { workflow: changed, metadata, priority }, signal))
    const out = textOf(options, 'out')
    if (out === null && options['watch'] !== true) return { answer: job.answer, lines: [job.id] }
    context.display.say(`job ${job.id}`)
    return sayEnded(client, await follow(client, job, context), out, context)
  })
}
