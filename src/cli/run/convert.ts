/**
 * `atelier convert FILE`: prints the graph in API format of a workflow as the editor saves it, or of a file that carries one. The
 * classes are those of a server's engines, or with `--local` those of the engine that is built in.
 */

import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Command } from 'commander'
import { type NodeCatalog, readCatalog } from '../../../engine/index.ts'
import { type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import { convertLocally } from '../../compose/local-run.ts'
import { RunClient, refusedHere } from '../server/client.ts'
import { type Conversion, printFindings } from '../server/job-answers.ts'
import { addServerFlags, explainServer, readServer } from '../server/server-flags.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal } from '../terminal.ts'
import { readWorkflowFile } from './workflow-file.ts'

export function addConvert(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('convert')
    .description('turn a workflow as the editor saves it into the API format')
    .argument('<file>', 'a saved workflow, or a PNG, WebP, FLAC, MP4 or safetensors file that carries one')
    .option('-o, --out <file>', 'where to write the graph; without it, standard output')
    .option('--local', 'convert for the built-in engine, without a server')
    .option('--json', 'print everything as JSON: workflow, warnings, parameters, missing')
  addServerFlags(command).action(async (file: string, options: Record<string, unknown>) => {
    finish(await convert(file, options, terminal))
  })
}

async function convert(file: string, options: Readonly<Record<string, unknown>>, terminal: Terminal): Promise<number> {
  const content = readWorkflowFile(file, terminal.cwd)
  const server = readServer(options, terminal)
  try {
    const conversion =
      server === null
        ? await convertHere(content, await readBuiltIn(terminal))
        : await new RunClient(server).convert(content, AbortSignal.timeout(CONVERT_WITHIN_MS))
    await print(conversion, options, terminal)
    return EXIT.ok
  } catch (error) {
    return explainServer(error, { json: options['json'] === true, terminal })
  }
}

const CONVERT_WITHIN_MS = 60_000

/** The classes of the built-in engine, with the nodes that a service in this folder would have. */
async function readBuiltIn(terminal: Terminal): Promise<NodeCatalog> {
  const { nodeFolders, nodeTimeoutMs } = loadFromCommandLine({}, terminal).config.engine
  try {
    return await readCatalog({ customNodes: { folders: nodeFolders, timeoutMs: nodeTimeoutMs } })
  } catch (error) {
    if (error instanceof Error && error.name === 'NodeModuleError') throw new CommandError(error.message, EXIT.usage)
    throw error
  }
}

async function print(conversion: Conversion, options: Readonly<Record<string, unknown>>, terminal: Terminal) {
  if (options['json'] === true) printLine(terminal.stdout, toText({ ...conversion } as unknown as JsonValue))
  else printFindings(conversion, terminal)
  const text = toText(conversion.workflow)
  const { out } = options
  if (typeof out === 'string') await writeFile(path.resolve(terminal.cwd, out), `${text}\n`)
  else if (options['json'] !== true) printLine(terminal.stdout, text)
}

/** Indented; numbers keep their digits. */
function toText(value: JsonValue): string {
  const raw = JSON as unknown as { rawJSON(text: string): unknown }
  const keep = (_key: string, each: unknown) => {
    if (typeof each === 'bigint') return raw.rawJSON(String(each))
    return each instanceof NumberText ? raw.rawJSON(each.text) : each
  }
  return JSON.stringify(value, keep, 2)
}

export async function convertHere(content: JsonObject, catalog: NodeCatalog): Promise<Conversion> {
  const result = await convertLocally(content, catalog)
  if (result.kind === 'refused') {
    throw refusedHere(result.message, result.nodeErrors)
  }
  const { workflow, warnings, parameters, missing } = result.file
  return {
    workflow,
    warnings: warnings.map(({ nodeId, input, message }) => ({ node_id: nodeId, input, message })),
    parameters: parameters.map(({ nodeId, ...rest }) => ({ ...rest, node_id: nodeId }) as JsonObject),
    missing: {
      classes: missing.classes.map(({ classType, nodeIds }) => ({ class_type: classType, node_ids: [...nodeIds] })),
      weights: missing.weights.map(({ name, nodeId, input }) => ({ name, node_id: nodeId, input })),
    } satisfies Record<string, JsonValue>,
  }
}
