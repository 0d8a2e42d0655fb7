/** What `run` was asked to do, and the workflow with its inputs filled in. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, type Terminal } from '../terminal.ts'
import type { ClientOptions } from './client.ts'
import type { RunDisplay } from './display.ts'
import { readInput, readWorkflow, type WorkflowInput, withInputs } from './workflow-inputs.ts'

export interface RunRequest {
  /** The workflow file. */
  readonly file: string
  /** `node.field=value` or `node.field=@file`. */
  readonly inputs: readonly string[]
  /** The folder for outputs. null: a remote run only prints their addresses, a local run writes into the current folder. */
  readonly out: string | null
  /** null: the graph runs in this process, without a service. */
  readonly server: ClientOptions | null
  readonly timeoutMs: number | null
  readonly json: boolean
}

/** The reason of an abort that the user asked for: a signal, or the timeout. */
export class StopError extends Error {}

export interface RunContext {
  readonly terminal: Terminal
  readonly display: RunDisplay
  readonly signal: AbortSignal
}

/** The workflow with its inputs set. `toFile` returns the value that replaces an `@file` in the workflow. */
export async function prepareWorkflow(
  request: RunRequest,
  cwd: string,
  toFile: (path: string) => Promise<JsonValue>,
): Promise<JsonObject> {
  const text = await readFile(path.resolve(cwd, request.file), 'utf8').catch((error: Error) => {
    throw new CommandError(`cannot read ${request.file}: ${error.message}`, EXIT.usage)
  })
  const workflow = readWorkflow(text, request.file)
  const inputs = request.inputs.map((input) => readInput(input, workflow))
  const values: [WorkflowInput, JsonValue][] = []
  for (const input of inputs) {
    const { value } = input
    values.push([input, value.kind === 'value' ? value.value : await toFile(value.path)])
  }
  return withInputs(workflow, values)
}
