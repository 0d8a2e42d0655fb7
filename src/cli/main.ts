/**
 * The command line: registers the commands and turns how they end into exit codes. 0 is success, 1 a failure, 2 a mistake in
 * the arguments or the configuration, 3 a server that could not be reached.
 */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import { addAccounts } from './admin/accounts.ts'
import { addCredits } from './admin/credits.ts'
import { addDeployments } from './admin/deployments.ts'
import { addJobs } from './admin/jobs.ts'
import { addKeys } from './admin/keys.ts'
import { addNodes } from './admin/nodes.ts'
import { addWorkerKeys } from './admin/worker-keys.ts'
import { addDoctor } from './doctor/doctor.ts'
import { addImport } from './import/import.ts'
import { addMcp } from './mcp.ts'
import { addMigrate } from './migrate.ts'
import { addModels } from './models.ts'
import { addMove } from './move.ts'
import { addConvert } from './run/convert.ts'
import { addRun } from './run/run.ts'
import { addBackground } from './serve/background.ts'
import { addServe } from './serve/serve.ts'
import { addWork } from './serve/work.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal } from './terminal.ts'
import { addTrace } from './trace/trace.ts'
import { addVerify } from './verify.ts'
import { readVersion } from './version.ts'
import { addWeights } from './weights/weights.ts'

export async function main(terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok
  const program = createProgram(terminal, (code) => {
    exitCode = code
  })
  try {
    await program.parseAsync([...terminal.args], { from: 'user' })
    return exitCode
  } catch (error) {
    return explain(error, terminal)
  }
}

function createProgram(terminal: Terminal, finish: Finish): Command {
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
  const commands = [
    addServe,
    addWork,
    addBackground,
    addRun,
    addConvert,
    addMcp,
    addTrace,
    addWeights,
    addImport,
    addAccounts,
    addKeys,
    addWorkerKeys,
    addCredits,
    addDeployments,
    addJobs,
    addNodes,
    addDoctor,
    addMigrate,
    addMove,
    addVerify,
    addModels,
  ]
  for (const add of commands) add(program, terminal, finish)
  return program
}

function explain(error: unknown, terminal: Terminal): number {
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
  // A defect: a bug report needs the stack.
  printLine(terminal.stderr, `atelier: unexpected failure\n${error instanceof Error ? error.stack : String(error)}`)
  return EXIT.failed
}
