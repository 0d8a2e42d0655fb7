/**
 * Runs as a process of its own between us and an engine: it starts the engine in its process group and ends the whole group
 * when told to, when the engine ends, and above all when we are gone, however we went. So no engine ever outlives the
 * service and holds on to a graphics card.
 */
import { spawn } from 'node:child_process'

export type KeeperNews =
  | { readonly type: 'started'; readonly pid: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'ended'; readonly code: number | null; readonly signal: string | null }

/** How long processes may take to end by themselves. */
const killGraceMs = Number(process.argv[2])
const [program = '', ...args] = process.argv.slice(3)

/** Whoever is told may be gone already: that is no failure, and what comes after happens all the same. */
function tell(news: KeeperNews, andThen: () => void = () => {}): void {
  if (process.connected) process.send?.(news, andThen)
  else andThen()
}

/** The group is ours: we are its first member. */
function signalGroup(signal: NodeJS.Signals): void {
  try {
    process.kill(-process.pid, signal)
  } catch {
    // Nobody is left.
  }
}

let isEnding = false
function endGroup(): void {
  if (isEnding) return
  isEnding = true
  signalGroup('SIGTERM')
  setTimeout(() => signalGroup('SIGKILL'), killGraceMs)
}

// Sent to the group, by us or by an operator; the last word is the SIGKILL above.
process.on('SIGTERM', endGroup)
process.on('SIGINT', endGroup)
process.on('SIGHUP', endGroup)
process.on('disconnect', endGroup)
// Whatever becomes of us, nothing is left behind.
process.on('uncaughtException', endGroup)
process.on('exit', () => signalGroup('SIGKILL'))
// Gone before we could listen.
if (!process.connected) signalGroup('SIGKILL')

const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
child.on('spawn', () => tell({ type: 'started', pid: child.pid ?? 0 }))
child.on('error', (error) => tell({ type: 'failed', message: error.message }, () => signalGroup('SIGKILL')))
// Whatever it started and left behind goes as well, and so do we.
child.on('exit', (code, signal) => tell({ type: 'ended', code, signal }, () => signalGroup('SIGKILL')))
