/** Runs a workflow on a server: uploads files, submits, waits (Ctrl-C cancels the job), and fetches the outputs. */
import path from 'node:path'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { type ClientOptions, RunClient, UnreachableError } from '../server/client.ts'
import { describeError, type JobView, type OutputView } from '../server/job-answers.ts'
import { exitOfStop, prepareWorkflow, type RunContext, type RunRequest } from '../server/request.ts'
import { printSaid, type Said } from '../server/server-commands.ts'
import { CommandError, EXIT } from '../terminal.ts'
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

type Finishing = Pick<RunRequest, 'out' | 'json'>

/** Waits for the end of a job that was submitted, and fetches its outputs; returns the exit code. */
export async function finishJob(
  client: RunClient,
  job: JobView,
  finishing: Finishing,
  context: RunContext,
): Promise<number> {
  const { display, signal } = context
  display.say(`job ${job.id}`)
  const ended = await followOrCancel(client, job, context)
  // A cancel can come too late. What was stopped fetches nothing more; the outputs stay where they are.
  const said = await sayEnded(client, ended, signal.aborted ? null : finishing.out, context)
  const code = printSaid(said, finishing, context.terminal)
  return signal.aborted ? exitOfStop(signal) : code
}

/** Fetches the outputs of a job that has ended, if there is a folder for them, and says how it ended. */
export async function sayEnded(
  client: RunClient,
  ended: JobView,
  out: string | null,
  context: RunContext,
): Promise<Said> {
  const { display } = context
  display.end()
  const files = await fetchOutputs(client, ended, out, context)
  const isDone = ended.status === 'succeeded'
  if (!isDone) display.say(`job ${ended.id} ${ended.status}${describeError(ended.error)}`)
  return { answer: { ...ended.answer, files }, lines: files, exitCode: isDone ? EXIT.ok : EXIT.failed }
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

/** Where the outputs are: files, or without a folder their addresses. Those of a job that failed stay on the server. */
async function fetchOutputs(
  client: RunClient,
  job: JobView,
  out: string | null,
  context: RunContext,
): Promise<string[]> {
  if (job.status !== 'succeeded') return []
  return out === null ? job.outputs.map(({ url }) => url) : saveOutputs(client, job.outputs, out, context)
}

export async function saveOutputs(
  client: RunClient,
  outputs: readonly OutputView[],
  out: string,
  { terminal, signal, display }: RunContext,
): Promise<string[]> {
  const folder = path.resolve(terminal.cwd, out)
  const files: string[] = []
  for (const output of outputs) {
    display.say(`fetching ${output.name}`)
    files.push(await saveOutput(client, output, folder, signal))
  }
  return files
}
