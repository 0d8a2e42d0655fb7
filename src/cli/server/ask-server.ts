/** Requests of commands to a server: every failure has the same wording and the same exit code. */
import { CommandError, EXIT, printLine, type Terminal } from '../terminal.ts'
import { createRunClient, RefusedError, type RunClient, UnreachableError } from './client.ts'
import { readServer } from './server-flags.ts'

export async function askServer(
  options: Readonly<Record<string, unknown>>,
  terminal: Terminal,
  ask: (client: RunClient) => Promise<number>,
): Promise<number> {
  const server = readServer(options, terminal)
  if (server === null) throw new CommandError('this needs a server; name one with --base-url', EXIT.usage)
  try {
    return await ask(createRunClient(server))
  } catch (error) {
    if (error instanceof RefusedError) {
      for (const line of error.lines) printLine(terminal.stderr, line)
      return EXIT.failed
    }
    if (!(error instanceof UnreachableError)) throw error
    throw new CommandError(`${error.message}; is the server running? (--base-url)`, EXIT.unreachable)
  }
}
