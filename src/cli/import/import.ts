/** `atelier import`: brings to a service what its user has elsewhere. Nothing is brought twice, so it may be run again at any time. */
import path from 'node:path'
import type { Command } from 'commander'
import { readBytes, TIB } from '../../config/readers/read-quantity.ts'
import { addServerFlags, askServer } from '../server/server-flags.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import { type ImportTarget, importComfy, PARTS } from './import-comfyui.ts'
import { importProxy } from './import-proxy.ts'
import { openSavedWorkflows } from './saved-workflows.ts'
import { openServiceFiles } from './service-files.ts'
import { createImportReport } from './walk-folder.ts'

type Options = Readonly<Record<string, unknown>>

const DEFAULT_PARTS = 'workflows,inputs'
const DEFAULT_MAX_FILE = '4GiB'

export function addImport(program: Command, terminal: Terminal, finish: Finish): void {
  const command = program.command('import').description('bring what you have elsewhere to a service')
  const comfy = command
    .command('comfyui')
    .description('saved workflows and inputs out of the folder of a ComfyUI')
    .argument('<folder>', "ComfyUI's base folder, with input, output and user in it")
    .option('--bring <parts>', `comma separated, of ${PARTS.join(', ')} (default ${DEFAULT_PARTS})`)
    .option('--history <url>', 'also the workflows in the history of the ComfyUI that runs there')
    .option('--user <name>', 'whose workflows, where it was started with --multi-user', 'default')
    .option('--input-dir <folder>', 'its --input-directory')
    .option('--output-dir <folder>', 'its --output-directory')
    .option('--user-dir <folder>', 'its --user-directory')
  addCommonFlags(comfy).action(async (folder: string, options: Options) => {
    const source = toComfySource(folder, options, terminal)
    finish(await bring(options, terminal, (target) => importComfy(source, target)))
  })
  const proxy = command
    .command('proxy')
    .description('workflows and uploads that the official comfy-api-proxy kept')
    .argument('<folder>', 'the folder of its --state-dir')
    .option('--comfyui <folder>', "ComfyUI's base folder, where the uploads are")
  addCommonFlags(proxy).action(async (folder: string, options: Options) => {
    const comfyFolder = pathOf(options, 'comfyui', terminal) ?? null
    const source = { folder: path.resolve(terminal.cwd, folder), comfyFolder, maxFileBytes: maxFileOf(options) }
    finish(await bring(options, terminal, (target) => importProxy(source, target)))
  })
}

function addCommonFlags(command: Command): Command {
  return addServerFlags(
    command
      .option('--dry-run', 'say what would be brought, and store nothing')
      .option('--overwrite', 'let what is brought take names that mean something else here')
      .option('--max-file <size>', `larger files are not brought (default ${DEFAULT_MAX_FILE})`)
      .option('--json', 'print the summary as JSON'),
  )
}

/** Returns the exit code: whether all that was found is there now. */
function bring(options: Options, terminal: Terminal, run: (target: ImportTarget) => Promise<void>): Promise<number> {
  const [isDry, overwrite, isJson] = ['dryRun', 'overwrite', 'json'].map((name) => options[name] === true) as boolean[]
  return askServer(options, terminal, async (client) => {
    const stop = new AbortController()
    const release = terminal.onSignal(() => stop.abort(new CommandError('stopped', EXIT.interrupted)))
    const { signal } = stop
    const report = createImportReport(terminal, { isDry })
    // First of all, because it says in words what is wrong with a key.
    const files = await openServiceFiles(client, { isDry, overwrite, signal })
    const saved = await openSavedWorkflows(client, { isDry, overwrite, signal })
    try {
      await run({ saved, files, report, signal })
    } catch (error) {
      // What was brought is there, and is said.
      report.print({ isJson })
      throw error
    } finally {
      release()
    }
    return report.print({ isJson }) ? EXIT.ok : EXIT.failed
  })
}

function toComfySource(folder: string, options: Options, terminal: Terminal) {
  const parts = String(options['bring'] ?? DEFAULT_PARTS).split(',')
  const unknown = parts.find((part) => !PARTS.includes(part as (typeof PARTS)[number]))
  if (unknown !== undefined)
    throw new CommandError(`--bring takes ${PARTS.join(', ')}, not ${JSON.stringify(unknown)}`, EXIT.usage)
  const elsewhere = Object.fromEntries(
    ['input', 'output', 'user'].flatMap((name) => {
      const given = pathOf(options, `${name}Dir`, terminal)
      return given === undefined ? [] : [[name, given]]
    }),
  )
  return {
    folder: path.resolve(terminal.cwd, folder),
    elsewhere,
    user: String(options['user']),
    parts: parts as (typeof PARTS)[number][],
    historyUrl: typeof options['history'] === 'string' ? options['history'] : null,
    maxFileBytes: maxFileOf(options),
  }
}

function pathOf(options: Options, name: string, { cwd }: Terminal): string | undefined {
  const given = options[name]
  return typeof given === 'string' ? path.resolve(cwd, given) : undefined
}

function maxFileOf(options: Options): number {
  const text = String(options['maxFile'] ?? DEFAULT_MAX_FILE)
  try {
    return readBytes({ min: 1, max: TIB })(text)
  } catch (error) {
    throw new CommandError(`--max-file ${JSON.stringify(text)} ${(error as Error).message}`, EXIT.usage)
  }
}
