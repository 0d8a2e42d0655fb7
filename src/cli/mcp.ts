/**
 * `atelier mcp`: gives an agent the tools of a running service over standard input and output, by the Model Context Protocol. Ends when
 * the agent closes its side. Standard output belongs to the protocol, so whatever there is to say goes to standard error.
 */
import path from 'node:path'
import type { Command } from 'commander'
import { addServerFlags, readServer } from './server/server-flags.ts'
import { CommandError, EXIT, type Finish, printLine, readVersion, type Terminal, toPrintable } from './terminal.ts'

export function addMcp(program: Command, terminal: Terminal, finish: Finish): void {
  const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]
  const command = program
    .command('mcp')
    .description('give an agent the tools of a running service, over standard input and output (MCP)')
    .option('--files <folder>', 'the agent may upload files of this folder by their path; may be repeated', collect)
  addServerFlags(command).action(async (options: Record<string, unknown>) => {
    finish(await serve(options, terminal))
  })
}

async function serve(options: Record<string, unknown>, terminal: Terminal): Promise<number> {
  const server = readServer(options, terminal)
  if (server === null) throw new CommandError('an agent needs a running service', EXIT.usage)
  const stop = new AbortController()
  const release = terminal.onSignal(() => stop.abort())
  // The service's own code is not needed by any other command of this kind.
  const { serveAgentOverStdio } = await import('../listeners/agent-stdio.ts')
  try {
    const isServed = await serveAgentOverStdio({
      server,
      version: readVersion(),
      folders: ((options['files'] as string[] | undefined) ?? []).map((folder) => path.resolve(terminal.cwd, folder)),
      input: terminal.stdin,
      output: terminal.stdout,
      signal: stop.signal,
      warn: (message) => printLine(terminal.stderr, toPrintable(`atelier: ${message}`)),
    })
    if (!isServed) throw new CommandError('this program was built without the tools for agents', EXIT.usage)
    return EXIT.ok
  } finally {
    release()
  }
}
