/**
 * What an engine can run, as text that another process reads back to the same catalog. A server says nothing beyond its
 * `object_info`; the built-in engine also knows which inputs its nodes check themselves, and that travels beside it. So does the
 * list of an engine's weights, where it tells one.
 */
import { hash } from 'node:crypto'
import type { NodeCatalog, Repeatability } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../engine/graph/object-info.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { MAX_WEIGHT_FILES, type WeightFile } from '../weights/weight-files.ts'

/** What a catalog knows of a class that `object_info` cannot say. */
interface ClassFacts {
  readonly selfChecked?: readonly string[]
  readonly files?: readonly string[]
  readonly folders?: readonly string[]
  readonly judgesItself?: boolean
  readonly repeats?: Repeatability
}

type Facts = Readonly<Record<string, ClassFacts>>

export interface StoredCatalog {
  readonly info: ObjectInfo
  readonly catalog: NodeCatalog
  /** null: the engine does not list them. */
  readonly weights: readonly WeightFile[] | null
}

export interface CatalogText {
  readonly hash: string
  readonly text: string
}

// No class of a server has such a name.
const FACTS = '$facts'
// Among the facts, where a process that does not know of it looks for classes only by their names.
const WEIGHTS = '$weights'

/** `own`: the engine's own catalog, where that knows more than its object info. `weights`: null where it lists none. */
export function writeCatalog(
  info: ObjectInfo,
  own: NodeCatalog | null,
  weights: readonly WeightFile[] | null = null,
): CatalogText {
  const facts = {
    // Where there are facts, they say all that the catalog knows of its classes.
    ...factsOf(own ?? catalogOf(info)),
    ...(weights !== null && { [WEIGHTS]: writeWeightFiles(weights) }),
  }
  const stored = own === null && weights === null ? info : { ...info, [FACTS]: facts }
  const text = stringifyLosslessJson(stored as unknown as JsonValue)
  return { hash: hash('sha256', text, 'base64url'), text }
}

export function readCatalog(text: string): StoredCatalog {
  return toStoredCatalog(parseLosslessJson(text) as unknown as Readonly<Record<string, unknown>>)
}

/** `stored`: the text, parsed. */
export function toStoredCatalog(stored: Readonly<Record<string, unknown>>): StoredCatalog {
  if (!Object.hasOwn(stored, FACTS))
    return { info: stored as ObjectInfo, catalog: catalogOf(stored as ObjectInfo), weights: null }
  const { [FACTS]: facts, ...info } = stored
  const told =
    typeof facts === 'object' && facts !== null ? (facts as Readonly<Record<string, unknown>>)[WEIGHTS] : null
  return {
    info: info as ObjectInfo,
    catalog: withFacts(info as ObjectInfo, facts as Facts),
    weights: readWeightFiles(told),
  }
}

function factsOf(catalog: NodeCatalog): Facts {
  const all = catalog.classTypes().map((classType): [string, ClassFacts] => {
    const selfChecked = catalog.selfCheckedInputs(classType)
    const files = catalog.fileInputs?.(classType) ?? selfChecked
    const folders = catalog.folderInputs?.(classType) ?? []
    const repeats = catalog.repeatability?.(classType) ?? null
    return [
      classType,
      {
        ...(selfChecked.length > 0 && { selfChecked }),
        ...(files.length > 0 && { files }),
        ...(folders.length > 0 && { folders }),
        ...(catalog.judgesItself?.(classType) === true && { judgesItself: true }),
        ...(repeats !== null && { repeats }),
      },
    ]
  })
  return Object.fromEntries(all.filter(([, facts]) => Object.keys(facts).length > 0))
}

const NOTHING: ClassFacts = {}
const NONE: readonly string[] = []

function withFacts(info: ObjectInfo, facts: Facts): NodeCatalog {
  const factsFor = (classType: string) => (Object.hasOwn(facts, classType) ? facts[classType] : NOTHING)
  const { find, classTypes } = catalogOf(info)
  return {
    find,
    classTypes,
    selfCheckedInputs: (classType) => factsFor(classType).selfChecked ?? NONE,
    fileInputs: (classType) => factsFor(classType).files ?? NONE,
    folderInputs: (classType) => factsFor(classType).folders ?? NONE,
    judgesItself: (classType) => factsFor(classType).judgesItself === true,
    repeatability: (classType) => factsFor(classType).repeats ?? null,
  }
}

/**
 * The list of an engine's weights as text, for the registry of engines. What comes from a worker that joined was written by
 * somebody else: whatever is not a file of weights by its shape is left out.
 */
function writeWeightFiles(files: readonly WeightFile[]): string {
  return JSON.stringify(
    files.slice(0, MAX_WEIGHT_FILES).map(({ folder, name, sizeBytes, hash }) => [folder, name, sizeBytes, hash]),
  )
}

const MAX_TEXT = 1024

/** null: the engine does not tell, or what it tells cannot be read. */
function readWeightFiles(text: unknown): readonly WeightFile[] | null {
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
