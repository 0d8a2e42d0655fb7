/**
 * Workflows that something else carries: pictures, an engine's history, jobs of another service. There may be thousands of one
 * workflow with other seeds and prompts, so one of each shape is saved, the newest. The shape stands in its name: a second import
 * finds it there, also when a newer one of that shape has come meanwhile.
 */
import type { ImportReport } from './import-report.ts'
import type { SavedWorkflows } from './saved-workflows.ts'
import { readWorkflowText, shapeOf } from './workflow-text.ts'

export interface Carrier {
  readonly name: string
  readonly madeAt: Date
  /** JSON texts; none: it carries no workflow. Throws an Error whose message ends the sentence "this file …". */
  readTexts(): readonly string[]
}

interface CarriedOptions {
  /** Where they are kept among the saved workflows. */
  readonly folder: string
  /** Says of how many carriers it is true that they carry none. */
  readonly remark: string
  readonly saved: SavedWorkflows
  readonly report: ImportReport
}

const SHAPE_IN_NAME = / \(([0-9a-f]{8})\)\.json$/

export async function bringCarried(carriers: readonly Carrier[], options: CarriedOptions): Promise<void> {
  const { folder, remark, saved, report } = options
  const before = new Set(saved.list(`${folder}/`).flatMap((name) => SHAPE_IN_NAME.exec(name)?.[1] ?? []))
  const seen = new Set<string>()
  for (const carrier of carriers.toSorted((a, b) => b.madeAt.getTime() - a.madeAt.getTime())) {
    const found = look(carrier)
    if (found === null) report.passOver(remark)
    else if ('reason' in found) report.refuse({ name: carrier.name, reason: found.reason })
    else if (!seen.has(found.shape)) {
      seen.add(found.shape)
      const name = `${folder}/${toPlainName(carrier.name)} (${found.shape}).json`
      const isThere = before.has(found.shape)
      const placed = isThere ? { outcome: 'already there' as const } : await saved.place(name, Buffer.from(found.text))
      report.note('workflows', name, placed)
    }
  }
}

type Found = { readonly text: string; readonly shape: string } | { readonly reason: string }

/** The editor's own form before the plain graph: it can be opened as it looked. null: nothing is carried. */
function look(carrier: Carrier): Found | null {
  try {
    const texts = carrier.readTexts()
    const read = texts.flatMap((text) => tryWorkflow(text) ?? [])
    const best = read.find(({ workflow }) => workflow.isSaved) ?? read[0]
    if (best !== undefined) return { text: best.text, shape: shapeOf(best.workflow) }
    return texts.length === 0 ? null : { reason: 'carries something that is no workflow' }
  } catch (error) {
    return { reason: (error as Error).message }
  }
}

function tryWorkflow(text: string) {
  try {
    return { text, workflow: readWorkflowText(text) }
  } catch {
    return null
  }
}

/** Without its ending, and without what would make folders of it. */
function toPlainName(name: string): string {
  return name.replace(/\.[^./]*$/, '').replaceAll('/', ' - ')
}
