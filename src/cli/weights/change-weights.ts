/** `atelier weights add` and `remove`: an operator puts a file of weights on an engine that the service launched, and takes it away. */
import path from 'node:path'
import type { Command } from 'commander'
import { ENV } from '../../config/env.ts'
import { createDisplay } from '../run/display.ts'
import { askServer } from '../server/ask-server.ts'
import { addServerFlags } from '../server/server-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { sendWeights } from './send-weights.ts'

type Options = Readonly<Record<string, unknown>>

export function addWeightChanges(weights: Command, terminal: Terminal, finish: Finish): void {
  const add = weights
    .command('add')
    .description('put a file of weights on an engine; the same command goes on with what was broken off')
    .argument('<file>', 'such as my-style.safetensors')
    .requiredOption('--folder <name>', 'the folder of the engine, such as checkpoints or loras')
    .option('--name <name>', 'its name there, which may have folders; left out: the name that it has here')
    .option('--engine <id>', 'left out: the first engine that the service launched')
  addOperatorFlags(add).action(async (file: string, options: Options) => finish(await put(file, options, terminal)))
  const remove = weights
    .command('remove')
    .description('remove a file of weights from an engine')
    .argument('<name>', 'as it is listed')
    .requiredOption('--folder <name>', 'the folder that it is in')
    .requiredOption('--engine <id>', 'the engine that has it')
    .option('--force', 'also while it is loaded')
  addOperatorFlags(remove).action(async (name: string, options: Options) => finish(await drop(name, options, terminal)))
}

function addOperatorFlags(command: Command): Command {
  return addServerFlags(command).option(
    '--admin-token <token>',
    `the operator's token, where the service has one (env ${ENV.adminToken}; prefer the variable)`,
  )
}

/** Changing weights is the operator's: that token counts before the one of a user. */
function asOperator(options: Options, { env }: Terminal): Options {
  const token = options['adminToken'] ?? env[ENV.adminToken] ?? options['token']
  return token === undefined ? options : { ...options, token }
}

function put(file: string, options: Options, terminal: Terminal): Promise<number> {
  const stop = new AbortController()
  const stopped = new CommandError('stopped; run the same command again to continue', EXIT.failed)
  const release = terminal.onSignal(() => stop.abort(stopped))
  return askServer(asOperator(options, terminal), terminal, async (client) => {
    const display = createDisplay(terminal)
    try {
      const { engine, name } = await sendWeights(client, {
        file: path.resolve(terminal.cwd, file),
        folder: String(options['folder']),
        name: typeof options['name'] === 'string' ? options['name'] : path.basename(file),
        engine: typeof options['engine'] === 'string' ? options['engine'] : null,
        display,
        signal: stop.signal,
      })
      display.end()
      printLine(terminal.stdout, toPrintable(`${engine}: ${options['folder']}/${name}`))
      return EXIT.ok
    } finally {
      display.end()
      release()
    }
  })
}

const REMOVE_WITHIN_MS = 60_000

function drop(name: string, options: Options, terminal: Terminal): Promise<number> {
  return askServer(asOperator(options, terminal), terminal, async (client) => {
    const query = new URLSearchParams({ engine: String(options['engine']), folder: String(options['folder']), name })
    if (options['force'] === true) query.set('force', 'true')
    await client.call(`/weights?${query}`, { method: 'DELETE', signal: AbortSignal.timeout(REMOVE_WITHIN_MS) })
    return EXIT.ok
  })
}
