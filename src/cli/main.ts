/**
 * The command line: registers the commands and turns how they end into exit codes. 0 is success, 1 a failure, 2 a mistake in
 * the arguments or the configuration, 3 a server that could not be reached, 124 a time that was over, 130 Ctrl-C or SIGTERM.
 */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import {
  CommandError,
  EXIT,
  exitOfStore,
  type Finish,
  printLine,
  readVersion,
  type Terminal,
  toPrintable,
} from './terminal.ts'

export async function main(terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok
  try {
    const program = await createProgram(terminal, (code) => {
      exitCode = code
    })
    await program.parseAsync([...terminal.args], { from: 'user' })
    return exitCode
  } catch (error) {
    return explain(error, terminal)
  }
}

async function createProgram(terminal: Terminal, finish: Finish): Promise<Command> {
  const program = new Command('atelier')
    .description('Runs generative workflows as a durable service, and from the command line.')
    .version(readVersion(), '-V, --version', 'print the version')
    .showSuggestionAfterError()
    // A flag belongs to the command that it stands behind.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
      // Errors are one line; commander puts its suggestion on a second one.
      outputError: (text, write) =>
        write(
          `${text
            .trim()
            .replace(/^error: /, 'atelier: ')
            .replaceAll('\n', ' ')}\n`,
        ),
    })
    .exitOverride()
  for (const add of await loadCommands(terminal.args[0])) add(program, terminal, finish)
  return program
}

/** Prints why a command failed; the answer is its exit code. */
export function explain(error: unknown, terminal: Terminal): number {
  if (error instanceof CommanderError) {
    // Help and version end this way too, with code 0. Commander has already printed its output.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  }
  if (error instanceof ConfigError) {
    printLine(terminal.stderr, `atelier: ${error.message}`)
    return EXIT.usage
  }
  if (error instanceof CommandError) {
    printLine(terminal.stderr, `atelier: ${error.message}`)
    return error.exitCode
  }
  // Written for the operator: locked, of a newer version, a wrong password.
  if (error instanceof Error && error.name === 'StoreOpenError') {
    printLine(terminal.stderr, `atelier: ${error.message.replaceAll(/\s+/g, ' ')}`)
    return exitOfStore(error)
  }
  if (error instanceof Error && isOfStorage(error)) {
    printLine(
      terminal.stderr,
      `atelier: ${toPrintable(error.message.replaceAll(/\s+/g, ' '))}; atelier doctor says more`,
    )
    return EXIT.failed
  }
  // A defect: a bug report needs the stack.
  printLine(terminal.stderr, `atelier: unexpected failure\n${error instanceof Error ? error.stack : String(error)}`)
  return EXIT.failed
}

/** What the storage of the bytes or the database answers, or that it does not, is no defect of ours. */
function isOfStorage(error: Error): boolean {
  if (error.name === 'S3Error') return true
  const refusal = error.name === 'ServiceError' && 'refusal' in error ? error.refusal : null
  return refusal === 'storage_full' || refusal === 'store_unavailable'
}

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
  { names: ['jobs'], load: async () => (await import('./jobs/jobs.ts')).addJobs },
  { names: ['schedules'], load: async () => (await import('./jobs/schedules.ts')).addSchedules },
  { names: ['assets'], load: async () => (await import('./jobs/assets.ts')).addAssets },
  { names: ['endpoints'], load: async () => (await import('./endpoints/endpoints.ts')).addEndpoints },
  { names: ['env'], load: async () => (await import('./env/env.ts')).addEnv },
  { names: ['convert'], load: async () => (await import('./run/convert.ts')).addConvert },
  { names: ['mcp'], load: async () => (await import('./mcp.ts')).addMcp },
  { names: ['trace'], load: async () => (await import('./trace.ts')).addTrace },
  { names: ['weights'], load: async () => (await import('./weights/weights.ts')).addWeights },
  { names: ['provider-keys'], load: async () => (await import('./server/provider-keys.ts')).addProviderKeys },
  { names: ['import'], load: async () => (await import('./import/import.ts')).addImport },
  { names: ['accounts'], load: async () => (await import('./admin/accounts.ts')).addAccounts },
  { names: ['keys'], load: async () => (await import('./admin/keys.ts')).addKeys },
  { names: ['workers'], load: async () => (await import('./admin/keys.ts')).addWorkerKeys },
  { names: ['credits'], load: async () => (await import('./admin/credits.ts')).addCredits },
  { names: ['deployments'], load: async () => (await import('./admin/deployments.ts')).addDeployments },
  { names: ['queue'], load: async () => (await import('./admin/queue.ts')).addQueue },
  { names: ['engines'], load: async () => (await import('./admin/running.ts')).addEngines },
  { names: ['nodes'], load: async () => (await import('./admin/running.ts')).addNodes },
  { names: ['doctor'], load: async () => (await import('./doctor/doctor.ts')).addDoctor },
  { names: ['migrate'], load: async () => (await import('./upkeep.ts')).addMigrate },
  { names: ['move'], load: async () => (await import('./move.ts')).addMove },
  { names: ['verify'], load: async () => (await import('./upkeep.ts')).addVerify },
  { names: ['completion'], load: loadCompletion },
  { names: ['models'], load: async () => (await import('./models.ts')).addModels },
]

/** It reads the other commands to say what can be typed. */
async function loadCompletion(): Promise<AddCommand> {
  const { addCompletion } = await import('./completion/completion.ts')
  return (program, terminal, finish) =>
    addCompletion(program, terminal, finish, (words) => createProgram({ ...terminal, args: words }, () => {}))
}

/** The command that is asked for, or all of them if it is none of ours: then they are listed, or the nearest one is suggested. */
async function loadCommands(asked: string | undefined): Promise<readonly AddCommand[]> {
  const chosen = COMMANDS.filter(({ names }) => asked !== undefined && names.includes(asked))
  return Promise.all((chosen.length === 0 ? COMMANDS : chosen).map(({ load }) => load()))
}
