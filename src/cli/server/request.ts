/** What `run` was asked to do, what ends it early, and the workflow with its inputs filled in. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { createDisplay, type RunDisplay } from '../run/display.ts'
import { readWorkflowFile } from '../run/workflow-file.ts'
import { readInput, type WorkflowInput, withInputs } from '../run/workflow-inputs.ts'
import { CommandError, EXIT, type Terminal } from '../terminal.ts'
import type { ClientOptions } from './client.ts'
import { type Convert, printFindings } from './job-answers.ts'

export interface RunRequest {
  /** The workflow file. */
  readonly file: string
  /** `name=value` or `node.field=value`, with `@file` for a value that is a file. */
  readonly inputs: readonly string[]
  /** The folder for outputs. null: a remote run only prints their addresses, a local run writes into the current folder. */
  readonly out: string | null
  /** null: the graph runs in this process, without a service. */
  readonly server: ClientOptions | null
  readonly timeoutMs: number | null
  readonly json: boolean
  /** A table: one job for each row. null: one job. */
  readonly batch?: string | null
}

/** The reason of an abort that the user asked for: a signal, or the timeout. */
export class StopError extends CommandError {}

export interface RunContext {
  readonly terminal: Terminal
  readonly display: RunDisplay
  /** Its reason is a StopError. */
  readonly signal: AbortSignal
}

/** Does what Ctrl-C and a time-out end early. A second Ctrl-C ends the process at once. */
export async function stoppable<Done>(
  terminal: Terminal,
  timeoutMs: number | null,
  work: (context: RunContext) => Promise<Done>,
): Promise<Done> {
  const display = createDisplay(terminal)
  const stop = new AbortController()
  const release = terminal.onSignal((signal) => {
    if (stop.signal.aborted) terminal.exitNow(EXIT.interrupted)
    stop.abort(new StopError(`stopped by ${signal}`, EXIT.interrupted))
  })
  const end = () => stop.abort(new StopError('the time is over', EXIT.timedOut))
  const timer = timeoutMs === null ? null : setTimeout(end, timeoutMs)
  try {
    return await work({ terminal, display, signal: stop.signal })
  } finally {
    display.end()
    if (timer !== null) clearTimeout(timer)
    release()
  }
}

/** The exit code of what was stopped. */
export function exitOfStop({ reason }: AbortSignal): number {
  return reason instanceof StopError ? reason.exitCode : EXIT.failed
}

const MAX_TIMEOUT_MS = 30 * 86_400_000

/** `--timeout` of a command; null: none was given. */
export function readTimeout({ timeout }: Readonly<Record<string, unknown>>): number | null {
  if (typeof timeout !== 'string') return null
  try {
    return readDurationMs({ min: 1, max: MAX_TIMEOUT_MS })(timeout)
  } catch (error) {
    throw new CommandError(`--timeout ${JSON.stringify(timeout)} ${(error as Error).message}`, EXIT.usage)
  }
}

interface Preparing {
  /** Returns the value that replaces an `@file` in the workflow. */
  readonly toFile: (path: string) => Promise<JsonValue>
  readonly convert: Convert
}

/** The workflow in API format, with its inputs set. */
export async function prepareWorkflow(
  request: RunRequest,
  terminal: Terminal,
  { toFile, convert }: Preparing,
): Promise<JsonObject> {
  const content = readWorkflowFile(request.file, terminal.cwd)
  const isNamed = (input: string) => /^[^.=]+=/.test(input)
  // A graph in API format needs no conversion, unless its inputs are set by names that only the conversion knows.
  const needsConversion = isSaved(content) || request.inputs.some(isNamed)
  const conversion = needsConversion ? await convert(content) : null
  if (conversion !== null) printFindings(conversion, terminal)
  const workflow = conversion?.workflow ?? content
  return fillIn(workflow, request.inputs, toFile, conversion?.parameters)
}

/** The workflow with inputs of a command line; a file goes to the server first. */
export async function fillIn(
  workflow: JsonObject,
  texts: readonly string[],
  toFile: Preparing['toFile'],
  parameters?: readonly JsonObject[],
): Promise<JsonObject> {
  const inputs = texts.map((input) => readInput(input, workflow, parameters))
  const values: [WorkflowInput, JsonValue][] = []
  for (const input of inputs) {
    const { value } = input
    values.push([input, value.kind === 'value' ? value.value : await toFile(value.path)])
  }
  return withInputs(workflow, values)
}

const isSaved = (content: JsonObject) => Array.isArray(content['nodes'])
