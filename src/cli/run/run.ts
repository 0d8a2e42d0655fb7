/**
 * `atelier run FILE` and `atelier run ENDPOINT`. A file that exists is a workflow, as is everything that cannot be the name of an endpoint;
 * see run-endpoint.ts for the others. Of a workflow: converts the workflow if need be, uploads the files it names, submits, shows progress, fetches the outputs. Works against any
 * server of the Jobs API v2; with `--local` the workflow runs in this process instead. Ctrl-C cancels it. Exit 0 when it
 * succeeded, 1 when it did not, 2 for a mistake in the call, 3 when the server cannot be reached, 124 when the time was over, 130 after
 * Ctrl-C.
 */
import { statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { closestWord } from '../../../lib/text/closest-word.ts'
import { type RunContext, type RunRequest, readTimeout, StopError, stoppable } from '../server/request.ts'
import { addServerFlags, explainServer, readServer } from '../server/server-flags.ts'
import { CommandError, EXIT, type Finish, type Terminal, toPrintable } from '../terminal.ts'
import { runBatch } from './run-batch.ts'
import { type EndpointRequest, REFERENCE, runEndpoint } from './run-endpoint.ts'
import { runLocally } from './run-local.ts'
import { runRemotely } from './run-remote.ts'

export function addRun(program: Command, terminal: Terminal, finish: Finish): void {
  const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]
  const command = program
    .command('run')
    .description('run a workflow, on a server or right here, or an endpoint, and get its outputs')
    .argument(
      '<workflow.json|endpoint>',
      'a file that exists: a workflow in API format, as the editor saves it, or a picture that carries one; else the name of an endpoint, whose inputs are flags: --prompt "a cat" --photo cat.png',
    )
    .option(
      '-i, --input <name=value>',
      'set an input by its name (prompt, seed …) or as node.field: a value, or @file',
      collect,
    )
    .option('-o, --out <folder>', 'where to write the outputs; without it their addresses are printed')
    .option('--local', 'run it in this process, without a server; input files and outputs are in the current folder')
    .option(
      '--batch <table.csv>',
      'one job for each row; the first line names inputs: as node.field, or those of the endpoint',
    )
    .option('--version <version>', 'of an endpoint: a number, latest or an alias (also as endpoint@version)')
    .option('--no-wait', 'of an endpoint: print the id of the job and do not wait for its end')
    .option('--timeout <duration>', 'give up and cancel the job after this long, such as 10m')
    .option('--json', 'print the finished job, or what was refused, as the API says it')
    // The flags of an endpoint are known only to the server.
    .allowUnknownOption()
    .allowExcessArguments()
  addServerFlags(command).action(async (file: string, options: Record<string, unknown>) => {
    const request = toRequest(file, options, terminal)
    const rest = command.args.slice(1)
    if (isEndpoint(file, terminal)) {
      const isCalled = { rest, version: textOf(options, 'version'), wait: options['wait'] !== false }
      finish(await runWith({ ...request, ...isCalled }, terminal, callEndpoint))
      return
    }
    refuseForWorkflow(rest, options, command)
    finish(await runWorkflow(request, terminal))
  })
}

/** Whoever has a file of that name means the file. */
function isEndpoint(file: string, { cwd }: Terminal): boolean {
  return REFERENCE.test(file) && statSync(path.resolve(cwd, file), { throwIfNoEntry: false })?.isFile() !== true
}

function refuseForWorkflow(rest: readonly string[], options: Options, command: Command): void {
  const [unknown] = rest
  if (unknown !== undefined) {
    const known = command.options.flatMap(({ long }) => long ?? [])
    const near = closestWord(unknown, known)
    const hint = near === null ? '' : ` (Did you mean ${near}?)`
    const said = unknown.startsWith('-') ? `unknown option '${unknown}'${hint}` : `too many arguments: ${unknown}`
    throw new CommandError(toPrintable(said), EXIT.usage)
  }
  if (options['version'] !== undefined)
    throw new CommandError('--version is of endpoints; a workflow has none', EXIT.usage)
  if (options['wait'] === false)
    throw new CommandError('--no-wait is of endpoints; a workflow is waited for', EXIT.usage)
}

type Options = Readonly<Record<string, unknown>>

function textOf(options: Options, name: string): string | null {
  return typeof options[name] === 'string' ? options[name] : null
}

function toRequest(file: string, options: Options, terminal: Terminal): RunRequest {
  return {
    file,
    inputs: (options['input'] as string[] | undefined) ?? [],
    out: textOf(options, 'out'),
    server: readServer(options, terminal),
    timeoutMs: readTimeout(options),
    json: options['json'] === true,
    batch: textOf(options, 'batch'),
  }
}

type RunIt<Request> = (request: Request, context: RunContext) => Promise<number>

/** The whole run; returns the exit code. */
async function runWith<Request extends RunRequest>(
  request: Request,
  terminal: Terminal,
  run: RunIt<Request>,
): Promise<number> {
  try {
    return await stoppable(terminal, request.timeoutMs, (context) => beforeSubmit(context, run(request, context)))
  } catch (error) {
    return explainServer(error, { json: request.json, terminal })
  }
}

/** What is stopped as such is stopped before there is a job: of a job's own end the run says more. */
function beforeSubmit(context: RunContext, ended: Promise<number>): Promise<number> {
  return ended.catch((error: unknown) => {
    if (!(error instanceof StopError) || error !== context.signal.reason) throw error
    throw new StopError(`${error.message} before the job was submitted`, error.exitCode)
  })
}

const runGraph: RunIt<RunRequest> = async (request, context) => {
  const { server, batch = null } = request
  if (batch !== null) {
    if (server === null) throw new CommandError('--batch needs a server; leave --local out', EXIT.usage)
    return runBatch({ ...request, batch }, server, context)
  }
  return server === null ? runLocally(request, context) : runRemotely(request, server, context)
}

export function runWorkflow(request: RunRequest, terminal: Terminal): Promise<number> {
  return runWith(request, terminal, runGraph)
}

const callEndpoint: RunIt<EndpointRequest> = async (request, context) => {
  const { server, file } = request
  if (server !== null) return runEndpoint(request, server, context)
  throw new CommandError(
    `there is no file ${file}; an endpoint of that name needs a server: leave --local out`,
    EXIT.usage,
  )
}
