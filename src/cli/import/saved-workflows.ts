/**
 * The saved workflows of the account: its user files below `workflows/`, where ComfyUI's editor and other clients of the Legacy v1 API
 * have them. A name that is taken by another workflow is never written over unless that is wished.
 */
import { RefusedError, type RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import type { PlaceOptions } from './service-files.ts'
import type { ImportReport, Placed } from './walk-folder.ts'
import { readWorkflowText, shapeOf } from './workflow-text.ts'

export interface SavedWorkflows {
  /** Names below `workflows/` that begin with `start`. */
  list(start: string): readonly string[]
  place(name: string, bytes: Uint8Array): Promise<Placed>
}

const FOLDER = 'workflows'
const TAKEN = 'has the name of another workflow here; --overwrite puts it in its place'
// What refusals mean whose answers have no message.
const REASONS: Readonly<Record<number, string>> = {
  403: 'has a name that cannot be kept',
  404: 'has no place here: this service keeps no user files',
  413: 'finds no room: at most 8 MiB a file, 2000 files and 128 MiB together are kept',
}

export async function openSavedWorkflows(
  client: RunClient,
  { isDry, overwrite, signal }: PlaceOptions,
): Promise<SavedWorkflows> {
  const sizes = await listSizes(client, signal)
  const linkOf = (name: string) => `${client.baseUrl}/api/userdata/${encodeURIComponent(`${FOLDER}/${name}`)}`

  async function isSame(name: string, bytes: Uint8Array): Promise<boolean> {
    if (sizes.get(name) !== bytes.byteLength) return false
    const response = await client.call(linkOf(name), { signal })
    return Buffer.from(await response.arrayBuffer()).equals(bytes)
  }

  return {
    list: (start) => [...sizes.keys()].filter((name) => name.startsWith(start)),
    async place(name, bytes) {
      if (sizes.has(name)) {
        if (await isSame(name, bytes)) return { outcome: 'already there' }
        if (!overwrite) return { outcome: 'refused', reason: TAKEN }
      }
      try {
        const link = `${linkOf(name)}?overwrite=${overwrite}`
        if (!isDry) await client.call(link, { method: 'POST', body: new Blob([Buffer.from(bytes)]), signal })
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error
        if (error.status === 409) return { outcome: 'refused', reason: TAKEN }
        const reason = REASONS[error.status]
        if (reason === undefined) throw error
        return { outcome: 'refused', reason }
      }
      sizes.set(name, bytes.byteLength)
      return { outcome: 'brought' }
    },
  }
}

async function listSizes(client: RunClient, signal: AbortSignal): Promise<Map<string, number>> {
  try {
    const listed = await client.read(`${client.baseUrl}/api/userdata?dir=${FOLDER}&recurse=true&full_info=true`, signal)
    const files = (Array.isArray(listed) ? listed : []).map(toFields)
    return new Map(files.map(({ path, size }) => [String(path), Number(size)]))
  } catch (error) {
    // ComfyUI's answer for a folder in which there is nothing.
    if (error instanceof RefusedError && error.status === 404) return new Map()
    throw error
  }
}

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
