/** Runs a workflow on a server: uploads files, submits, waits (Ctrl-C cancels the job), and fetches the outputs. */
import path from 'node:path'
import { type JsonObject, type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { type ClientOptions, RunClient, UnreachableError } from '../server/client.ts'
import { describeError, type JobView, type OutputView } from '../server/job-answers.ts'
import { prepareWorkflow, type RunContext, type RunRequest } from '../server/request.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { followJob } from './display.ts'
import { saveOutput } from './save-outputs.ts'

/** The whole run on a server; returns the exit code. */
export async function runRemotely(request: RunRequest, server: ClientOptions, context: RunContext): Promise<number> {
  const { signal, terminal } = context
  const client = new RunClient(server)
  const workflow = await prepareWorkflow(request, terminal, {
    toFile: (file) => upload(client, file, context),
    convert: (content) => client.convert(content, signal),
  })
  return finishJob(client, await client.submit(workflow, signal), request, context)
}

interface Finishing extends Pick<RunRequest, 'out' | 'json'> {
  /** Printed with `--json` beside what every job has. */
  readonly more?: JsonObject
}

/** Waits for the end of a job that was submitted, and fetches its outputs; returns the exit code. */
export async function finishJob(
  client: RunClient,
  job: JobView,
  { out, json, more = {} }: Finishing,
  context: RunContext,
): Promise<number> {
  const { display, terminal } = context
  display.say(`job ${job.id}`)
  const ended = await followOrCancel(client, job, context)
  display.end()
  const files = ended.status === 'succeeded' ? await fetchOutputs(client, ended, out, context) : []
  report(ended, { files, json, more, terminal })
  return ended.status === 'succeeded' ? EXIT.ok : EXIT.failed
}

export async function upload(
  client: RunClient,
  given: string,
  { terminal, display, signal }: RunContext,
): Promise<JsonValue> {
  const file = path.resolve(terminal.cwd, given)
  display.say(`uploading ${given}`)
  return client.upload(file, signal).catch((error: unknown) => {
    const isLocal = error instanceof Error && 'code' in error && !(error instanceof UnreachableError)
    if (isLocal) throw new CommandError(`cannot read ${given}: ${error.message}`, EXIT.usage)
    throw error
  })
}

// A cancel takes effect between two steps of a node. After Ctrl-C we wait this long for it.
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
  { files, json, more, terminal }: { files: readonly string[]; json: boolean; more: JsonObject; terminal: Terminal },
): void {
  const { id, status, outputs, error } = job
  const told = { id, status, ...more, outputs, error, files } as unknown as JsonObject
  if (json) printLine(terminal.stdout, stringifyLosslessJson(told))
  else for (const file of files) printLine(terminal.stdout, toPrintable(file))
  if (job.status === 'succeeded') return
  printLine(terminal.stderr, toPrintable(`job ${job.id} ${job.status}${describeError(job.error)}`))
}
