/**
 * Runs as a process of its own between the service and a program: it starts the program in its process group and ends the whole
 * group when told to, when the program ends, and above all when the service is gone for whatever reason. So no engine outlives the
 * service and keeps a graphics card occupied, and no build goes on writing.
 */
import { spawn } from 'node:child_process'

export type KeeperNews =
  | { readonly type: 'started'; readonly pid: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'ended'; readonly code: number | null; readonly signal: string | null }

/** How long processes may take to end by themselves. */
const killGraceMs = Number(process.argv[2])
const [program = '', ...args] = process.argv.slice(3)

/** The service may be gone already: that is no failure, and `andThen` is called all the same. */
function tell(news: KeeperNews, andThen: () => void = () => {}): void {
  if (process.connected) process.send?.(news, andThen)
  else andThen()
}

/** This process leads its group, so the group has its id. */
function signalGroup(signal: NodeJS.Signals): void {
  try {
    process.kill(-process.pid, signal)
  } catch {
    // No process is left in the group.
  }
}

let isEnding = false
function endGroup(): void {
  if (isEnding) return
  isEnding = true
  signalGroup('SIGTERM')
  setTimeout(() => signalGroup('SIGKILL'), killGraceMs)
}

// These may be sent to the whole group, by this process or by an operator; what ignores them gets the SIGKILL above.
process.on('SIGTERM', endGroup)
process.on('SIGINT', endGroup)
process.on('SIGHUP', endGroup)
process.on('disconnect', endGroup)
// However this process ends, the group ends with it.
process.on('uncaughtException', endGroup)
process.on('exit', () => signalGroup('SIGKILL'))
// The service was gone before `disconnect` could be heard.
if (!process.connected) signalGroup('SIGKILL')

const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
child.on('spawn', () => tell({ type: 'started', pid: child.pid ?? 0 }))
child.on('error', (error) => tell({ type: 'failed', message: error.message }, () => signalGroup('SIGKILL')))
// Ends whatever it started and left behind, and this process as well.
child.on('exit', (code, signal) => tell({ type: 'ended', code, signal }, () => signalGroup('SIGKILL')))
