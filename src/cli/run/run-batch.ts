/** Runs a workflow once for each row of a table, as one batch on a server: submits, waits (Ctrl-C cancels all of it), fetches the archive. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type ClientOptions, RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { exitOfStop, prepareWorkflow, type RunContext, type RunRequest } from '../server/request.ts'
import { CommandError, EXIT, printLine, toPrintable } from '../terminal.ts'
import { upload } from './run-remote.ts'
import { saveOutput } from './save-outputs.ts'
import { readTable } from './table.ts'
import { readInput } from './workflow-inputs.ts'

const POLL_MS = 1000
const CANCEL_WITHIN_MS = 15_000

/** Returns the exit code: whether every job succeeded. */
export async function runBatch(
  request: RunRequest & { readonly batch: string },
  server: ClientOptions,
  context: RunContext,
): Promise<number> {
  const { signal, terminal } = context
  const client = new RunClient(server)
  const workflow = await prepareWorkflow(request, terminal, {
    toFile: (file) => upload(client, file, context),
    convert: (content) => client.convert(content, signal),
  })
  const rows = await readRows(client, request.batch, workflow, context)
  const answer = await client.post('/jobs/batch', { workflow, rows }, signal)
  return finishBatch(client, answer, { ...request, count: rows.length }, context)
}

/** Waits for the end of a batch that was submitted, and fetches what it made; returns the exit code. */
export async function finishBatch(
  client: RunClient,
  answer: JsonValue,
  request: Pick<RunRequest, 'out' | 'json'> & { readonly count: number },
  context: RunContext,
): Promise<number> {
  const { display, signal, terminal } = context
  const submitted = readBatch(answer)
  const { count } = request
  display.say(`batch ${submitted.id}: ${count} jobs`)
  const ended = await followOrCancel(client, submitted, context)
  display.end()
  const { succeeded = 0 } = ended.counts
  const output = { id: ended.id, name: `batch-${ended.id}.zip`, url: ended.outputs, sizeBytes: null }
  const folder = request.out === null ? null : path.resolve(terminal.cwd, request.out)
  const isFetched = folder !== null && succeeded > 0 && !signal.aborted
  const result = isFetched ? await saveOutput(client, output, folder, signal) : ended.self
  const told = { ...ended.answer, files: isFetched ? [result] : [] }
  printLine(terminal.stdout, request.json ? stringifyLosslessJson(told) : toPrintable(result))
  if (succeeded < count) display.say(`${count - succeeded} of ${count} jobs did not succeed`)
  if (signal.aborted) return exitOfStop(signal)
  return succeeded === count ? EXIT.ok : EXIT.failed
}

async function readRows(
  client: RunClient,
  file: string,
  workflow: JsonObject,
  context: RunContext,
): Promise<JsonObject[]> {
  const { names, rows } = readTable(readFile(path.resolve(context.terminal.cwd, file), file), file)
  const files = new Map<string, ReturnType<typeof upload>>()
  const changes: JsonObject[] = []
  for (const row of rows) {
    const change: JsonObject = {}
    for (const [index, name] of names.entries()) {
      const { nodeId, field, value } = readInput(`${name}=${row[index]}`, workflow)
      if (value.kind === 'file' && !files.has(value.path)) files.set(value.path, upload(client, value.path, context))
      const given = value.kind === 'value' ? value.value : await files.get(value.path)
      if (given !== undefined) change[`${nodeId}.${field}`] = given
    }
    changes.push(change)
  }
  return changes
}

export function readFile(file: string, given: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`cannot read ${given}: ${(error as Error).message}`, EXIT.usage)
  }
}

interface BatchView {
  readonly id: string
  readonly self: string
  readonly cancel: string
  readonly outputs: string
  readonly isDone: boolean
  readonly progress: number
  readonly counts: Readonly<Record<string, number>>
  /** As the server sent it. */
  readonly answer: JsonObject
}

function readBatch(answer: JsonValue): BatchView {
  const { id, is_done: isDone, progress, counts, urls } = toFields(answer)
  const { self, cancel, outputs } = toFields(urls)
  return {
    ...{ id: String(id), self: String(self), cancel: String(cancel), outputs: String(outputs) },
    ...{ isDone: isDone === true, progress: Number(progress), counts: toFields(counts) as Record<string, number> },
    answer: isJsonObject(answer) ? answer : {},
  }
}

async function followOrCancel(client: RunClient, batch: BatchView, context: RunContext): Promise<BatchView> {
  const { display, signal } = context
  try {
    return await follow(client, batch, context)
  } catch (error) {
    if (!signal.aborted) throw error
    display.say(`${(signal.reason as Error).message}; canceling batch ${batch.id} (once more to leave at once)`)
    const patience = AbortSignal.timeout(CANCEL_WITHIN_MS)
    const canceled = readBatch(await client.post(batch.cancel, {}, patience))
    return follow(client, canceled, { ...context, signal: patience }).catch(() => canceled)
  }
}

async function follow(client: RunClient, first: BatchView, { display, signal }: RunContext): Promise<BatchView> {
  for (let batch = first; ; batch = readBatch(await client.read(batch.self, signal))) {
    const named = Object.entries(batch.counts).filter(([, count]) => count > 0)
    const message = named.map(([status, count]) => `${count} ${status}`).join(', ')
    display.progress({ value: batch.progress, message })
    if (batch.isDone) return batch
    await sleep(POLL_MS, signal)
    signal.throwIfAborted()
  }
}
