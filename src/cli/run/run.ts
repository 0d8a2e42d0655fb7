/**
 * `atelier run workflow.json`: uploads the files it names, submits, shows progress, fetches the outputs. Works against any
 * server of the Jobs API v2. Ctrl-C cancels the job. Exit 0 when the job succeeded, 1 when it did not, 2 for a mistake in the
 * call, 3 when the server cannot be reached.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Command } from 'commander'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { findService } from '../../compose/service-file.ts'
import { ENV, OTHER_ENV } from '../../config/env.ts'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { createRunClient, RefusedError, type RunClient, readBaseUrl, UnreachableError } from './client.ts'
import { createDisplay, type RunDisplay } from './display.ts'
import { followJob } from './follow.ts'
import { saveOutput } from './save-outputs.ts'
import type { JobView, OutputView } from './wire.ts'
import { readInput, readWorkflow, type WorkflowInput, withInputs } from './workflow-inputs.ts'

export interface RunRequest {
  /** The workflow file. */
  readonly file: string
  /** `node.field=value` or `node.field=@file`. */
  readonly inputs: readonly string[]
  /** Where outputs go; null: they are only named. */
  readonly out: string | null
  readonly baseUrl: string
  readonly token: string | null
  readonly timeoutMs: number | null
  readonly json: boolean
}

const DEFAULT_BASE_URL = 'http://127.0.0.1:8189'
const DAY_MS = 86_400_000

export function addRun(program: Command, terminal: Terminal, finish: Finish): void {
  const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]
  program
    .command('run')
    .description('run a workflow on a server and fetch its outputs')
    .argument('<workflow.json>', 'a workflow in API format')
    .option('-i, --input <node.field=value>', 'set an input: a value, or @file to upload; repeatable', collect)
    .option('-o, --out <folder>', 'where to write the outputs; without it their addresses are printed')
    .option('--base-url <url>', `the server (env ${OTHER_ENV.baseUrl}; default ${DEFAULT_BASE_URL})`)
    .option('--data-dir <folder>', 'instead: the server that holds this data folder')
    .option('--token <token>', `the bearer token (env ${ENV.token})`)
    .option('--timeout <duration>', 'give up and cancel the job after this long, such as 10m')
    .option('--json', 'print the finished job as JSON on standard output')
    .action(async (file: string, options: Record<string, unknown>) => {
      finish(await runWorkflow(toRequest(file, options, terminal), terminal))
    })
}

function toRequest(file: string, options: Readonly<Record<string, unknown>>, terminal: Terminal): RunRequest {
  const { env } = terminal
  const text = (name: string) => (typeof options[name] === 'string' ? options[name] : null)
  const timeout = text('timeout')
  return {
    file,
    inputs: (options['input'] as string[] | undefined) ?? [],
    out: text('out'),
    baseUrl: readBaseUrl(
      text('baseUrl') ?? findByFolder(text('dataDir'), terminal) ?? env[OTHER_ENV.baseUrl] ?? DEFAULT_BASE_URL,
    ),
    token: text('token') ?? env[ENV.token] ?? null,
    timeoutMs: timeout === null ? null : readTimeout(timeout),
    json: options['json'] === true,
  }
}

function findByFolder(dataDir: string | null, terminal: Terminal): string | null {
  if (dataDir === null) return null
  const { store } = loadFromCommandLine({ dataDir }, terminal).config
  const service = findService(store)
  if (service.state === 'running') return service.address.baseUrl
  const reason = service.state === 'unusable' ? service.message : `no service answers for ${store.directory}`
  throw new CommandError(`${reason}; start one with: atelier serve --data-dir ${dataDir}`, EXIT.unreachable)
}

function readTimeout(text: string): number {
  try {
    return readDurationMs({ min: 1, max: 30 * DAY_MS })(text)
  } catch (error) {
    throw new CommandError(`--timeout ${JSON.stringify(text)} ${(error as Error).message}`, EXIT.usage)
  }
}

/** The whole run; returns the exit code. */
export async function runWorkflow(request: RunRequest, terminal: Terminal): Promise<number> {
  const display = createDisplay(terminal)
  const stop = new AbortController()
  const end = terminal.onSignal((signal) => {
    if (stop.signal.aborted) terminal.exitNow(EXIT.failed)
    stop.abort(new StopError(`stopped by ${signal}`))
  })
  const timer =
    request.timeoutMs === null
      ? null
      : setTimeout(() => stop.abort(new StopError('the time is over')), request.timeoutMs)
  try {
    return await submitAndFollow(request, { terminal, display, signal: stop.signal })
  } catch (error) {
    return explainRun(error, display)
  } finally {
    display.end()
    if (timer !== null) clearTimeout(timer)
    end()
  }
}

class StopError extends Error {}

interface RunContext {
  readonly terminal: Terminal
  readonly display: RunDisplay
  readonly signal: AbortSignal
}

async function submitAndFollow(request: RunRequest, context: RunContext): Promise<number> {
  const { display, signal, terminal } = context
  const client = createRunClient(request)
  const workflow = await prepareWorkflow(request, client, context)
  const job = await client.submit(workflow, signal)
  display.say(`job ${job.id}`)
  const ended = await followOrCancel(client, job, context)
  display.end()
  const files = ended.status === 'succeeded' ? await fetchOutputs(client, ended, request.out, context) : []
  report(ended, { files, json: request.json, terminal })
  return ended.status === 'succeeded' ? EXIT.ok : EXIT.failed
}

async function prepareWorkflow(request: RunRequest, client: RunClient, context: RunContext): Promise<JsonValue> {
  const { cwd } = context.terminal
  const text = await readFile(path.resolve(cwd, request.file), 'utf8').catch((error: Error) => {
    throw new CommandError(`cannot read ${request.file}: ${error.message}`, EXIT.usage)
  })
  const workflow = readWorkflow(text, request.file)
  const inputs = request.inputs.map((input) => readInput(input, workflow))
  const values: [WorkflowInput, JsonValue][] = []
  for (const input of inputs) values.push([input, await toValue(input, client, context)])
  return withInputs(workflow, values)
}

async function toValue({ value }: WorkflowInput, client: RunClient, context: RunContext): Promise<JsonValue> {
  if (value.kind === 'value') return value.value
  const file = path.resolve(context.terminal.cwd, value.path)
  context.display.say(`uploading ${value.path}`)
  return client.upload(file, context.signal).catch((error: unknown) => {
    const isLocal = error instanceof Error && 'code' in error && !(error instanceof UnreachableError)
    if (isLocal) throw new CommandError(`cannot read ${value.path}: ${error.message}`, EXIT.usage)
    throw error
  })
}

// A cancel takes effect between two steps of a node; whoever pressed Ctrl-C should not wait longer than this to learn so.
const CANCEL_WITHIN_MS = 15_000

async function followOrCancel(client: RunClient, job: JobView, { display, signal }: RunContext): Promise<JobView> {
  try {
    return await followJob(client, job, { display, signal })
  } catch (error) {
    if (!signal.aborted) throw error
    display.say(`${(signal.reason as Error).message}; canceling job ${job.id} (once more to leave at once)`)
    const patience = AbortSignal.timeout(CANCEL_WITHIN_MS)
    const canceled = await client.cancel(job.cancelLink, patience)
    return followJob(client, canceled, { display, signal: patience }).catch(() => canceled)
  }
}

async function fetchOutputs(
  client: RunClient,
  job: JobView,
  out: string | null,
  { terminal, signal, display }: RunContext,
): Promise<string[]> {
  if (out === null) return job.outputs.map((output: OutputView) => output.url)
  const folder = path.resolve(terminal.cwd, out)
  const files: string[] = []
  for (const output of job.outputs) {
    display.say(`fetching ${output.name}`)
    files.push(await saveOutput(client, output, folder, signal))
  }
  return files
}

function report(
  job: JobView,
  { files, json, terminal }: { files: readonly string[]; json: boolean; terminal: Terminal },
): void {
  if (json)
    printLine(
      terminal.stdout,
      JSON.stringify({ id: job.id, status: job.status, outputs: job.outputs, error: job.error, files }),
    )
  else for (const file of files) printLine(terminal.stdout, toPrintable(file))
  if (job.status === 'succeeded') return
  const { error } = job
  const place = error?.nodeId ? ` in node ${error.nodeId}${error.classType ? ` (${error.classType})` : ''}` : ''
  const reason = error === null ? '' : `${place}: ${error.code}: ${error.message}`
  printLine(terminal.stderr, toPrintable(`job ${job.id} ${job.status}${reason}`))
}

function explainRun(error: unknown, display: RunDisplay): number {
  display.end()
  if (error instanceof RefusedError) {
    for (const line of error.lines) display.say(line)
    return EXIT.failed
  }
  if (error instanceof UnreachableError) {
    display.say(`atelier: ${error.message}; is the server running? (--base-url, \`atelier serve\`)`)
    return EXIT.unreachable
  }
  if (error instanceof StopError) {
    display.say(`atelier: ${error.message} before the job was submitted`)
    return EXIT.failed
  }
  throw error
}
