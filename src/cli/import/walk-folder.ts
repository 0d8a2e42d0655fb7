/** Walks a folder that is imported, and keeps the report of what became of each file. */

import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { printLine, type Terminal, toPrintable } from '../terminal.ts'

export interface FoundFile {
  readonly file: string
  /** Relative to the folder, with `/` between its parts. */
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
}

/** Something that cannot be brought, and why, as the end of a sentence. */
interface Obstacle {
  readonly name: string
  readonly reason: string
}

interface FolderContent {
  readonly files: readonly FoundFile[]
  readonly obstacles: readonly Obstacle[]
}

const MAX_FILES = 20_000
const MAX_DEPTH = 16

export async function walkFolder(folder: string): Promise<FolderContent> {
  const files: FoundFile[] = []
  const obstacles: Obstacle[] = []
  const refuse = (name: string, reason: string) => void obstacles.push({ name, reason })

  async function visit(within: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) return refuse(within, `is deeper than ${MAX_DEPTH} folders`)
    for (const entry of await list(within)) {
      const name = within === '' ? entry.name : `${within}/${entry.name}`
      if (entry.name.startsWith('.')) continue
      if (files.length >= MAX_FILES) return
      if (entry.isSymbolicLink()) refuse(name, 'is a symbolic link, and these are not followed')
      else if (entry.isDirectory()) await visit(name, depth + 1)
      else if (entry.isFile()) await add(name)
      else refuse(name, 'is neither a file nor a folder')
    }
  }

  async function list(within: string): Promise<Dirent[]> {
    try {
      const entries = await readdir(path.join(folder, within), { withFileTypes: true })
      return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    } catch (error) {
      refuse(within, toReadFailure(error))
      return []
    }
  }

  async function add(name: string): Promise<void> {
    const file = path.join(folder, name)
    try {
      const { size, mtime } = await lstat(file)
      files.push({ file, name, sizeBytes: size, modifiedAt: mtime })
    } catch (error) {
      refuse(name, toReadFailure(error))
    }
  }

  await visit('', 0)
  if (files.length >= MAX_FILES) refuse('', `has more than ${MAX_FILES} files; the others were not looked at`)
  return { files, obstacles }
}

export function toReadFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ENOENT' ? 'is gone' : `cannot be read: ${code ?? message}`
}

type ImportedKind = 'workflows' | 'inputs' | 'outputs'

/** What became of one file or workflow that was to be imported. */
export type Placed =
  | { readonly outcome: 'brought' | 'already there' }
  | { readonly outcome: 'refused'; readonly reason: string }

export interface ImportReport {
  note(kind: ImportedKind, name: string, placed: Placed): void
  refuse(obstacle: Obstacle): void
  /** Counts a file that holds nothing to import, under this remark. */
  passOver(remark: string): void
  /** False when something could not be brought. */
  print(options: { readonly isJson: boolean }): boolean
}

const MAX_SHOWN = 200

export function createImportReport(terminal: Terminal, { isDry }: { readonly isDry: boolean }): ImportReport {
  const counts = new Map<ImportedKind, { brought: number; there: number }>()
  const remarks = new Map<string, number>()
  const obstacles: Obstacle[] = []
  const word = isDry ? 'would be brought' : 'brought'

  function printText(): void {
    const say = (text: string) => printLine(terminal.stdout, toPrintable(text))
    for (const [kind, { brought, there }] of counts) say(`${kind}: ${brought} ${word}, ${there} already there`)
    for (const [remark, count] of remarks) say(`${count} ${remark}`)
    if (counts.size + remarks.size === 0 && obstacles.length === 0) say('nothing was found to bring')
    if (obstacles.length > 0) say(`not brought: ${obstacles.length}`)
    for (const { name, reason } of obstacles.slice(0, MAX_SHOWN)) say(`  ${name} ${reason}`)
    if (obstacles.length > MAX_SHOWN) say(`  and ${obstacles.length - MAX_SHOWN} more; --json lists all`)
  }

  return {
    note(kind, name, placed) {
      const count = counts.get(kind) ?? { brought: 0, there: 0 }
      counts.set(kind, count)
      if (placed.outcome === 'refused') obstacles.push({ name, reason: placed.reason })
      else if (placed.outcome === 'brought') count.brought++
      else count.there++
      if (isDry && placed.outcome === 'brought') printLine(terminal.stderr, toPrintable(`would bring ${kind} ${name}`))
    },
    refuse: (obstacle) => void obstacles.push(obstacle),
    passOver: (remark) => void remarks.set(remark, (remarks.get(remark) ?? 0) + 1),
    print({ isJson }) {
      if (!isJson) printText()
      else {
        const kinds = [...counts].map(([kind, { brought, there }]) => [kind, { brought, already_there: there }])
        const passed = Object.fromEntries(remarks)
        const summary = { dry_run: isDry, ...Object.fromEntries(kinds), passed_over: passed, not_brought: obstacles }
        printLine(terminal.stdout, JSON.stringify(summary, null, 2))
      }
      return obstacles.length === 0
    },
  }
}
