/** Processor time of other processes, as the system counts it. Linux only; 0 elsewhere. */
import { readdirSync, readFileSync } from 'node:fs'

const TICK_MICROS = 10_000
// Places behind the name of the process in /proc/<pid>/stat.
const [PARENT, USER, SYSTEM, ENDED_USER, ENDED_SYSTEM] = [1, 11, 12, 13, 14]

/** Of one process with all its threads. */
export function readProcessMicros(pid: number): number {
  const fields = readStat(`${pid}`)
  return (at(fields, USER) + at(fields, SYSTEM)) * TICK_MICROS
}

/** Of a process and of its children, those that have ended included: a Postgres server with its connections. */
export function readFamilyMicros(pid: number): number {
  if (process.platform !== 'linux') return 0
  let ticks = 0
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const fields = readStat(name)
    if (Number(name) === pid) ticks += at(fields, ENDED_USER) + at(fields, ENDED_SYSTEM)
    if (Number(name) === pid || at(fields, PARENT) === pid) ticks += at(fields, USER) + at(fields, SYSTEM)
  }
  return ticks * TICK_MICROS
}

function at(fields: readonly string[], index: number): number {
  return Number(fields[index] ?? 0)
}

/** What the system tells of a process behind its name; nothing when it has just ended. */
function readStat(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
  } catch {
    return []
  }
}
