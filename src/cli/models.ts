/** `atelier models lint|list`: checks folders of model files, and lists the models that a service with these settings would have. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type InspectedCatalog, inspectCatalog } from '../compose/router/open-models.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from './terminal.ts'

export function addModels(program: Command, terminal: Terminal, finish: Finish): void {
  const models = program.command('models').description('look at the catalogue of models')
  const lint = models
    .command('lint [folder...]')
    .description('say what is wrong with the model files in these folders, or in those of the settings')
  addSettingFlags(lint, ['catalogs', 'nodes']).action(async (folders: string[], options: Record<string, unknown>) => {
    finish(showProblems(await inspect(folders, options, terminal), terminal))
  })
  const list = models.command('list').description('list the models of the settings, one per line')
  addSettingFlags(list, ['catalogs', 'nodes']).action(async (options: Record<string, unknown>) => {
    finish(showList(await inspect([], options, terminal), terminal))
  })
}

async function inspect(
  named: readonly string[],
  options: Record<string, unknown>,
  terminal: Terminal,
): Promise<InspectedCatalog> {
  const { router, engine } = loadFromCommandLine(options, terminal).config
  const folders = named.length > 0 ? named.map((folder) => resolve(terminal.cwd, folder)) : router.catalogs
  return inspectCatalog({ folders, engine }).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'NodeModuleError') throw new CommandError(error.message, EXIT.usage)
    throw error
  })
}

function showProblems({ models, problems }: InspectedCatalog, terminal: Terminal): number {
  for (const { file, problem } of problems) printLine(terminal.stderr, toPrintable(`${file}: ${problem}`))
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
  printLine(terminal.stdout, problems.length === 0 ? `${models.length} models, nothing wrong` : count)
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}

function showList({ models, problems }: InspectedCatalog, terminal: Terminal): number {
  for (const { id, state, returns, successor } of models.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const rest = successor === null ? state : `${state}, use ${successor}`
    printLine(terminal.stdout, `${id.padEnd(44)} ${returns.padEnd(7)} ${rest}`)
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}
