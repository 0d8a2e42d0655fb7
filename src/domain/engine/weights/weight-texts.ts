/**
 * The list of an engine's weights as text, for the registry of engines. What comes from a worker that joined was written by
 * somebody else: whatever is not a file of weights by its shape is left out.
 */
import { MAX_WEIGHT_FILES, type WeightFile } from './weight-files.ts'

export function writeWeightFiles(files: readonly WeightFile[]): string {
  return JSON.stringify(
    files.slice(0, MAX_WEIGHT_FILES).map(({ folder, name, sizeBytes, hash }) => [folder, name, sizeBytes, hash]),
  )
}

const MAX_TEXT = 1024

/** null: the engine does not tell, or what it tells cannot be read. */
export function readWeightFiles(text: unknown): readonly WeightFile[] | null {
  if (typeof text !== 'string') return null
  let told: unknown
  try {
    told = JSON.parse(text)
  } catch {
    return null
  }
  return Array.isArray(told) ? told.slice(0, MAX_WEIGHT_FILES).flatMap(readFile) : null
}

function readFile(told: unknown): WeightFile[] {
  if (!Array.isArray(told)) return []
  const [folder, name, sizeBytes, hash] = told as unknown[]
  if (!isText(name) || !(folder === null || isText(folder)) || !(hash === null || isText(hash))) return []
  const isSize = Number.isSafeInteger(sizeBytes) && (sizeBytes as number) >= 0
  return [{ folder, name, sizeBytes: isSize ? (sizeBytes as number) : null, hash }]
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT
}
