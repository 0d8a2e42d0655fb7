/**
 * Brings what a ComfyUI keeps on its disk: saved workflows and inputs, and where it is wished its outputs, or the workflows that these
 * carry; and out of a running server the workflows of its history, which lives in its memory alone.
 */

import { lstat, readFile } from 'node:fs/promises'
import path from 'node:path'
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { readCarriedBy } from '../run/workflow-file.ts'
import { CommandError, EXIT } from '../terminal.ts'
import { bringCarried, type Carrier, type SavedWorkflows } from './saved-workflows.ts'
import type { FileFolder, ServiceFiles } from './service-files.ts'
import { type FoundFile, type ImportReport, toReadFailure, walkFolder } from './walk-folder.ts'
import { readWorkflowText } from './workflow-text.ts'

export const PARTS = ['workflows', 'inputs', 'outputs', 'carried'] as const
type Part = (typeof PARTS)[number]

interface ComfySource {
  /** ComfyUI's base folder. */
  readonly folder: string
  /** Where it was started with other folders: absolute paths. */
  readonly elsewhere: Readonly<Partial<Record<'input' | 'output' | 'user', string>>>
  readonly user: string
  readonly parts: readonly Part[]
  /** The address of a running server whose history is wanted too. */
  readonly historyUrl: string | null
  readonly maxFileBytes: number
}

export interface ImportTarget {
  readonly saved: SavedWorkflows
  readonly files: ServiceFiles
  readonly report: ImportReport
  readonly signal: AbortSignal
}

const MAX_WORKFLOW_BYTES = 8 * 1024 * 1024

export async function importComfy(source: ComfySource, target: ImportTarget): Promise<void> {
  const { saved, report, signal } = target
  const folders = await findFolders(source, report)
  if (folders.size === 0 && source.historyUrl === null)
    throw new CommandError(`${source.folder} has none of ComfyUI's folders: input, output, user`, EXIT.usage)
  const wants = (part: Part) => source.parts.includes(part)
  if (wants('workflows')) await bringWorkflows(folders.get('user'), source.user, target)
  if (wants('inputs')) await bringFiles('input', folders.get('input'), source, target)
  if (wants('outputs')) await bringFiles('output', folders.get('output'), source, target)
  if (wants('carried')) await bringCarriedByOutputs(folders.get('output'), target)
  if (source.historyUrl !== null) {
    const carriers = await readHistory(source.historyUrl, signal)
    await bringCarried(carriers, { folder: 'from history', remark: 'runs of the history have no graph', saved, report })
  }
}

type Folders = ReadonlyMap<string, string>

/** Those that are there. One that leads elsewhere must be named by the caller. */
async function findFolders({ folder, elsewhere }: ComfySource, report: ImportReport): Promise<Folders> {
  const found = new Map<string, string>()
  for (const name of ['input', 'output', 'user'] as const) {
    const given = elsewhere[name]
    const stat = await lstat(given ?? path.join(folder, name)).catch(() => null)
    if (given !== undefined && stat === null) throw new CommandError(`there is no folder ${given}`, EXIT.usage)
    if (given !== undefined) found.set(name, given)
    else if (stat?.isDirectory()) found.set(name, path.join(folder, name))
    else if (stat?.isSymbolicLink())
      report.refuse({ name, reason: `is a symbolic link; name the folder itself with --${name}-dir` })
  }
  return found
}

async function bringWorkflows(users: string | undefined, user: string, target: ImportTarget): Promise<void> {
  const { saved, report } = target
  const folder = users === undefined ? null : path.join(users, user, 'workflows')
  for (const { file, name, sizeBytes } of await filesOf(folder, `user/${user}/workflows`, report)) {
    const shown = `user/${user}/workflows/${name}`
    const refuse = (reason: string) => report.refuse({ name: shown, reason })
    if (!name.toLowerCase().endsWith('.json')) report.passOver('files beside the workflows are no JSON')
    else if (sizeBytes > MAX_WORKFLOW_BYTES) refuse('has more than 8 MiB, and a saved workflow may not')
    else {
      const bytes = await readFile(file).catch((error: unknown) => refuse(toReadFailure(error)))
      const problem = bytes === undefined ? null : findProblem(bytes)
      if (problem !== null) refuse(problem)
      else if (bytes !== undefined) report.note('workflows', shown, await saved.place(name, bytes))
    }
  }
}

function findProblem(bytes: Buffer): string | null {
  try {
    readWorkflowText(bytes.toString('utf8'))
    return null
  } catch (error) {
    return (error as Error).message
  }
}

async function bringFiles(
  kind: FileFolder,
  folder: string | undefined,
  { maxFileBytes }: ComfySource,
  { files, report }: ImportTarget,
): Promise<void> {
  for (const { file, name, sizeBytes } of await filesOf(folder ?? null, kind, report)) {
    const shown = `${kind}/${name}`
    // ComfyUI's own, so that an empty folder stays in a checkout.
    if (name.startsWith('_') && sizeBytes === 0) continue
    if (sizeBytes > maxFileBytes) report.refuse({ name: shown, reason: 'is larger than --max-file allows' })
    else report.note(`${kind}s`, shown, await files.place(file, { folder: kind, name }))
  }
}

async function bringCarriedByOutputs(folder: string | undefined, { saved, report }: ImportTarget): Promise<void> {
  const files = await filesOf(folder ?? null, 'output', report)
  const carriers = files.map(({ file, name, modifiedAt }) => ({
    name,
    madeAt: modifiedAt,
    readTexts() {
      try {
        return readCarriedBy(file)
      } catch (error) {
        throw new Error(toReadFailure(error))
      }
    },
  }))
  await bringCarried(carriers, { folder: 'from outputs', remark: 'outputs carry no workflow', saved, report })
}

async function filesOf(folder: string | null, shown: string, report: ImportReport): Promise<readonly FoundFile[]> {
  const isThere = folder !== null && (await lstat(folder).catch(() => null)) !== null
  if (!isThere) return []
  const { files, obstacles } = await walkFolder(folder)
  for (const { name, reason } of obstacles) report.refuse({ name: name === '' ? shown : `${shown}/${name}`, reason })
  return files
}

const MAX_ITEMS = 1000
const MAX_BYTES = 256 * 1024 * 1024
const ANSWER_WITHIN_MS = 120_000

async function readHistory(address: string, signal: AbortSignal): Promise<Carrier[]> {
  const base = URL.canParse(address) ? new URL(address) : null
  if (base === null || !/^https?:$/.test(base.protocol))
    throw new CommandError(
      `--history ${JSON.stringify(address)} is not an address such as http://127.0.0.1:8188`,
      EXIT.usage,
    )
  const url = `${base.href.replace(/\/+$/, '')}/history?max_items=${MAX_ITEMS}`
  const history = parse(await fetchText(url, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)])), url)
  const entries = isJsonObject(history) ? Object.entries(history) : []
  // The last one is the newest; the history does not say more of their times.
  return entries.map(([id, entry], index) => ({
    name: id,
    madeAt: new Date(index),
    readTexts: () => textsOf(isJsonObject(entry) ? entry['prompt'] : null),
  }))
}

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    const response = await fetch(url, { signal })
    if (!response.ok || response.body === null) throw new Error(`it answered ${response.status}`)
    for await (const chunk of response.body) {
      size += chunk.byteLength
      if (size > MAX_BYTES) throw new Error('its history is too large')
      chunks.push(chunk)
    }
  } catch (error) {
    throw new CommandError(
      `cannot read ${url}: ${(error as Error).message}; is ComfyUI running there?`,
      EXIT.unreachable,
    )
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string, url: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    throw new CommandError(`${url} does not answer with JSON; is it a ComfyUI?`, EXIT.failed)
  }
}

/** `[number, id, graph, extra data, outputs]`, as ComfyUI keeps a prompt. */
function textsOf(prompt: JsonValue): string[] {
  if (!Array.isArray(prompt)) return []
  const [, , graph, extra] = prompt
  const info = isJsonObject(extra) ? extra['extra_pnginfo'] : null
  const workflow = isJsonObject(info) ? info['workflow'] : null
  return [workflow, graph].flatMap((one) => (isJsonObject(one) ? [stringifyLosslessJson(one)] : []))
}
