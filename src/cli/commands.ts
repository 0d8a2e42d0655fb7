/** The commands, each under the names that select it. Only the one that is asked for is loaded: a start of the service needs no other. */
import type { Command } from 'commander'
import type { Finish, Terminal } from './terminal.ts'

/** Registers a command with the program. */
type AddCommand = (program: Command, terminal: Terminal, finish: Finish) => void

interface CommandModule {
  readonly names: readonly string[]
  load(): Promise<AddCommand>
}

// In the order in which the help lists them.
const COMMANDS: readonly CommandModule[] = [
  { names: ['serve'], load: async () => (await import('./serve/serve.ts')).addServe },
  { names: ['work'], load: async () => (await import('./serve/work.ts')).addWork },
  {
    names: ['start', 'stop', 'status'],
    load: async () => (await import('./serve/background.ts')).addBackground,
  },
  { names: ['run'], load: async () => (await import('./run/run.ts')).addRun },
  { names: ['convert'], load: async () => (await import('./run/convert.ts')).addConvert },
  { names: ['mcp'], load: async () => (await import('./mcp.ts')).addMcp },
  { names: ['trace'], load: async () => (await import('./trace/trace.ts')).addTrace },
  { names: ['weights'], load: async () => (await import('./weights/weights.ts')).addWeights },
  { names: ['import'], load: async () => (await import('./import/import.ts')).addImport },
  { names: ['accounts'], load: async () => (await import('./admin/accounts.ts')).addAccounts },
  { names: ['keys'], load: async () => (await import('./admin/keys.ts')).addKeys },
  { names: ['workers'], load: async () => (await import('./admin/worker-keys.ts')).addWorkerKeys },
  { names: ['credits'], load: async () => (await import('./admin/credits.ts')).addCredits },
  { names: ['deployments'], load: async () => (await import('./admin/deployments.ts')).addDeployments },
  { names: ['jobs'], load: async () => (await import('./admin/jobs.ts')).addJobs },
  { names: ['engines'], load: async () => (await import('./admin/engines.ts')).addEngines },
  { names: ['nodes'], load: async () => (await import('./admin/nodes.ts')).addNodes },
  { names: ['doctor'], load: async () => (await import('./doctor/doctor.ts')).addDoctor },
  { names: ['migrate'], load: async () => (await import('./migrate.ts')).addMigrate },
  { names: ['move'], load: async () => (await import('./move.ts')).addMove },
  { names: ['verify'], load: async () => (await import('./verify.ts')).addVerify },
  { names: ['models'], load: async () => (await import('./models.ts')).addModels },
]

/** The command that is asked for, or all of them if it is none of ours: then they are listed, or the nearest one is suggested. */
export async function loadCommands(asked: string | undefined): Promise<readonly AddCommand[]> {
  const chosen = COMMANDS.filter(({ names }) => asked !== undefined && names.includes(asked))
  return Promise.all((chosen.length === 0 ? COMMANDS : chosen).map(({ load }) => load()))
}
