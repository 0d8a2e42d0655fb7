/** `atelier weights`: which engine of a service has which files of weights; and for operators, putting and removing them. */
import type { Command } from 'commander'
import { toTable } from '../admin/admin-command.ts'
import { type RunClient, UnreachableError } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { addServerFlags, askServer } from '../server/server-flags.ts'
import { EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { addWeightChanges } from './change-weights.ts'
import { addFetch } from './fetch-weights.ts'

type Options = Readonly<Record<string, unknown>>

/** As far as it is printed; spec/jobs-v2.openapi.json describes it. */
interface WeightWire {
  readonly engine: string
  readonly folder: string | null
  readonly name: string
  readonly size_bytes: number | null
  readonly hash: string | null
  readonly loaded: boolean
}

const LIST_WITHIN_MS = 60_000

export function addWeights(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program
    .command('weights')
    .description('list the files of weights that the engines of a service have')
    .option('--engine <id>', 'only those of this engine')
    .option('--folder <name>', 'only those of this folder, such as checkpoints')
    .option('--name <file>', 'only files of this name')
    .option('--json', 'print the list as JSON')
    // `add` and `remove` have flags of the same names.
    .enablePositionalOptions()
  addServerFlags(command).action(async (options: Options) => finish(await list(options, terminal)))
  addWeightChanges(command, terminal, finish)
  addFetch(command, terminal, finish)
}

function list(options: Options, terminal: Terminal): Promise<number> {
  return askServer(options, terminal, async (client) => {
    const weights = await readAll(client, options)
    printLine(terminal.stdout, options['json'] === true ? JSON.stringify({ weights }, null, 2) : show(weights))
    return EXIT.ok
  })
}

async function readAll(client: RunClient, options: Options): Promise<WeightWire[]> {
  const signal = AbortSignal.timeout(LIST_WITHIN_MS)
  const filters = ['engine', 'folder', 'name'].flatMap((name): [string, string][] =>
    typeof options[name] === 'string' ? [[name, options[name]]] : [],
  )
  const weights: WeightWire[] = []
  let cursor: string | null = null
  do {
    const query = new URLSearchParams(filters)
    if (cursor !== null) query.set('cursor', cursor)
    const { weights: page, next_cursor: next } = toFields(await client.read(`/weights?${query}`, signal))
    if (!Array.isArray(page))
      throw new UnreachableError('the server does not list weights: it is older than this command')
    weights.push(...(page as WeightWire[]))
    cursor = typeof next === 'string' ? next : null
  } while (cursor !== null)
  return weights
}

function show(weights: readonly WeightWire[]): string {
  const rows = weights.map(({ engine, folder, name, size_bytes, hash, loaded }) => [
    ...[engine, folder, name, size_bytes === null ? null : toSize(size_bytes), hash, loaded ? 'yes' : null],
  ])
  const headings = ['engine', 'folder', 'file', 'size', 'hash', 'loaded']
  return toPrintable(toTable(headings, rows, { empty: 'no engine says that it has weights' }))
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

function toSize(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${UNITS[power]}`
}
