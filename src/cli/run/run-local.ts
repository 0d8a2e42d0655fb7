/** Runs a workflow in this process, without a service. Outputs are written as they arrive, so a run that fails later keeps them. */
import { access, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { type Engine, GraphError, openEngine } from '../../../engine/index.ts'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { type LocalDraft, type LocalOutcome, readLocalRun } from '../../compose/local-run.ts'
import { refusedHere } from '../server/client.ts'
import { describeError, type JobErrorView } from '../server/job-answers.ts'
import { exitOfStop, prepareWorkflow, type RunContext, type RunRequest } from '../server/request.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { convertHere } from './convert.ts'
import type { RunDisplay } from './display.ts'
import { saveNewFile } from './save-outputs.ts'

/** Named as in the answers of the API. */
interface LocalOutput {
  readonly node_id: string
  readonly name: string
  readonly size_bytes: number
}

interface LocalRun {
  status: 'succeeded' | 'failed' | 'canceled'
  error: JobErrorView | null
  readonly outputs: LocalOutput[]
  readonly files: string[]
}

/** The whole run; returns the exit code. */
export async function runLocally(request: RunRequest, context: RunContext): Promise<number> {
  const { display, signal, terminal } = context
  const inputs = new Map<string, string>()
  await using engine = await openConfigured(terminal)
  const workflow = await prepareWorkflow(request, terminal, {
    async toFile(given) {
      const file = path.resolve(terminal.cwd, given)
      await access(file).catch((error: Error) => {
        throw new CommandError(`cannot read ${given}: ${error.message}`, EXIT.usage)
      })
      inputs.set(given, file)
      return given
    },
    convert: (content) => convertHere(content, engine.catalog()),
  })
  const sayStop = () =>
    display.say(`${(signal.reason as Error).message}; canceling the run (once more to leave at once)`)
  // The time may have been over before the engine was there.
  if (signal.aborted) sayStop()
  else signal.addEventListener('abort', sayStop, { once: true })
  try {
    const run = await follow(
      engine,
      { workflow, inputs, folder: path.resolve(terminal.cwd, request.out ?? '.') },
      context,
    )
    display.status(run.status, null)
    display.end()
    report(run, request.json, terminal)
    if (signal.aborted && run.status === 'canceled') return exitOfStop(signal)
    return run.status === 'succeeded' ? EXIT.ok : EXIT.failed
  } catch (error) {
    throw error instanceof GraphError ? refusedHere(error.message, error.nodeErrors) : error
  } finally {
    signal.removeEventListener('abort', sayStop)
  }
}

/** With the settings that a service in this folder would have. */
async function openConfigured(terminal: Terminal): Promise<Engine> {
  const { threads, memoryBytes, maxImagePixels, nodeFolders, nodeTimeoutMs } = loadFromCommandLine({}, terminal).config
    .engine
  const customNodes = { folders: nodeFolders, timeoutMs: nodeTimeoutMs }
  try {
    return await openEngine({ threads, memoryLimitBytes: memoryBytes, maxImagePixels, nodeTimeoutMs, customNodes })
  } catch (error) {
    if (error instanceof Error && error.name === 'NodeModuleError') throw new CommandError(error.message, EXIT.usage)
    throw error
  }
}

interface LocalWork {
  readonly workflow: JsonObject
  readonly inputs: ReadonlyMap<string, string>
  /** Of the outputs. */
  readonly folder: string
}

async function follow(engine: Engine, { workflow, inputs, folder }: LocalWork, context: RunContext): Promise<LocalRun> {
  const { display, signal, terminal } = context
  const run: LocalRun = { status: 'canceled', error: null, outputs: [], files: [] }
  const graph = readGraph(workflow)
  let isStarted = false
  for await (const step of readLocalRun(engine.run(graph, { signal, inputs, inputFolder: terminal.cwd }), graph)) {
    if (!isStarted) display.status('running', null)
    isStarted = true
    if (step.kind === 'progress') display.progress(step.progress)
    else if (step.kind === 'output') await keep(step.output, { folder, run, display })
    else end(run, step.outcome)
  }
  return run
}

interface Keeping {
  readonly folder: string
  readonly run: LocalRun
  readonly display: RunDisplay
}

async function keep({ name, nodeId, read }: LocalDraft, { folder, run, display }: Keeping): Promise<void> {
  await mkdir(folder, { recursive: true })
  const { file, sizeBytes } = await saveNewFile(read(), { folder, name })
  display.output(path.basename(file))
  run.outputs.push({ node_id: nodeId, name, size_bytes: sizeBytes })
  run.files.push(file)
}

function end(run: LocalRun, outcome: LocalOutcome): void {
  if (outcome.kind === 'failed') run.error = outcome.error
  run.status = outcome.kind === 'interrupted' ? 'canceled' : outcome.kind
}

function toErrorAnswer({ code, message, nodeId, classType }: JobErrorView) {
  return { code, message, node_id: nodeId, class_type: classType }
}

function report({ status, error, outputs, files }: LocalRun, json: boolean, terminal: Terminal): void {
  if (json) printLine(terminal.stdout, JSON.stringify({ status, outputs, error: error && toErrorAnswer(error), files }))
  else for (const file of files) printLine(terminal.stdout, toPrintable(file))
  if (status === 'canceled') printLine(terminal.stderr, 'the run was canceled')
  if (status === 'failed') printLine(terminal.stderr, toPrintable(`the run failed${describeError(error)}`))
}
