/** `atelier models lint|list`: judges folders of model files, and shows which models a service would have. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { BUILT_IN_CATALOG, inspectCatalog } from '../compose/inspect-catalog.ts'
import { addSettingFlags, loadFromCommandLine } from './setting-flags.ts'
import { EXIT, type Finish, printLine, type Terminal } from './terminal.ts'

export function addModels(program: Command, terminal: Terminal, finish: Finish): void {
  const models = program.command('models').description('look at the catalogue of models')
  const lint = models
    .command('lint [folder...]')
    .description('say what is wrong with the model files in these folders, or in those of the settings')
  addSettingFlags(lint, ['catalogs']).action(async (folders: string[], options: Record<string, unknown>) => {
    finish(await runLint(toFolders(folders, options, terminal), terminal))
  })
  const list = models.command('list').description('list the models of the settings, one per line')
  addSettingFlags(list, ['catalogs']).action(async (options: Record<string, unknown>) => {
    finish(await runList(toFolders([], options, terminal), terminal))
  })
}

function toFolders(named: readonly string[], options: Record<string, unknown>, terminal: Terminal): readonly string[] {
  if (named.length > 0) return named.map((folder) => resolve(terminal.cwd, folder))
  return loadFromCommandLine(options, terminal).config.router.catalogs
}

async function runLint(folders: readonly string[], terminal: Terminal): Promise<number> {
  const { models, problems } = await inspectCatalog([BUILT_IN_CATALOG, ...folders])
  for (const { file, problem } of problems) printLine(terminal.stderr, `${file}: ${problem}`)
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
  printLine(terminal.stdout, problems.length === 0 ? `${models.length} models, nothing wrong` : count)
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}

async function runList(folders: readonly string[], terminal: Terminal): Promise<number> {
  const { models, problems } = await inspectCatalog([BUILT_IN_CATALOG, ...folders])
  for (const { id, state, returns, successor } of models.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const rest = successor === null ? state : `${state}, use ${successor}`
    printLine(terminal.stdout, `${id.padEnd(44)} ${returns.padEnd(7)} ${rest}`)
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}
