/** The processor time that a Postgres server has spent, as the system tells it. */
import { readdirSync, readFileSync } from 'node:fs'

const TICK_MICROS = 10_000

/** The processor time of the server and of all its processes; 0 where the system does not tell. */
export function readServerMicros(pid: number): number {
  if (process.platform !== 'linux') return 0
  let ticks = 0
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const fields = readProcess(name)
    if (Number(name) === pid || Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * TICK_MICROS
}

/** What the system tells of a process behind its name; nothing when it has just ended. */
function readProcess(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
  } catch {
    return []
  }
}
