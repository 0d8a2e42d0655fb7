import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

/** A Node of this machine that is too old to run the program, if it has one. */
export function findOldNode(): string | null {
  for (const directory of (process.env['PATH'] ?? '').split(':')) {
    const node = path.join(directory, 'node')
    if (!existsSync(node)) continue
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' })
    if (Number(/^v(\d+)/.exec(version)?.[1]) < 24) return node
  }
  return null
}
