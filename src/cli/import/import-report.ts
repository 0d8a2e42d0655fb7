/** Records what happened to everything that an import found, and prints it at the end. */
import { printLine, type Terminal, toPrintable } from '../terminal.ts'
import type { Obstacle } from './walk-folder.ts'

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
