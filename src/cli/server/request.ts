/** What `run` was asked to do, and the workflow with its inputs filled in. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { RunDisplay } from '../run/display.ts'
import { readWorkflowFile } from '../run/workflow-file.ts'
import { readInput, type WorkflowInput, withInputs } from '../run/workflow-inputs.ts'
import type { Terminal } from '../terminal.ts'
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
export class StopError extends Error {}

export interface RunContext {
  readonly terminal: Terminal
  readonly display: RunDisplay
  readonly signal: AbortSignal
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
  const inputs = request.inputs.map((input) => readInput(input, workflow, conversion?.parameters))
  const values: [WorkflowInput, JsonValue][] = []
  for (const input of inputs) {
    const { value } = input
    values.push([input, value.kind === 'value' ? value.value : await toFile(value.path)])
  }
  return withInputs(workflow, values)
}

const isSaved = (content: JsonObject) => Array.isArray(content['nodes'])
