/**
 * `atelier run FILE`: converts the workflow if need be, uploads the files it names, submits, shows progress, fetches the outputs. Works against any
 * server of the Jobs API v2; with `--local` the workflow runs in this process instead. Ctrl-C cancels it. Exit 0 when it
 * succeeded, 1 when it did not, 2 for a mistake in the call, 3 when the server cannot be reached.
 */
import type { Command } from 'commander'
import { readDurationMs } from '../../config/readers/read-quantity.ts'
import { RefusedError, UnreachableError } from '../server/client.ts'
import { type RunRequest, StopError } from '../server/request.ts'
import { addServerFlags, readServer } from '../server/server-flags.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { createDisplay, type RunDisplay } from './display.ts'
import { runBatch } from './run-batch.ts'
import { runLocally } from './run-local.ts'
import { runRemotely } from './run-remote.ts'

const DAY_MS = 86_400_000

export function addRun(program: Command, terminal: Terminal, finish: Finish): void {
  const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]
  const command = program
    .command('run')
    .description('run a workflow, on a server or right here, and get its outputs')
    .argument('<workflow.json>', 'a workflow in API format, as the editor saves it, or a picture that carries one')
    .option(
      '-i, --input <name=value>',
      'set an input by its name (prompt, seed …) or as node.field: a value, or @file',
      collect,
    )
    .option('-o, --out <folder>', 'where to write the outputs; without it their addresses are printed')
    .option('--local', 'run it in this process, without a server; input files and outputs are in the current folder')
    .option('--batch <table.csv>', 'one job for each row; the first line names inputs as node.field')
    .option('--timeout <duration>', 'give up and cancel the job after this long, such as 10m')
    .option('--json', 'print the finished job as JSON on standard output')
  addServerFlags(command).action(async (file: string, options: Record<string, unknown>) => {
    finish(await runWorkflow(toRequest(file, options, terminal), terminal))
  })
}

function toRequest(file: string, options: Readonly<Record<string, unknown>>, terminal: Terminal): RunRequest {
  const text = (name: string) => (typeof options[name] === 'string' ? options[name] : null)
  const timeout = text('timeout')
  return {
    file,
    inputs: (options['input'] as string[] | undefined) ?? [],
    out: text('out'),
    server: readServer(options, terminal),
    timeoutMs: timeout === null ? null : readTimeout(timeout),
    json: options['json'] === true,
    batch: text('batch'),
  }
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
    const context = { terminal, display, signal: stop.signal }
    const { server, batch = null } = request
    if (batch !== null) {
      if (server === null) throw new CommandError('--batch needs a server; leave --local out', EXIT.usage)
      return await runBatch({ ...request, batch }, server, context)
    }
    return await (server === null ? runLocally(request, context) : runRemotely(request, server, context))
  } catch (error) {
    return explainRun(error, display)
  } finally {
    display.end()
    if (timer !== null) clearTimeout(timer)
    end()
  }
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
