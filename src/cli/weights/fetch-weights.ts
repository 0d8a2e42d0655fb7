/**
 * `atelier weights fetch`: a file of weights by its address, into a folder of models on this machine, or to an engine of a service. What
 * was broken off goes on; the file appears when all of it is there and checked, and never replaces another.
 */
import { linkSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { hashFile } from '../../../lib/files/file-tree.ts'
import { fetchWeights } from '../../compose/fetch-weights.ts'
import { createDisplay } from '../run/display.ts'
import { textOf } from '../server/server-commands.ts'
import { askServer } from '../server/server-flags.ts'
import { loadFromCommandLine } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, readVersion, type Terminal, toPrintable } from '../terminal.ts'
import { addOperatorFlags, asOperator, sendWeights } from './change-weights.ts'

type Options = Readonly<Record<string, unknown>>

export function addFetch(weights: Command, terminal: Terminal, finish: Finish): void {
  const fetch = weights
    .command('fetch')
    .description('fetch a file of weights by its https address; the same command goes on with what was broken off')
    .argument('<address>', 'such as https://models.example/style.safetensors')
    .requiredOption('--folder <name>', 'the folder of models, such as checkpoints or loras')
    .option('--name <name>', 'its name there; left out: the last part of the address')
    .option('--sha256 <hash>', 'what it must have; left out: what it had at the first fetch from this address')
    .option('--into <folder>', 'the folder `models` of a ComfyUI on this machine; left out: the service is sent it')
    .option('--engine <id>', 'of the service; left out: the first engine that it launched')
    .option(
      '--headers <file.json>',
      'headers by the name of a host, such as {"huggingface.co": {"Authorization": "Bearer …"}}',
    )
    .option('--origin <origin>', 'such as http://models.lan:8000: may be plain http, and lie in a private network')
    .addHelpText(
      'after',
      '\nExample:\n  atelier weights fetch https://models.example/style.safetensors --folder loras --into ~/ComfyUI/models',
    )
  addOperatorFlags(fetch).action(async (address: string, options: Options) =>
    finish(await fetchTo(address, options, terminal)),
  )
}

async function fetchTo(address: string, options: Options, terminal: Terminal): Promise<number> {
  const { cwd } = terminal
  const url = URL.parse(address)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new CommandError('the address must be https, without user and password', EXIT.usage)
  const folder = String(options['folder'])
  const name = textOf(options, 'name') ?? decodeURIComponent(url.pathname.split('/').at(-1) ?? '')
  const sha256 =
    textOf(options, 'sha256')
      ?.toLowerCase()
      .replace(/^sha256:/, '') ?? null
  if (sha256 !== null && !/^[0-9a-f]{64}$/.test(sha256))
    throw new CommandError('--sha256 must have 64 hex digits', EXIT.usage)
  const into = textOf(options, 'into')
  const models = into === null ? null : path.resolve(cwd, into)
  const stop = new AbortController()
  const stopped = new CommandError('stopped; run the same command again to continue', EXIT.interrupted)
  const release = terminal.onSignal(() => stop.abort(stopped))
  const display = createDisplay(terminal)
  try {
    await using fetched = await fetchWeights({
      ...{ address, folder, name, sha256, signal: stop.signal },
      directory: models === null ? cacheOf(terminal) : path.join(models, '.atelier', 'fetched'),
      origins: textOf(options, 'origin') === null ? [] : [String(options['origin']).replace(/\/$/, '')],
      headers: readHeaders(textOf(options, 'headers'), cwd),
      rules: loadFromCommandLine({}, terminal).config.fleet.weights,
      version: readVersion(),
      say: (line) => display.say(toPrintable(line)),
      onProgress: (done, total) =>
        display.progress({ value: total === null || total === 0 ? 0 : done / total, message: name }),
    }).catch((error: unknown) => {
      stop.signal.throwIfAborted()
      // `freeze: model loras/a.safetensors: what is wrong; what to do`
      if (error instanceof Error && error.name !== 'AbortError' && 'phase' in error)
        throw new CommandError(toPrintable(error.message.replace(/^\w+: (?:model )?/, '')), EXIT.failed)
      throw error
    })
    const { path: file } = fetched
    if (models !== null) return await put(file, { models, folder, name, sha256: fetched.sha256, terminal })
    return await askServer(asOperator(options, terminal), terminal, async (client) => {
      const engine = textOf(options, 'engine')
      const sent = await sendWeights(client, { file, folder, name, engine, display, signal: stop.signal })
      printLine(terminal.stdout, toPrintable(`${sent.engine}: ${folder}/${name} (sha256 ${fetched.sha256})`))
      return EXIT.ok
    })
  } finally {
    display.end()
    release()
  }
}

interface Putting {
  readonly models: string
  readonly folder: string
  readonly name: string
  readonly sha256: string
  readonly terminal: Terminal
}

/** Under its name in one step, unless another file has it. */
async function put(file: string, { models, folder, name, sha256, terminal }: Putting): Promise<number> {
  const to = path.join(models, folder, name)
  mkdirSync(path.dirname(to), { recursive: true })
  try {
    linkSync(file, to)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    if ((await hashFile(to)) !== sha256)
      throw new CommandError(toPrintable(`${to} is another file; choose a --name, or remove it`), EXIT.failed)
  }
  printLine(terminal.stdout, toPrintable(`${to} (sha256 ${sha256})`))
  return EXIT.ok
}

function cacheOf({ env }: Terminal): string {
  return path.join(env['XDG_CACHE_HOME'] ?? path.join(env['HOME'] ?? homedir(), '.cache'), 'atelier', 'weights')
}

function readHeaders(file: string | null, cwd: string): ReadonlyMap<string, Readonly<Record<string, string>>> {
  if (file === null) return new Map()
  try {
    const content: unknown = JSON.parse(readFileSync(path.resolve(cwd, file), 'utf8'))
    const hosts = Object.entries(content as Record<string, Record<string, string>>)
    if (hosts.every(([, headers]) => Object.values(headers).every((value) => typeof value === 'string')))
      return new Map(hosts)
  } catch {
    // What it holds may be a secret, and is not told.
  }
  throw new CommandError(
    toPrintable(`${file} must hold, for each host, an object with the headers that it is sent`),
    EXIT.usage,
  )
}
