/**
 * The files of weights that an engine has. A server that lists its folders tells sizes; of any other, and of files that it does
 * not list, the choices of its loaders tell the names.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { folderOfInput } from '../../workflows/model-folders.ts'
import { isWeights } from '../../workflows/needs.ts'

export interface WeightFile {
  /** null: not known. */
  readonly folder: string | null
  /** Within its folder, as workflows name it. */
  readonly name: string
  /** null: not known. */
  readonly sizeBytes: number | null
  /** `blake3:` or `sha256:` and hex; null: not known. */
  readonly hash: string | null
}

/** A file of weights on one engine of the service. */
export interface ListedWeight extends WeightFile {
  readonly engineId: string
  readonly isLoaded: boolean
}

/** More than any installation has; bounds what is kept and published of one engine. */
export const MAX_WEIGHT_FILES = 50_000

/** `told`: what the engine lists itself; null: it does not. */
export function weightFilesOf(catalog: NodeCatalog | null, told: readonly WeightFile[] | null): readonly WeightFile[] {
  const files = new Map((told ?? []).map((file) => [`${file.folder}/${file.name}`, file]))
  const toldNames = new Set((told ?? []).map(({ name }) => name))
  for (const { classType, input, name } of weightChoices(catalog)) {
    if (toldNames.has(name)) continue
    const folder = folderOfInput(classType, input)
    const key = `${folder}/${name}`
    if (!files.has(key)) files.set(key, { folder, name, sizeBytes: null, hash: null })
  }
  return [...files.values()]
}

interface WeightChoice {
  readonly classType: string
  readonly input: string
  readonly name: string
}

/** Every file of weights that some class of the catalog offers as a choice. */
function* weightChoices(catalog: NodeCatalog | null): Generator<WeightChoice> {
  for (const classType of catalog?.classTypes() ?? []) {
    const { required = {}, optional = {} } = catalog?.find(classType)?.input ?? {}
    for (const [input, [type, options]] of [...Object.entries(required), ...Object.entries(optional)]) {
      const choices = Array.isArray(type) ? type : Array.isArray(options?.options) ? options.options : []
      for (const name of choices) if (typeof name === 'string' && isWeights(name)) yield { classType, input, name }
    }
  }
}

type WeightPlace = Pick<ListedWeight, 'engineId' | 'folder' | 'name'>

/** In the order in which lists show them. */
export function compareWeights(one: WeightPlace, other: WeightPlace): number {
  return (
    compareTexts(one.engineId, other.engineId) ||
    compareTexts(one.folder ?? '', other.folder ?? '') ||
    compareTexts(one.name, other.name)
  )
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1
}

/** The weights of an engine: those that are installed there, as its catalog says, and those that its latest runs have loaded. */

/** Names of installed weights: every file of weights that some class of the catalog offers as a choice. */
export function installedWeights(catalog: NodeCatalog | null): Set<string> {
  return new Set(weightChoices(catalog).map(({ name }) => name))
}

/** Remembers the weights of the latest `maxRuns` runs: of as many as run at a time, since those are certainly loaded. */
export class LoadedWeights {
  readonly #maxRuns: number
  /** The newest run first. */
  #runs: (readonly string[])[] = []

  constructor(maxRuns: number) {
    this.#maxRuns = maxRuns
  }

  load(weights: readonly string[]): void {
    this.#runs = [weights, ...this.#runs].slice(0, this.#maxRuns)
  }

  clear(): void {
    this.#runs = []
  }

  hasAll(weights: readonly string[]): boolean {
    return this.#runs.some((loaded) => weights.every((name) => loaded.includes(name)))
  }

  hasSome(weights: readonly string[]): boolean {
    return this.#runs.some((loaded) => weights.some((name) => loaded.includes(name)))
  }

  hasAny(): boolean {
    return this.#runs.length > 0
  }

  names(): readonly string[] {
    return [...new Set(this.#runs.flat())]
  }
}

export interface Availability {
  readonly classes: Map<string, string[]>
  readonly weights: Map<string, string[]>
}

interface CatalogOwner {
  readonly id: string
  catalog(): NodeCatalog | null
}

/** Which engines have a class, and which have a file of weights. */
export function findAvailability(engines: readonly CatalogOwner[]): Availability {
  const classes = new Map<string, string[]>()
  const weights = new Map<string, string[]>()
  const add = (to: Map<string, string[]>, name: string, engineId: string) => {
    const owners = to.get(name)
    if (owners === undefined) to.set(name, [engineId])
    else owners.push(engineId)
  }
  for (const { id, catalog } of engines.map((engine) => ({ id: engine.id, catalog: engine.catalog() }))) {
    for (const classType of catalog?.classTypes() ?? []) add(classes, classType, id)
    for (const name of installedWeights(catalog)) add(weights, name, id)
  }
  return { classes, weights }
}
