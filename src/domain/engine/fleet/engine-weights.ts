/** The weights of an engine: those that are installed there, as its catalog says, and those that its latest runs have loaded. */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { weightChoices } from '../weights/weight-files.ts'

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
