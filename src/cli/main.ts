/**
 * The command line: registers the commands and turns how they end into exit codes. 0 is success, 1 a failure, 2 a mistake in
 * the arguments or the configuration, 3 a server that could not be reached.
 */
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/config-error.ts'
import { loadCommands } from './commands.ts'
import { CommandError, EXIT, exitOfStore, type Finish, printLine, type Terminal } from './terminal.ts'
import { readVersion } from './version.ts'

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
  // Written for the operator: locked, of a newer version, a wrong password.
  if (error instanceof Error && error.name === 'StoreOpenError') {
    printLine(terminal.stderr, `atelier: ${error.message.replaceAll(/\s+/g, ' ')}`)
    return exitOfStore(error)
  }
  // A defect: a bug report needs the stack.
  printLine(terminal.stderr, `atelier: unexpected failure\n${error instanceof Error ? error.stack : String(error)}`)
  return EXIT.failed
}
