/** Runs a command in this process: the same code as the real command, without the cost of a new process. */
import { Readable, Writable } from 'node:stream'
import { main } from '../../../src/cli/main.ts'
import type { Terminal } from '../../../src/cli/terminal.ts'
import type { CommandResult } from './atelier.ts'

export async function runInProcess(
  args: readonly string[],
  { env = {}, cwd }: { readonly env?: Readonly<Record<string, string>>; readonly cwd: string },
): Promise<CommandResult> {
  const [stdout, stderr] = [new Captured(), new Captured()]
  const terminal: Terminal = {
    program: '',
    args,
    env,
    cwd,
    stdin: Readable.from([]),
    stdout: stdout as unknown as Terminal['stdout'],
    stderr: stderr as unknown as Terminal['stderr'],
    onSignal: () => () => {},
    onHangup: () => () => {},
    exitNow(code) {
      throw new Error(`the command ended the process with ${code}`)
    },
  }
  const code = await main(terminal)
  return { code, stdout: stdout.text, stderr: stderr.text }
}

class Captured extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}
