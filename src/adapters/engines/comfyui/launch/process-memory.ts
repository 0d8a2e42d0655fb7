/** What a process and everything it started occupy, where the system tells (Linux); null elsewhere. */
import { readFileSync } from 'node:fs'

const PAGE_BYTES = 4_096
const MAX_PROCESSES = 256

export function readMemoryBytes(pid: number): number | null {
  let bytes = 0
  let isTold = false
  const open = [pid]
  for (let seen = 0; seen < MAX_PROCESSES; seen++) {
    const next = open.pop()
    if (next === undefined) break
    const pages = read(`/proc/${next}/statm`)?.split(' ')[1]
    if (pages === undefined) continue
    isTold = true
    bytes += Number(pages) * PAGE_BYTES
    const children = read(`/proc/${next}/task/${next}/children`)?.trim() ?? ''
    if (children !== '') open.push(...children.split(/\s+/).map(Number))
  }
  return isTold ? bytes : null
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
